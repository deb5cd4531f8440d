// The attention weights of one head as a matrix, each cell with its dot product.

import { make } from "../../../lib/dom.mjs";
import { Matrix } from "../../../lib/drawing/matrix.mjs";
import { exact, fixed, number } from "../../../lib/numbers.mjs";
import { LatestRequest } from "../../../lib/latest.mjs";
import { visible } from "../../../lib/words.mjs";
import { ask } from "../../server.mjs";
import { dotProduct, looks } from "../../../widgets/arithmetic.mjs";
import { paragraph } from "../../widgets/elements.mjs";
import { Stamp } from "../../../widgets/stamp.mjs";
import { StillStore } from "./still_store.mjs";

/** @import { Lesson } from "../../rung.js" */

export class OpenHead {
  #request = new LatestRequest();
  /** @type {any} */
  #data = null;
  /** @type {() => void} is called when a cell was chosen */
  chosen = () => {};

  /** @param {Lesson} lesson */
  constructor(lesson) {
    this.lesson = lesson;
    this.store = new StillStore((cell) => this.#explain(cell));
    this.explanation = make("div", { class: "hl-unfold", "aria-live": "polite" });
    this.stamp = new Stamp(
      "the ladder's causal_by_minus_infinity on the model's queries and keys, against the weights the model used",
      true,
    );
    const matrix = new Matrix(this.store);
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
      const cell = await this.#request.send((signal) => ask("cell", body, signal));
      if (!cell) return;
      const [from, to] = [query, key].map((position) => visible(this.store.tokens[position].text));
      const { score, scale, scaled, weight, model_weight: used, query: left, key: right, products } = cell;
      const softmax =
        `× ${number(scale)} (1 / √${left.length}) = ${number(scaled)}; ` +
        `softmax over the ${query + 1} keys so far gives `;
      // The result comes first: below a long sum it would be out of sight.
      this.explanation.replaceChildren(
        paragraph(`Score in L${layer} H${head}: `, ...looks(from, to), ` = ${fixed(score)}`),
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
