// As much of the workspace's store as its matrix needs, for a text that does not grow.

import { DEFAULTS } from "../../../lib/options.mjs";
import { Topics } from "../../../lib/topics.mjs";
import { HeadWeights } from "../../../lib/triangle.mjs";
import { pictureName } from "../../../lib/words.mjs";

/** @import { Cell, LinkState, MatrixSource, Place, Token } from "../../../types.js" */

/** @typedef {{ query: number, key: number }} WholeCell */

/** @implements {MatrixSource} */
export class StillStore extends Topics {
  view = { options: DEFAULTS };
  weights = new HeadWeights();
  step = null;
  /** @type {Token[]} */
  tokens = [];
  /** @type {Place} */
  open = [0, 0];
  /** @type {WholeCell | null} */
  #hover = null;
  /** @type {WholeCell | null} */
  #locked = null;
  #text = { model: "", sha256: "", n_layer: 1, n_head: 1 };

  /** @param {(cell: WholeCell) => void} chosen is called when a cell is locked */
  constructor(chosen) {
    super();
    this.chosen = chosen;
  }

  get count() {
    return this.weights.rows;
  }

  get openName() {
    return pictureName(this.open, this.#text);
  }

  get queries() {
    return this.#locked ? [this.#locked.query] : [];
  }

  get focus() {
    return this.#hover ?? this.#locked;
  }

  /** @returns {LinkState} */
  get linkState() {
    const { model, sha256 } = this.#text;
    const ids = this.tokens.map((token) => token.id);
    const locked = this.#locked ? [this.#locked] : [];
    const { open, step } = this;
    const text = { model, sha256, ids, n_prompt: ids.length, head_mask: null, settings: {} };
    return { ...text, open, locked, step, options: DEFAULTS };
  }

  /** @param {Cell | null} cell */
  point(cell) {
    this.#hover = cell && this.#complete(cell);
    this.emit("focus");
  }

  /** @param {Cell | null} cell */
  lock(cell) {
    this.#locked = cell && this.#complete(cell);
    this.emit("focus");
    if (this.#locked) this.chosen(this.#locked);
  }

  /** Show a head that the server has computed. @param {any} data */
  show(data) {
    const { model, sha256, n_layer, n_head } = data;
    this.#text = { model, sha256, n_layer, n_head };
    this.tokens = data.tokens.map((/** @type {string} */ text, /** @type {number} */ i) => {
      return { text, id: data.ids[i], logprob: null };
    });
    this.weights = new HeadWeights();
    this.weights.append(Float32Array.from(data.weights));
    this.open = [data.layer, data.head];
    this.#hover = this.#locked = null; // the tokens they pointed at are gone
    this.emit("tokens", "weights", "open", "focus");
    const query = data.query ?? this.count - 1;
    this.lock({ query, key: this.weights.strongest(query, Math.min(1, query)) });
  }

  /** @param {Cell} cell @returns {WholeCell} */
  #complete({ query, key }) {
    return { query, key: key ?? this.weights.strongest(query) };
  }
}
