// A head's weights as a lower triangle, row after row: the row of query q holds the keys 0 to q.

/** The number of cells in the first n rows. */
export const cells = (n) => (n * (n + 1)) / 2;

/** The number of rows that hold this many cells. */
export const rowsOf = (count) => Math.round((Math.sqrt(8 * count + 1) - 1) / 2);

/** Exact weights of one head, growing while the text is written. */
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

  /** The key that this query looks at most. */
  strongest(query) {
    const start = cells(query);
    let best = 0;
    for (let key = 1; key <= query; key++) if (this.values[start + key] > this.values[start + best]) best = key;
    return best;
  }
}

/** Thumbnails of all heads: the largest weight of each factor x factor tile, as 255 * sqrt(weight). */
export class Thumbnails {
  static SIDE = 64;

  constructor(heads) {
    this.heads = heads;
    this.factor = 1;
    this.side = 0;
    this.bytes = new Uint8Array(heads * Thumbnails.SIDE ** 2);
  }

  /** Lay the rows from `first` on over what is there; they came with `factor`, for a text of `rows` rows. */
  merge(rows, factor, first, data) {
    while (this.factor < factor) this.coarsen();
    this.side = Math.ceil(rows / factor);
    const { SIDE } = Thumbnails;
    let from = 0;
    for (let head = 0; head < this.heads; head++) {
      for (let row = first; row < this.side; row++) {
        this.bytes.set(data.subarray(from, from + row + 1), (head * SIDE + row) * SIDE);
        from += row + 1;
      }
    }
  }

  /** One head's bytes as `side` x `side`, the largest of each `factor` x `factor` tile. */
  picture(head, factor, side) {
    const { SIDE } = Thumbnails;
    const steps = new Uint8Array(side * side);
    for (let row = 0; row < this.side; row++) {
      const to = Math.floor(row / factor) * side;
      const from = (head * SIDE + row) * SIDE;
      for (let key = 0; key <= row; key++) {
        const place = to + Math.floor(key / factor);
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
    for (let head = 0; head < this.heads; head++) {
      for (let row = 0; row < this.side; row++) {
        for (let column = 0; column <= row; column++) {
          const target = (head * SIDE + (row >> 1)) * SIDE + (column >> 1);
          const byte = old[(head * SIDE + row) * SIDE + column];
          if (byte > this.bytes[target]) this.bytes[target] = byte;
        }
      }
    }
  }
}
