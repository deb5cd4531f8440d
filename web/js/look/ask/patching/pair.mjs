// The two texts between which activations are patched: where they differ, and what the best head comes to.

import { fixed } from "../../../lib/numbers.mjs";
import { visible } from "../../../lib/words.mjs";
import { percent } from "./residual_table.mjs";

/** @typedef {{ id: number, text: string }[]} Tokens */

const LEAST_DIFFERENCE = 0.3; // nats between the two logit differences: a share of less says nothing
const CARRIES = 0.2; // of the difference: a head that makes less does not carry the answer by itself
const NAMED = 12; // positions

/** The positions at which two texts of one length differ. @param {Tokens} one @param {Tokens} other */
export const differing = (one, other) => one.flatMap(({ id }, at) => (id === other[at].id ? [] : [at]));

/** Where the texts differ, token by token. @param {Tokens} one @param {Tokens} other */
export function differenceWords(one, other) {
  const found = differing(one, other);
  const named = found
    .slice(0, NAMED)
    .map((at) => `token ${at} (“${visible(one[at].text)}” / “${visible(other[at].text)}”)`);
  const more = found.length - named.length;
  if (more) named.push(`${more} more`);
  const words = named.length > 1 ? `${named.slice(0, -1).join(", ")} and ${named.at(-1)}` : named[0];
  const several = found.length > 1 ? ", so a share may be due to any of these" : "";
  return `The two texts differ in ${words}${several}.`;
}

/**
 * What is wrong with a pair whose last tokens differ; "" for any other.
 * @param {Tokens} one
 * @param {Tokens} other
 * @param {number} effect share of the difference that the residual stream makes there before the first layer
 * @param {string} does "restores" or "takes away"
 */
export function lastTokenWarning(one, other, effect, does) {
  const found = differing(one, other);
  if (found.at(-1) !== one.length - 1) return "";
  return (
    `The last token differs${found.length > 1 ? " too" : ""}: exchanging it alone ${does} ${percent(effect)}, ` +
    "and no head has to carry that there. Keep the last token the same in both texts, and change only an earlier one."
  );
}

/**
 * That the change hardly matters to the answer, so that there is nothing to carry; "" where it does.
 * @param {{ clean: number, corrupted: number }} answer logit differences
 * @param {string} right in quotation marks
 * @param {string} other in quotation marks
 */
export function nothingToCarry({ clean, corrupted }, right, other) {
  if (Math.abs(clean - corrupted) >= LEAST_DIFFERENCE) return "";
  const lead = `the logit of ${right} minus that of ${other} is ${fixed(clean)} in this text and ${fixed(corrupted)}`;
  return `The change hardly matters here: ${lead} in the changed one. Shares of so small a difference say little.`;
}

/**
 * What the head with the largest share comes to.
 * @param {string} answer in quotation marks
 * @param {{ name: string, value: number }} best
 * @param {string} does "restores" or "takes away"
 */
export function verdict(answer, { name, value }, does) {
  const share = `${percent(value)} of the difference between the two texts`;
  return value < CARRIES
    ? `No single head carries ${answer}: the best one, ${name}, ${does} ${share}, less than ${percent(CARRIES)}.`
    : `${name} carries ${answer} most: alone, it ${does} ${share}.`;
}
