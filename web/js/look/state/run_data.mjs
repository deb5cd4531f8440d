// The data of one run that has arrived: tokens, thumbnails and metrics of all pictures, and the open picture's weights.

import { allHeads, isSamePicture } from "../../lib/heads.mjs";
import { N_METRICS, UNIFORM } from "../../lib/metrics.mjs";
import { Thumbnails } from "../../lib/drawing/thumbnails.mjs";
import { HeadWeights } from "../../lib/triangle.mjs";

/** @import { Frame, PictureId, Token } from "../../types.js" */
/** @import { Shape } from "../../lib/heads.mjs" */

const MIN_TRAINED_DISTANCE = 0.15; // total variation distance from uniform attention; below it a head is untrained
const MIN_ROWS = 8; // to judge a head

export class RunData {
  /** @type {Token[]} */
  tokens = [];
  /** @type {Token[]} */
  #first = [];
  rows = 0;
  /** @type {{ picture: PictureId | null, weights: HeadWeights }} those of the picture that was asked for last */
  #opened = { picture: null, weights: new HeadWeights() };

  /** @param {Shape & { windows?: (number | null)[] }} shape of the model */
  constructor({ n_layer, n_head, windows = [] }) {
    this.n_layer = n_layer;
    this.n_head = n_head;
    const pictures = n_layer ? n_layer * (n_head + 2) + 1 : 0;
    this.windows = Array.from({ length: n_layer }, (_, layer) => windows[layer] ?? Infinity);
    this.thumbnails = new Thumbnails(pictures, (picture) => this.windowOf(this.pictureAt(picture)));
    /** @type {Float32Array} */
    this.metrics = new Float32Array(pictures * N_METRICS);
    /** @type {{ rows: number, metrics: Float32Array }[]} metrics of rows that are not shown yet */
    this.later = [];
  }

  /**
   * Tokens that were just written. A frame sends them again, with more details.
   * @param {number} start
   * @param {Token[]} tokens
   */
  addTokens(start, tokens) {
    tokens.forEach((token, i) => (this.tokens[start + i] ??= token));
  }

  /** @returns {number[]} of all tokens */
  get ids() {
    return this.tokens.map((token) => token.id);
  }

  /** The first n tokens, or all if there are fewer; the same array while n is the same. @param {number} n */
  firstTokens(n) {
    const { tokens } = this;
    if (n >= tokens.length) return tokens;
    if (this.#first.length !== n) this.#first = tokens.slice(0, n);
    return this.#first;
  }

  /** @param {Frame} frame @param {number} shown rows */
  merge({ header, metrics, thumbnails }, shown) {
    header.tokens.forEach((text, i) => {
      const bytes = header.bytes?.[i];
      const token = { text, id: header.ids[i], logprob: header.logprobs[i], ...(bytes && { bytes }) };
      this.tokens[header.start + i] = token;
    });
    this.#first = [];
    this.thumbnails.merge(header, thumbnails);
    this.later.push({ rows: header.rows, metrics });
    this.show(this.rows ? shown : header.rows); // the first rows are shown at once
    this.rows = header.rows;
  }

  /** Use the metrics of the newest frame that holds no more than the shown rows. @param {number} rows */
  show(rows) {
    while (this.later.length && this.later[0].rows <= rows) {
      this.metrics = /** @type {{ metrics: Float32Array }} */ (this.later.shift()).metrics;
    }
  }

  /** A picture's weights, as far as they have arrived; another one's are forgotten. @param {PictureId} picture */
  weightsOf(picture) {
    const { picture: opened } = this.#opened;
    if (!opened || !isSamePicture(opened, picture))
      this.#opened = { picture, weights: new HeadWeights(this.windowOf(picture)) };
    return this.#opened.weights;
  }

  /** All heads. */
  get heads() {
    return allHeads(this);
  }

  /** The number of a picture, in the order of the server. @param {PictureId} picture */
  index([layer, column]) {
    return layer * (this.n_head + 2) + (layer === this.n_layer ? 0 : column);
  }

  /** The picture with this number. @param {number} index @returns {PictureId} */
  pictureAt(index) {
    return [Math.floor(index / (this.n_head + 2)), index % (this.n_head + 2)];
  }

  /**
   * How many tokens a query sees in a picture, itself included. Through a rollout, it sees what those it saw have seen.
   * @param {PictureId} picture
   */
  windowOf([layer, column]) {
    if (layer === this.n_layer) return Math.max(...this.windows);
    return column > this.n_head ? Infinity : this.windows[layer];
  }

  /**
   * @param {PictureId} picture
   * @param {number} index of the metric in a frame
   */
  metric(picture, index) {
    return this.metrics[this.index(picture) * N_METRICS + index];
  }

  /** Whether no head has learned where to look. */
  get untrained() {
    if (this.rows < MIN_ROWS) return false;
    return this.heads.every((head) => this.metric(head, UNIFORM) <= MIN_TRAINED_DISTANCE);
  }
}
