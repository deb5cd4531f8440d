// What a matrix draws unless it is told otherwise: the weights of a picture.

import { make } from "../dom.mjs";
import { exact, full, weightText } from "../numbers.mjs";
import { sizeOf } from "../triangle.mjs";
import { sentence, visible } from "../words.mjs";
import { layout } from "./axes.mjs";
import { TrianglePainter } from "./images.mjs";
import { palette } from "./palette.mjs";
import { Scale } from "./scale.mjs";

/** @import { MatrixCells, MatrixSelection, MatrixSource } from "../../types.js" */
/** @import { Context } from "./axes.mjs" */

/** Whether only the tokens of the cell in focus are named if there is no room for all. @param {MatrixSource} store */
export const isPlain = (store) => store.view.options.details === false;

/** @implements {MatrixCells} */
export class WeightCells {
  #painter = new TrianglePainter();

  /** @param {MatrixSource} store @param {MatrixSelection} selection */
  constructor(store, selection) {
    this.store = store;
    this.selection = selection;
  }

  /** How many tokens are drawn: without details, those up to the selected step, as in the tiles. */
  get count() {
    const { count } = this.store;
    const { step, focus } = this.selection;
    if (!isPlain(this.store) || step === null) return count;
    return Math.min(count, Math.max(step, (focus?.query ?? -1) + 1));
  }

  /** @param {Context} context @param {number} n @param {number} width */
  place(context, n, width) {
    return layout(context, this.store.tokens, n, width, isPlain(this.store));
  }

  /** A pixel that covers several cells shows the largest. @param {number} n @param {number} size */
  paint(n, size) {
    const { rows, columns } = sizeOf(n);
    const factor = (/** @type {number} */ side) =>
      Math.max(1, Math.ceil((side - 1) / (size * (window.devicePixelRatio || 1))));
    const { looks } = palette();
    return this.#painter.paint(this.store.weights, n, Scale.of(this.store), looks, factor(columns), factor(rows));
  }

  /** @param {number} query @param {number} key @param {boolean} isLocked */
  read(query, key, isLocked) {
    const { weights } = this.store;
    const weight = weights.at(query, key);
    const number = weightText(weight, isLocked ? full : exact);
    const text = weights.sees(query, key) ? number : "outside this layer’s window";
    return { text, data: { weight: String(weight) }, then: this.#predicted(query + 1) };
  }

  /** What a row says about the token after its query, not always the most probable. @param {number} position */
  #predicted(position) {
    const token = this.store.tokens[position];
    if (!token) return [];
    const name = ["“", make("b", {}, visible(token.text)), `” ${position}`];
    if (token.logprob == null) return ["next comes ", ...name];
    return ["next comes ", ...name, `, to which this row gives probability ${exact(Math.exp(token.logprob))}`];
  }

  /** @param {number} query @param {number} key */
  say(query, key) {
    return sentence(this.store.tokens, query, key, this.store.weights.at(query, key));
  }

  /** @param {number} position */
  nameOf(position) {
    return String(position);
  }
}
