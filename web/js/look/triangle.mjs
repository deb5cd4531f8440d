// A picture's weights as a lower triangle, row after row: the row of query q holds the keys 0 to q.

/** The number of cells in the first n rows. */
export const cells = (n) => (n * (n + 1)) / 2;

/** The number of rows that hold this many cells. */
export const rowsOf = (count) => Math.round((Math.sqrt(8 * count + 1) - 1) / 2);

/** The thumbnail cell of a token: the first has its own, the others share one `factor` by `factor`. */
export const tile = (position, factor) => Math.ceil(position / factor);

/** Exact weights of one picture, growing while the text is written. */
export class HeadWeights {
  constructor() {
    this.rows = 0;
    this.values = new Float32Array(1024);
  }

  append(floats) {
    const used = cells(this.rows);
    if (used + floats.length > this.values.length) {
      const larger = new Float32Array(Math.max(2 * this.values.length, used + floats.length));
      larger.set(this.values.subarray(0, used));
      this.values = larger;
    }
    this.values.set(floats, used);
    this.rows = rowsOf(used + floats.length);
  }

  at(query, key) {
    return this.values[cells(query) + key];
  }

  /** The key from `first` on that this query looks at most. */
  strongest(query, first = 0) {
    const start = cells(query);
    let best = Math.min(first, query);
    for (let key = best + 1; key <= query; key++) if (this.values[start + key] > this.values[start + best]) best = key;
    return best;
  }
}

/** Thumbnails of all pictures: the largest weight of each tile, as 255 * sqrt(weight). */
export class Thumbnails {
  static SIDE = 65;

  constructor(pictures) {
    this.pictures = pictures;
    this.factor = 1;
    this.side = 0;
    this.bytes = new Uint8Array(pictures * Thumbnails.SIDE ** 2);
  }

  /** Lay the rows from `first` on over what is there; they came with `factor`, for a text of `rows` rows. */
  merge(rows, factor, first, data) {
    while (this.factor < factor) this.coarsen();
    this.side = tile(rows - 1, factor) + 1;
    const { SIDE } = Thumbnails;
    let from = 0;
    for (let picture = 0; picture < this.pictures; picture++) {
      for (let row = first; row < this.side; row++) {
        this.bytes.set(data.subarray(from, from + row + 1), (picture * SIDE + row) * SIDE);
        from += row + 1;
      }
    }
  }

  /** One picture's bytes as `side` x `side`, the largest of each `factor` x `factor` cells, the first alone. */
  pooled(picture, factor, side) {
    const { SIDE } = Thumbnails;
    const steps = new Uint8Array(side * side);
    for (let row = 0; row < this.side; row++) {
      const to = tile(row, factor) * side;
      const from = (picture * SIDE + row) * SIDE;
      for (let key = 0; key <= row; key++) {
        const place = to + tile(key, factor);
        if (this.bytes[from + key] > steps[place]) steps[place] = this.bytes[from + key];
      }
    }
    return steps;
  }

  /** Double the factor: the largest of 2 x 2 tiles is the largest of the weights below them. */
  coarsen() {
    const { SIDE } = Thumbnails;
    const old = this.bytes;
    this.bytes = new Uint8Array(old.length);
    this.factor *= 2;
    for (let picture = 0; picture < this.pictures; picture++) {
      for (let row = 0; row < this.side; row++) {
        for (let column = 0; column <= row; column++) {
          const target = (picture * SIDE + tile(row, 2)) * SIDE + tile(column, 2);
          const byte = old[(picture * SIDE + row) * SIDE + column];
          if (byte > this.bytes[target]) this.bytes[target] = byte;
        }
      }
    }
  }
}
