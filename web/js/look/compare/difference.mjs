// The differences between two texts in numbers: of a head, of the probabilities of shared tokens, of the next token.

import { isSameMask } from "../../lib/head_masks.mjs";
import { probabilityChange, signed } from "../../lib/numbers.mjs";
import { cells, HeadWeights } from "../../lib/triangle.mjs";

/** @import { Pointer, Token } from "../../types.js" */
/** @import { Alignment, SideName } from "./alignment.mjs" */

/** @typedef {{ a: number, b: number, difference: number }} Compared `difference` may be NaN */

const NOT_COMPARABLE = Object.freeze({ a: NaN, b: NaN, difference: NaN });

/**
 * The sum of the weights that the last token of one piece gives to the tokens of another.
 * @param {HeadWeights} weights
 * @param {Alignment} alignment
 * @param {SideName} side
 * @param {number} row
 * @param {number} key
 */
function weightOn(weights, alignment, side, row, key) {
  const query = alignment.last(side, row);
  const [first, last] = [alignment.first(side, key), alignment.last(side, key)];
  if (first === last) return weights.at(query, first); // the float32 number itself
  let sum = 0;
  for (let at = first; at <= last; at++) sum += weights.at(query, at);
  return sum;
}

export class Difference {
  /**
   * @param {Alignment} alignment
   * @param {Record<SideName, HeadWeights>} weights of the head on each side
   */
  constructor(alignment, weights) {
    this.alignment = alignment;
    this.weights = weights;
    let rows = 0; // pieces that both sides have read
    while (
      rows < alignment.pieces.length &&
      alignment.last("a", rows) < weights.a.rows &&
      alignment.last("b", rows) < weights.b.rows
    )
      rows++;
    this.rows = rows;
    /** B minus A as a lower triangle; NaN for a key that is not the same on both sides. */
    this.values = new HeadWeights();
    const values = new Float32Array(cells(rows));
    let index = 0;
    this.largest = 0; // of the differences, whatever their sign
    for (let row = 0; row < rows; row++) {
      for (let key = 0; key <= row; key++) {
        const { difference } = this.at(row, key);
        values[index++] = difference;
        if (Math.abs(difference) > this.largest) this.largest = Math.abs(difference);
      }
    }
    this.values.append(values);
  }

  /** A side's weights on the pieces, as a lower triangle. @param {SideName} side */
  weightsOf(side) {
    const values = new Float32Array(cells(this.rows));
    let index = 0;
    for (let row = 0; row < this.rows; row++) {
      for (let key = 0; key <= row; key++) {
        values[index++] = weightOn(this.weights[side], this.alignment, side, row, key);
      }
    }
    const weights = new HeadWeights();
    weights.append(values);
    return weights;
  }

  /**
   * One cell with the exact numbers of both sides.
   * @param {number} row a piece
   * @param {number} key a piece
   * @returns {Compared}
   */
  at(row, key) {
    const { alignment, weights } = this;
    if (key > row || row >= this.rows) return NOT_COMPARABLE;
    const a = weightOn(weights.a, alignment, "a", row, key);
    const b = weightOn(weights.b, alignment, "b", row, key);
    return { a, b, difference: alignment.pieces[key].same ? b - a : NaN };
  }
}

/** @typedef {Pick<Pointer, "sha256" | "head_mask">} ReadBy the model that read a text, and the heads scaled in it */

/**
 * Whether two texts were read differently, so that equal tokens may differ in probability.
 * @param {ReadBy} a
 * @param {ReadBy} b
 */
export const areReadDifferently = (a, b) => a.sha256 !== b.sha256 || !isSameMask(a.head_mask, b.head_mask);

/**
 * The first piece at which two texts can differ: the same model with the same masks reads a shared beginning alike.
 * @param {Alignment} alignment
 * @param {ReadBy} a
 * @param {ReadBy} b
 */
export const firstDifferingRow = ({ divergence, pieces }, a, b) =>
  areReadDifferently(a, b) ? 0 : (divergence ?? pieces.length);

/** @typedef {{ a: number, b: number, change: number }} TokenChange log-probabilities in nats */

