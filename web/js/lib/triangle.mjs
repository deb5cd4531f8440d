// The weights of one picture as a lower triangle, row after row: the row of query q holds the keys 0 to q.

/** The number of cells in the first n rows. @param {number} n */
export const cells = (n) => (n * (n + 1)) / 2;

/** The number of rows that hold this many cells. @param {number} count */
export const rowsOf = (count) => Math.round((Math.sqrt(8 * count + 1) - 1) / 2);

/** The exact weights of one picture, which grow while the text is written. */
export class HeadWeights {
  constructor() {
    this.rows = 0;
    this.values = new Float32Array(1024);
  }

  /** @param {Float32Array} floats whole rows that follow those already here */
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

  /**
   * @param {number} query
   * @param {number} key
   */
  at(query, key) {
    return this.values[cells(query) + key];
  }

  /** The weights of the keys 0 to `query`. @param {number} query */
  row(query) {
    return this.values.subarray(cells(query), cells(query + 1));
  }

  /**
   * The key from `first` on that this query looks at most.
   * @param {number} query
   */
  strongest(query, first = 0) {
    const start = cells(query);
    let best = Math.min(first, query);
    for (let key = best + 1; key <= query; key++) {
      if (this.values[start + key] > this.values[start + best]) best = key;
    }
    return best;
  }
}
