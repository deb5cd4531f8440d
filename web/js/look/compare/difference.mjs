// What one head gives on side B less what one gives on side A, piece by piece.

import { cells, HeadWeights } from "../../lib/triangle.mjs";

/** @import { Alignment, SideName } from "./alignment.mjs" */

/** @typedef {{ a: number, b: number, difference: number }} Compared the last is NaN where they are not subtracted */

const NOT_COMPARABLE = Object.freeze({ a: NaN, b: NaN, difference: NaN });

/**
 * What the last token of one piece gives to all tokens of another, one after the other.
 * @param {HeadWeights} weights
 * @param {Alignment} alignment
 * @param {SideName} side
 * @param {number} row
 * @param {number} key
 */
function given(weights, alignment, side, row, key) {
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
    /** B less A as a lower triangle; NaN for a key that is not the same on both sides. */
    this.values = new HeadWeights();
    const values = new Float32Array(cells(rows));
    let place = 0;
    this.largest = 0; // of the differences, whatever their sign
    for (let row = 0; row < rows; row++) {
      for (let key = 0; key <= row; key++) {
        const { difference } = this.at(row, key);
        values[place++] = difference;
        if (Math.abs(difference) > this.largest) this.largest = Math.abs(difference);
      }
    }
    this.values.append(values);
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
    const a = given(weights.a, alignment, "a", row, key);
    const b = given(weights.b, alignment, "b", row, key);
    return { a, b, difference: alignment.pieces[key].same ? b - a : NaN };
  }
}

/** @import { Pointer } from "../../types.js" */

/**
 * The first piece at which two texts can differ: one model without masks reads what both begin with alike.
 * @param {Alignment} alignment
 * @param {Pick<Pointer, "sha256" | "head_mask">} a
 * @param {Pick<Pointer, "sha256" | "head_mask">} b
 */
export function firstDifferingRow({ parting, pieces }, a, b) {
  const sameReader = a.sha256 === b.sha256 && JSON.stringify(a.head_mask) === JSON.stringify(b.head_mask);
  return sameReader ? (parting ?? pieces.length) : 0;
}
