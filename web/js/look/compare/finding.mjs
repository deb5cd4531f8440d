// What a comparison found, as a sentence: what each text expects as its next word, and what became of A's word in B.

import { share } from "../../lib/numbers.mjs";
import { isEnd, spoken } from "../../lib/words.mjs";

/** @import { NextRow } from "./difference.mjs" */

/**
 * @typedef {object} Likeliest the likeliest next word of both texts
 * @property {NextRow} a its row has a number in A
 * @property {NextRow} b its row has a number in B
 */

/**
 * @param {NextRow[]} rows
 * @param {number} a the id of the likeliest token in A
 * @param {number} b the same in B
 * @returns {Likeliest | null} null if a row is missing
 */
export function likeliestOf(rows, a, b) {
  const [left, right] = [rows.find(({ ids }) => ids[0] === a), rows.find(({ ids }) => ids[1] === b)];
  return left && right ? { a: left, b: right } : null;
}

/** @param {number | null} part */
const percent = (part) => share(part ?? 0);

/**
 * @param {Likeliest} likeliest
 * @param {[a: string, b: string]} before the last word that each side has read, as it is said in a sentence
 * @returns {string[]} plain and bold pieces by turns, beginning with a plain one
 */
export function findingWords({ a, b }, before) {
  const isOneWord = before[0] === before[1];
  const [left, right] = isOneWord ? ["", ""] : before.map((word) => `after ${word} `);
  const start = isOneWord ? `After ${before[0]}, ` : "";
  if (a === b) {
    const where = isOneWord ? "" : `, A after ${before[0]}, B after ${before[1]}`;
    const both = start ? `${start}both expect ` : "Both expect ";
    return [both, spoken(a.text), `${where}: A with ${percent(a.a)}, B with ${percent(b.b)}.`];
  }
  const first = [`${start}A ${left}expects `, spoken(a.text), ` (${percent(a.a)}), B ${right}`, spoken(b.text)];
  return [...first, ` (${percent(b.b)}). ${whatBecame(a)}`];
}

/** What becomes of A's word in B. @param {NextRow} row */
function whatBecame({ text, a, b }) {
  const word = isEnd(text) ? "The end of the text" : spoken(text);
  if (b === null) return `The vocabulary of B has no ${word}.`;
  const [from, to] = [percent(a), percent(b)];
  if (from === to) return `${word} has ${to} in both.`;
  return `${word} ${b < (a ?? 0) ? "falls" : "rises"} from ${from} to ${to}.`;
}
