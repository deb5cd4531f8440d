// The weights of one picture as a lower triangle, row after row: the row of query q holds the keys 0 to q. In a file
// with attention that is not causal, pictures are rectangles: squares, or of cross-attention, whose tokens are the keys
// and then the queries.

let n_keys = 0; // of every query, in a rectangle
let n_before = 0; // the tokens before the first query, which are only keys

/**
 * From now on pictures are rectangles, in which every query sees all keys.
 * @param {number} keys how many there are
 * @param {number} [tokens] the same number or, of cross-attention, that of keys and queries
 */
export function showRectangles(keys, tokens = keys) {
  n_keys = keys;
  n_before = tokens > keys ? keys : 0;
}

/** Whether pictures are rectangles. */
export const areRectangles = () => n_keys > 0;

/** The token that is the first query: those before it are only keys. */
export const firstQuery = () => n_before;

/**
 * The number of keys that a query sees; 0 for a token that is only a key.
 * @param {number} query
 * @param {number} [side] of a pooled picture, of which this is a row
 */
export const keysOf = (query, side = query < n_before ? 0 : n_keys) => (n_keys ? side : query + 1);

/** The number of cells in the rows of the first n tokens. @param {number} n */
export const cells = (n) => (n_keys ? Math.max(0, n - n_before) * n_keys : (n * (n + 1)) / 2);

/** The number of tokens whose rows hold this many cells. @param {number} count */
export const rowsOf = (count) => (n_keys ? n_before + count / n_keys : Math.round((Math.sqrt(8 * count + 1) - 1) / 2));

/** The rows and columns of a picture of n tokens. @param {number} n */
export const sizeOf = (n) => ({ rows: Math.max(0, n - n_before), columns: n_keys || n });

const MAX_DECADES = 12; // powers of ten below 1 that are counted separately
const MAX_BELOW_FLOOR = 0.02; // the fraction of the weights that may lie below the floor

/** The exact weights of one picture; rows are added while the text is written. */
export class HeadWeights {
  #decades = new Float64Array(MAX_DECADES + 1); // how many weights there are per power of ten

  /** @param {number} [window] how many tokens a query sees, itself included */
  constructor(window = Infinity) {
    this.window = window;
    this.rows = 0;
    this.values = new Float32Array(1024);
  }

  /** @param {Float32Array} floats whole rows to add after the existing ones */
  append(floats) {
    const used = cells(this.rows);
    if (used + floats.length > this.values.length) {
      const larger = new Float32Array(Math.max(2 * this.values.length, used + floats.length));
      larger.set(this.values.subarray(0, used));
      this.values = larger;
    }
    this.values.set(floats, used);
    for (const weight of floats) {
      if (weight > 0) this.#decades[Math.min(MAX_DECADES, Math.floor(-Math.log10(weight)))]++;
    }
    this.rows = rowsOf(used + floats.length);
  }

  /**
   * @param {number} query
   * @param {number} key
   */
  at(query, key) {
    return key < keysOf(query) ? this.values[cells(query) + key] : 0;
  }

  /** Whether a query sees a key. @param {number} query @param {number} key */
  sees(query, key) {
    return key < keysOf(query) && key > query - this.window;
  }

  /** The weights of the keys up to a query, or of all in a rectangle. @param {number} query */
  row(query) {
    return this.values.subarray(cells(query), cells(query + 1));
  }

  /** A power of ten below which hardly any weight lies: the weakest colour of a logarithmic scale. */
  get floor() {
    const total = this.#decades.reduce((sum, count) => sum + count, 0);
    let below = total;
    let decade = 0;
    while (decade < MAX_DECADES && below > MAX_BELOW_FLOOR * total) below -= this.#decades[decade++];
    return 10 ** -Math.max(decade, 2);
  }

  /**
   * The key from `first` on with the largest weight for this query.
   * @param {number} query
   */
  strongest(query, first = 0) {
    const start = cells(query);
    const end = keysOf(query);
    let best = Math.min(first, end - 1);
    for (let key = best + 1; key < end; key++) {
      if (this.values[start + key] > this.values[start + best]) best = key;
    }
    return best;
  }
}
