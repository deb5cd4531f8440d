// Two heads side by side: two of a trained model that differ, or two with random matrices.

import { make } from "../../lib/dom.mjs";
import { headName } from "../../lib/heads.mjs";
import { fixed, number } from "../../lib/numbers.mjs";
import { visible } from "../../lib/words.mjs";
import { AXES, dotProduct, looks, softmaxCell } from "../../widgets/arithmetic.mjs";
import { Stamp } from "../../widgets/stamp.mjs";
import { choice } from "./elements.mjs";
import { controls, paragraph, rowOf } from "./elements.mjs";
import { dropdown, smallButton } from "../../widgets/controls.mjs";

/** @import { Data } from "../data.js" */
/** @typedef {NonNullable<Data["many-heads"]["trained"]>} Trained */
/** @typedef {Trained["heads"][number]} Head */
/** @import { Arithmetic } from "../../widgets/arithmetic.mjs" */
/** @import { Lesson } from "../rung.js" */

const SIDES = [0, 1];
const MAX_SHOWN_TERMS = 8; // terms of a dot product that are shown before the rest is unfolded
const SIDE_NAMES = ["left head", "right head"];

export class TwoHeads {
  /**
   * @param {Lesson} lesson
   * @param {Arithmetic} arithmetic
   * @param {{ words: string, tables: Element[] }} random two heads with random matrices, and a description
   */
  constructor(lesson, arithmetic, random) {
    this.lesson = lesson;
    this.random = random;
    this.data = /** @type {Trained} */ (/** @type {unknown} */ (null)); // until a model has answered
    this.hasModel = false;
    /** @type {"trained" | "random"} */
    this.shown = lesson.kept.heads;
    this.status = make("p", { class: "hl-count", role: "status" });
    this.stamp = new Stamp(
      "both heads’ queries and keys through the steps of these lessons, compared with the model",
      true,
    );
    this.which = choice({
      label: "two heads",
      options: { trained: "trained", random: "random" },
      value: this.shown,
      change: (key) => {
        this.shown = lesson.kept.heads = key;
        this.show();
      },
    });
    this.tables = SIDES.map((side) =>
      arithmetic.table({
        name: `Trained head, ${["left", "right"][side]}`,
        axes: AXES,
        sums: true,
        explain: (r, c) => this.explain(this.data.heads[side], r, c),
      }),
    );
    this.captions = SIDES.map(() => make("p", { class: "hl-count" }));
    this.pickers = make("div", { class: "hl-controls" });
    this.trained = make("div", {});
    this.trained.append(
      this.pickers,
      rowOf(...SIDES.map((side) => make("div", {}, this.tables[side].element, this.captions[side]))),
      this.stamp.element,
    );
    this.randomRow = make("div", {}, rowOf(...random.tables));
    this.elements = [controls(this.which.element), this.status, this.trained, this.randomRow];
  }

  /** @param {Head} head @param {number} r @param {number} c */
  explain({ layer, head, weights, scale, query: queries, key: keys, weight_terms: terms }, r, c) {
    const [query, key] = [this.data.tokens[r], this.data.tokens[c]].map(visible);
    if (c > r) return [paragraph(...looks(query, key), " comes later: it is masked (rung 7), and has the weight 0.")];
    const [left, right] = [queries[r], keys[c]];
    const products = left.map((/** @type {number} */ value, /** @type {number} */ i) => value * right[i]);
    const total = products.reduce((/** @type {number} */ sum, /** @type {number} */ value) => sum + value, 0);
    const title = [`Score in ${headName([layer, head])}: `, ...looks(query, key)];
    const score = dotProduct({ title, left, right, products, total, few: MAX_SHOWN_TERMS });
    const words = `The score × ${number(scale)} (1 / √${left.length}) goes into the softmax:`;
    return [...score, ...softmaxCell({ terms, r, c, total: weights[r][c], title: [words] })];
  }

  /** @param {Head} head */
  habitsOf({ habits }) {
    const parts = Object.entries(habits).map(
      ([name, share]) => `${fixed(/** @type {number} */ (share), 2)} to ${name}`,
    );
    return `From the third token on, its average attention weight is ${parts.join(", ")}.`;
  }

  /** @param {number} side @param {string} name such as "4.2" */
  pick(side, name) {
    const pair = this.data.heads.map(({ layer, head }) => [layer, head]);
    pair[side] = name.split(".").map(Number);
    this.lesson.set({ pair });
  }

  showPickers() {
    const names = Object.fromEntries(
      Array.from({ length: this.data.n_layer * this.data.n_head }, (_, i) => {
        const [layer, head] = [Math.floor(i / this.data.n_head), i % this.data.n_head];
        return [`${layer}.${head}`, headName([layer, head])];
      }),
    );
    const lists = SIDES.map((side) => {
      const list = dropdown(SIDE_NAMES[side], names, (name) => this.pick(side, name));
      const { layer, head } = this.data.heads[side];
      list.value = `${layer}.${head}`;
      return make("label", { class: "hl-choice" }, make("span", {}, SIDE_NAMES[side]), list);
    });
    const again = smallButton("The two that differ most");
    again.addEventListener("click", () => this.lesson.set({ pair: null }));
    this.pickers.replaceChildren(...lists, again);
  }

  show() {
    const isTrained = this.shown === "trained" && this.hasModel;
    this.which.show(this.shown);
    this.trained.hidden = !isTrained;
    this.randomRow.hidden = isTrained;
    this.status.textContent = this.random.words;
    if (!isTrained) return;
    const tokens = this.data.tokens.map(visible);
    const rest = this.data.n_tokens > tokens.length ? `, the first ${tokens.length} tokens` : "";
    this.status.textContent =
      `Two heads of ${this.data.model}, a trained model, on your sentence${rest}. Their rows differ by ` +
      `${fixed(this.data.difference, 2)} on average: half the sum of |left − right| in a row, which is 0 for equal ` +
      "heads and 1 for heads that never look at the same token. The first row is left out. Weights above the " +
      "diagonal are 0 because this model may not look ahead; rung 7 shows how.";
    this.showPickers();
    this.data.heads.forEach((head, side) => {
      this.tables[side].rename(`${headName([head.layer, head.head])} of ${this.data.model}`);
      this.tables[side].show({ rows: tokens, columns: tokens, values: head.weights });
      this.captions[side].textContent = this.habitsOf(head);
    });
    this.stamp.show(Math.max(...this.data.heads.map(({ error }) => error)), 1e-4);
  }

  /** Show the server's answer; null without a model. @param {Trained | null} found */
  update(found) {
    if (found) this.data = found;
    this.hasModel = found !== null;
    this.which.element.hidden = !this.hasModel;
    this.show();
  }
}
