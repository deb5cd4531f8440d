// The attention weights of one head as a matrix, each cell with its dot product.

import { make } from "../../lib/dom.mjs";
import { Matrix } from "../../lib/drawing/matrix.mjs";
import { headName } from "../../lib/heads.mjs";
import { LatestRequest } from "../../lib/latest.mjs";
import { exact, fixed, number } from "../../lib/numbers.mjs";
import { DEFAULTS } from "../../lib/options.mjs";
import { HeadWeights } from "../../lib/triangle.mjs";
import { spokenPicture, visible } from "../../lib/words.mjs";
import { dotProduct, looks } from "../../widgets/arithmetic.mjs";
import { Stamp } from "../../widgets/stamp.mjs";
import { ask } from "../server.mjs";
import { paragraph } from "../widgets/elements.mjs";
import { signal } from "../../vendor/signals.mjs";

/** @import { Lesson } from "../rung.js" */
/** @import { Cell, LinkState, MatrixSource, PictureId, Token } from "../../types.js" */

export class OpenHead {
  #request = new LatestRequest();
  /** @type {any} */
  #data = null;
  /** @type {() => void} called when a cell is chosen */
  chosen = () => {};

  /** @param {Lesson} lesson */
  constructor(lesson) {
    this.lesson = lesson;
    this.store = new StillStore((cell) => this.#explain(cell));
    this.explanation = make("div", { class: "hl-unfold", "aria-live": "polite" });
    this.stamp = new Stamp(
      "the ladder’s causal_by_minus_infinity on the model’s queries and keys, compared with the weights the model used",
      true,
    );
    const matrix = new Matrix(this.store, this.store);
    this.elements = [make("div", { class: "hl-real" }, matrix.element, this.explanation), this.stamp.element];
  }

  /** @param {any} data */
  update(data) {
    this.#data = data;
    this.store.show(data);
    this.stamp.show(data.error, data.largest_error);
  }

  /** @param {{ query: number, key: number }} cell */
  async #explain({ query, key }) {
    this.chosen();
    const { layer, head } = this.#data;
    try {
      const body = { ...this.lesson.body, layer, head, query, key };
      const cell = await this.#request.send((aborted) => ask("cell", body, aborted));
      if (!cell) return;
      const [from, to] = [query, key].map((position) => visible(this.store.tokens[position].text));
      const { score, scale, scaled, weight, model_weight: used, query: left, key: right, products } = cell;
      const softmax =
        `× ${number(scale)} (1 / √${left.length}) = ${number(scaled)}; ` +
        `softmax over the ${query + 1} keys so far gives `;
      // The result comes first: below a long sum it would not be visible.
      this.explanation.replaceChildren(
        paragraph(`Score in ${headName([layer, head])}: `, ...looks(from, to), ` = ${fixed(score)}`),
        paragraph(softmax, make("b", {}, exact(weight)), `, and the model used ${exact(used)}.`),
        ...dotProduct({
          title: [`The score is a sum of ${left.length} products:`],
          left,
          right,
          products,
          total: score,
          few: 12,
        }),
      );
    } catch (error) {
      this.explanation.textContent = /** @type {Error} */ (error).message;
    }
  }
}

// The part of the workspace's store that a matrix needs, for a text that does not grow.

/** @typedef {{ query: number, key: number }} WholeCell */

/** @implements {MatrixSource} */
export class StillStore {
  view = { options: DEFAULTS };
  weights = new HeadWeights();
  step = null;
  /** @type {Token[]} */
  tokens = [];
  /** @type {PictureId} */
  open = [0, 0];
  #hover = signal(/** @type {WholeCell | null} */ (null));
  #locked = signal(/** @type {WholeCell | null} */ (null));
  #shown = signal(0); // how many heads were shown
  #text = { model: "", sha256: "", n_layer: 1, n_head: 1 };

  /** @param {(cell: WholeCell) => void} chosen called when a cell is locked */
  constructor(chosen) {
    this.chosen = chosen;
  }

  get drawn() {
    return [this.#shown.value];
  }

  get count() {
    return this.weights.rows;
  }

  get openName() {
    return spokenPicture(this.open, this.#text);
  }

  get queries() {
    return this.#locked.value ? [this.#locked.value.query] : [];
  }

  get focus() {
    return this.#hover.value ?? this.#locked.value;
  }

  /** @returns {LinkState} */
  get linkState() {
    const { model, sha256 } = this.#text;
    const ids = this.tokens.map((token) => token.id);
    const locked = this.#locked.value ? [this.#locked.value] : [];
    const { open, step } = this;
    const text = { model, sha256, ids, n_prompt: ids.length, head_mask: null, settings: {} };
    return { ...text, open, locked, step, options: DEFAULTS };
  }

  /** @param {Cell | null} cell */
  point(cell) {
    this.#hover.value = cell && this.#complete(cell);
  }

  /** @param {Cell | null} cell */
  lock(cell) {
    this.#locked.value = cell && this.#complete(cell);
    if (this.#locked.value) this.chosen(this.#locked.value);
  }

  /**
   * Show a head that the server has computed, and point at a cell of it, by default in the last row.
   * @param {any} data
   */
  show(data) {
    const { model, sha256, n_layer, n_head } = data;
    this.#text = { model, sha256, n_layer, n_head };
    this.tokens = data.tokens.map((/** @type {string} */ text, /** @type {number} */ i) => {
      return { text, id: data.ids[i], logprob: null };
    });
    this.weights = new HeadWeights();
    this.weights.append(Float32Array.from(data.weights));
    this.open = [data.layer, data.head];
    this.#hover.value = this.#locked.value = null; // they pointed at tokens of the previous text
    this.#shown.value = this.#shown.peek() + 1;
    const query = data.query ?? this.count - 1;
    this.lock({ query, key: data.key ?? this.weights.strongest(query, Math.min(1, query)) });
  }

  /** @param {Cell} cell @returns {WholeCell} */
  #complete({ query, key }) {
    return { query, key: key ?? this.weights.strongest(query) };
  }
}