/**
 * The change at each token of B until the texts diverge; after that, the tokens before it differ. Null for a token
 * that was not predicted.
 * @param {Alignment} alignment token by token
 * @param {Pick<Token, "logprob">[]} a
 * @param {Pick<Token, "logprob">[]} b
 * @returns {(TokenChange | null)[]}
 */
export function tokenChanges({ pieces, divergence, isTokenByToken }, a, b) {
  if (!isTokenByToken) return [];
  return pieces.slice(0, divergence ?? pieces.length).map(({ a0, b0 }) => {
    const [left, right] = [a[a0]?.logprob, b[b0]?.logprob];
    return left == null || right == null ? null : { a: left, b: right, change: right - left };
  });
}

/** @param {number} value in nats */
export const nats = (value) => signed(value, 3);

/**
 * The changes of a text in a sentence; "" if there are none.
 * @param {(TokenChange | null)[]} changes
 * @param {number | null} divergesAt the token at which the texts diverge
 */
export function changeSentence(changes, divergesAt) {
  const known = changes.filter((each) => each !== null);
  if (!known.length) return "";
  const sum = known.reduce((total, { change }) => total + change, 0);
  const shared = divergesAt === null ? "" : `The texts diverge at token ${divergesAt}. `;
  const before = divergesAt === null ? "" : " before that";
  const mean = sum / known.length;
  const of =
    known.length === 1
      ? `The token that both predict${before} is`
      : `The ${known.length} tokens that both predict${before} are on average`;
  return `${shared}${of} ${probabilityChange(-mean)} in B: ${nats(sum)} nats in all, ${nats(mean)} a token.`;
}

/**
 * What a model predicts after one token.
 * @typedef {object} Prediction
 * @property {Float64Array} logprobs of the whole vocabulary
 * @property {number[]} most ids of the most probable tokens
 * @property {string[]} texts of the whole vocabulary
 */

/**
 * A token with its id on each side, its probabilities, and the difference of their logarithms.
 * @typedef {object} NextRow
 * @property {string} text
 * @property {(number | null)[]} ids
 * @property {number | null} a
 * @property {number | null} b
 * @property {number | null} difference
 */

/**
 * The tokens that either side finds most probable, the most probable first; a token outside the vocabulary of one side
 * has no number there. Two vocabularies share the tokens of the same text; where several in one vocabulary read the
 * same, such as a letter and its byte, only the one that texts are encoded into, which comes last.
 * @param {Prediction} a
 * @param {Prediction} b
 * @param {(number | null)[]} written ids of the written tokens, which are always included
 * @param {number} count
 * @returns {NextRow[]}
 */
export function nextRows(a, b, written, count) {
  const isShared = a.texts.length === b.texts.length && a.texts.every((text, id) => text === b.texts[id]);
  const idsOf = [a, b].map(({ texts }) => new Map(isShared ? [] : texts.map((text, id) => [text, id])));
  /** @type {Map<string, NextRow>} */
  const rows = new Map();
  /** @param {number} id @param {number} side */
  const add = (id, side) => {
    const text = [a, b][side].texts[id] ?? "";
    const isNamed = idsOf[side].get(text) === id;
    const ids = idsOf.map((others, i) => (isShared || i === side ? id : isNamed ? (others.get(text) ?? null) : null));
    const key = ids.join();
    if (rows.has(key)) return;
    const [left, right] = ids.map((each, i) => (each === null ? null : [a, b][i].logprobs[each]));
    rows.set(key, {
      text,
      ids,
      a: left === null ? null : Math.exp(left),
      b: right === null ? null : Math.exp(right),
      difference: left === null || right === null ? null : right - left,
    });
  };
  written.forEach((id, side) => id !== null && add(id, side));
  const given = [...rows.values()];
  for (let i = 0; rows.size < 4 * count && i < Math.max(a.most.length, b.most.length); i++) {
    if (i < a.most.length) add(a.most[i], 0);
    if (i < b.most.length) add(b.most[i], 1);
  }
  /** @param {NextRow} row */
  const strength = (row) => Math.max(row.a ?? 0, row.b ?? 0);
  const others = [...rows.values()].filter((row) => !given.includes(row));
  others.sort((one, other) => strength(other) - strength(one));
  const shown = [...given, ...others.slice(0, Math.max(count - given.length, 0))];
  return shown.sort((one, other) => strength(other) - strength(one));
}
