// A student's progress as a short code to hand in. It is the student's own statement: anyone can make one.

import { keyOf } from "../progress.mjs";

/** @import { Content } from "../rung.js" */
/** @typedef {{ isSeen: boolean, predicted: boolean | null, solved: boolean[] }} Stated of a rung */

const DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"; // without letters that look like digits, and U
const [EDITION_LENGTH, CHECK_LENGTH, GROUP] = [2, 4, 4];
const [BASE, PRIME] = [37n, 1_048_573n]; // the largest prime below 32⁴: one wrong digit, or two swapped, always show

/** A polynomial in the values, modulo a prime. @param {number[]} values */
const hash = (values) => values.reduce((sum, value) => (sum * BASE + BigInt(value + 1)) % PRIME, 0n);

/** @param {bigint} value @param {number} length */
function digits(value, length) {
  let text = "";
  for (let rest = value; text.length < length; rest /= 32n) text = DIGITS[Number(rest % 32n)] + text;
  return text;
}

/** @param {string} text */
const valueOf = (text) => [...text].reduce((sum, digit) => sum * 32n + BigInt(DIGITS.indexOf(digit)), 0n);

/** @param {string} text */
const checkOf = (text) => digits(hash([...text].map((digit) => DIGITS.indexOf(digit))), CHECK_LENGTH);

/** What tells these questions from those of another version. @param {Content[]} rungs */
function editionOf(rungs) {
  const questions = rungs.flatMap(({ exercises }) => exercises.map(keyOf)).join();
  return digits(hash([...questions].map((each) => each.codePointAt(0) ?? 0)) % 1024n, EDITION_LENGTH);
}

/** How many answers each part of a rung may have. @param {Content} rung */
const choicesOf = ({ exercises }) => [2, 3, ...exercises.map(() => 2)];

/** @param {Content[]} rungs */
function bodyLength(rungs) {
  const most = rungs.flatMap(choicesOf).reduce((product, choices) => product * BigInt(choices), 1n);
  return Math.ceil((most - 1n).toString(2).length / 5);
}

/** @param {Content[]} rungs @param {Stated[]} stated one for each of them */
export function writeStatement(rungs, stated) {
  let value = 0n;
  rungs.forEach((rung, i) => {
    const { isSeen, predicted, solved } = stated[i];
    const parts = [Number(isSeen), predicted === null ? 0 : predicted ? 2 : 1, ...solved.map(Number)];
    choicesOf(rung).forEach((choices, part) => (value = value * BigInt(choices) + BigInt(parts[part])));
  });
  const text = editionOf(rungs) + digits(value, bodyLength(rungs));
  return (text + checkOf(text)).match(new RegExp(`.{1,${GROUP}}`, "g"))?.join("-") ?? "";
}

/** A code as it was written, whatever was typed for its letters and between them. @param {string} code */
export const plainCode = (code) => code.toUpperCase().replace(/[\s-]/g, "").replaceAll("O", "0").replace(/[IL]/g, "1");

/**
 * What a code states. It throws an error for people if the code is damaged or of another version.
 * @param {Content[]} rungs
 * @param {string} code
 * @returns {Stated[]}
 */
export function readStatement(rungs, code) {
  const text = plainCode(code);
  const foreign = [...code].find((each) => !/[0-9A-TV-Za-tv-z\s-]/.test(each));
  if (foreign) throw new Error(`“${foreign}” is in no code: codes have the digits 0 to 9 and letters except U.`);
  const wanted = EDITION_LENGTH + bodyLength(rungs) + CHECK_LENGTH;
  if (text.length !== wanted) throw new Error(`It has ${text.length} characters; a code has ${wanted}.`);
  const rest = text.slice(0, -CHECK_LENGTH);
  if (checkOf(rest) !== text.slice(-CHECK_LENGTH))
    throw new Error("A character is wrong, or two are swapped: copy the code again.");
  if (!rest.startsWith(editionOf(rungs)))
    throw new Error("It comes from another version of the lessons, with other exercises.");
  let value = valueOf(rest.slice(EDITION_LENGTH));
  const stated = [...rungs].reverse().map((rung) => {
    const parts = choicesOf(rung)
      .reverse()
      .map((choices) => {
        const part = Number(value % BigInt(choices));
        value /= BigInt(choices);
        return part;
      });
    const [isSeen, predicted, ...solved] = parts.reverse();
    return { isSeen: isSeen === 1, predicted: predicted ? predicted === 2 : null, solved: solved.map(Boolean) };
  });
  if (value) throw new Error("No progress has this code: copy it again.");
  return stated.reverse();
}
