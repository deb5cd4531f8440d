// What a comparison found, as sentences: what each text expects as its next word, what became of A's word in B, and
// what the numbers of the heads mean.

import { share } from "../../lib/numbers.mjs";
import { isEnd, spoken, spokenInWord } from "../../lib/words.mjs";

/** @import { SideName } from "./alignment.mjs" */
/** @import { NextRow } from "./difference.mjs" */
/** @import { Pair } from "./pair.mjs" */

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
 * @param {[a: string, b: string] | null} [read] with which heads each side was read, if that is not the same
 * @returns {string[]} plain and bold pieces by turns, beginning with a plain one
 */
export function findingWords({ a, b }, before, read = null) {
  const isOneWord = before[0] === before[1];
  if (read && isOneWord) {
    const [inA, inB] = [percent(a.a), percent(b.b)];
    const start = `After ${before[0]}, `;
    if (a === b) return [`${start}both expect `, spoken(a.text), `: ${read[0]} ${inA}, ${read[1]} ${inB}.`];
    const rest = ` ${inB}. ${whatBecame(a)}`;
    return [`${start}${read[0]}: `, spoken(a.text), ` ${inA}; ${read[1]}: `, spoken(b.text), rest];
  }
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

/**
 * Why no head can attend differently; "" where one could.
 * @param {Pick<Pair, "alignment" | "firstRow" | "stores">} pair
 */
export function whyAlike({ alignment: { pieces, divergence }, firstRow, stores: { a, b } }) {
  if (!pieces.length || firstRow < pieces.length) return "";
  if (divergence !== null) return ": no token after the texts diverge has a counterpart";
  if (a.length === b.length) return ": both are the same text, read in the same way";
  const [short, long] = a.length < b.length ? ["A", "B"] : ["B", "A"];
  return `: ${long} begins with all of ${short}, and reads it in the same way`;
}

/**
 * What the numbers of the heads mean where only the first tokens that differ are compared.
 * @param {Pick<Pair, "alignment" | "stores">} pair
 */
export function fromFirstChange({ alignment, stores }) {
  const said = (/** @type {SideName} */ side) => spokenInWord(stores[side].tokens, alignment.divergesAt(side) ?? 0);
  const [a, b] = [said("a"), said("b")];
  return (
    `How much of its attention each head moves to other words, from ${a} in A to ${b} in B: the first words that ` +
    "differ, after the same beginning."
  );
}
