// The thumbnails of all pictures of a text, pooled in the same way as on the server (model/drawing/thumbnails.py).

import { keysOf } from "../triangle.mjs";

/**
 * The thumbnail cell of a token: the first token has its own, `factor` of the others share one.
 * @param {number} position
 * @param {number} factor
 */
export const tile = (position, factor) => Math.ceil(position / factor);

/**
 * The first thumbnail cell of a row in which a query sees a key.
 * @param {number} row
 * @param {number} factor
 * @param {number} window how many tokens a query sees, itself included
 */
export const firstTile = (row, factor, window) =>
  Math.max(0, Math.floor(((row - 1) * factor + 1 - window) / factor) + 1);

export const SIDE = 65; // cells of the longest side

/** The largest weight of each tile of each picture, as 255 * sqrt(weight). */
export class Thumbnails {
  /**
   * @param {number} pictures how many there are
   * @param {(picture: number) => number} [windowOf] how many tokens a query of it sees, itself included
   */
  constructor(pictures, windowOf = () => Infinity) {
    this.pictures = pictures;
    this.windowOf = windowOf;
    this.factor = 1;
    this.side = 0;
    this.bytes = new Uint8Array(pictures * SIDE ** 2);
  }

  /**
   * Overwrite the rows from `first` on.
   * @param {{ rows: number, factor: number, first: number }} header of the frame they came in
   * @param {Uint8Array} data
   */
  merge({ rows, factor, first }, data) {
    while (this.factor < factor) this.#coarsen();
    this.side = tile(rows - 1, factor) + 1;
    let from = 0;
    for (let picture = 0; picture < this.pictures; picture++) {
      for (let row = first; row < this.side; row++) {
        const columns = keysOf(row, this.side);
        this.bytes.set(data.subarray(from, from + columns), (picture * SIDE + row) * SIDE);
        from += columns;
      }
    }
  }

  /**
   * The bytes of one picture as `side` x `side`: the maximum of each `factor` x `factor` block; the first cell is not
   * pooled.
   * @param {number} picture
   * @param {number} factor
   * @param {number} side
   */
  pooled(picture, factor, side) {
    const pooled = new Uint8Array(side * side);
    for (let row = 0; row < this.side; row++) {
      const to = tile(row, factor) * side;
      const from = (picture * SIDE + row) * SIDE;
      const columns = keysOf(row, this.side);
      for (let key = 0; key < columns; key++) {
        const cell = to + tile(key, factor);
        if (this.bytes[from + key] > pooled[cell]) pooled[cell] = this.bytes[from + key];
      }
    }
    return pooled;
  }

  /** Double the factor: the largest of 2 x 2 tiles is the largest of all the weights in them. */
  #coarsen() {
    const old = this.bytes;
    this.bytes = new Uint8Array(old.length);
    this.factor *= 2;
    for (let picture = 0; picture < this.pictures; picture++) {
      for (let row = 0; row < this.side; row++) {
        const columns = keysOf(row, this.side);
        for (let column = 0; column < columns; column++) {
          const target = (picture * SIDE + tile(row, 2)) * SIDE + tile(column, 2);
          const byte = old[(picture * SIDE + row) * SIDE + column];
          if (byte > this.bytes[target]) this.bytes[target] = byte;
        }
      }
    }
  }
}
