// Four measures of what one head takes from each key, side by side, in the order of any of them.

import { make, setFlag } from "../../../lib/dom.mjs";
import { exact, fixed } from "../../../lib/numbers.mjs";
import { visible } from "../../../lib/words.mjs";
import { largestOf } from "./contributions.mjs";
import { amountCell, signed, signedCell } from "./signed_bar.mjs";

/** @import { HeadLenses, KeyMeasures, MeasureName, Measures } from "./answers.js" */
/** @import { Store } from "../../state/store.mjs" */

/** @typedef {(value: number, largest: number) => HTMLElement} Cell */

/** @type {Record<MeasureName, { title: string, help: string, cell: Cell }>} */
export const MEASURES = {
  weight: {
    title: "weight",
    help: "The attention weight: where the head looks. It does not say how much it takes from there.",
    cell: (value, largest) => amountCell(value, largest, exact(value)),
  },
  norm: {
    title: "norm",
    help:
      "The length of weight × value × W_O, the vector that the key adds to the residual stream (Kobayashi et al. " +
      "2020): how much is moved, but not what for.",
    cell: (value, largest) => amountCell(value, largest, fixed(value, 3)),
  },
  attribution: {
    title: "to logit",
    help: "What that vector adds to the next token’s logit, directly: what later layers make of it is not counted.",
    cell: (value, largest) => signedCell(value, largest, signed(value, 3)),
  },
  loss_change: {
    title: "if cut",
    help:
      "How much the loss of the next token changes, in nats, when this one weight is set to 0 and the others stay as " +
      "they are. Everything after it is computed again. Positive: without it the token is less probable.",
    cell: (value, largest) => signedCell(value, largest, signed(value, 3)),
  },
};
export const NAMES = /** @type {MeasureName[]} */ (Object.keys(MEASURES));
const NOISE = 0.005; // the least number whose bar fills its cell, so that rounding does not look like much
const SHOWN = 12; // keys, unless all are wanted

export class KeysTable {
  /** @type {MeasureName | ""} the measure by whose size the keys are ordered, "" for their order in the text */
  #order = "weight";
  #isWhole = false;
  /** @type {HeadLenses | null} */
  #answer = null;

  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    this.table = make("table", { class: "hs-answer-table hs-keys", "data-table": "keys" });
    this.more = make("button", { type: "button", class: "hs-small", onclick: () => this.toggle() });
    this.buttons = make("p", { class: "hs-controls" }, this.more);
    const scroll = make("div", { class: "hs-answer-scroll" }, this.table);
    this.element = make("div", { class: "hs-answer-part" }, scroll, this.buttons);
    this.table.addEventListener("pointerover", (event) => this.point(event.target));
    this.table.addEventListener("pointerleave", () => store.point(null));
  }

  /** @param {HeadLenses} answer */
  show(answer) {
    this.#answer = answer;
    this.draw();
  }

  toggle() {
    this.#isWhole = !this.#isWhole;
    this.draw();
  }

  /** @param {MeasureName | ""} name */
  sortBy(name) {
    this.#order = name;
    this.draw();
    /** @type {HTMLElement | null} */ (this.table.querySelector(`button[data-order="${name}"]`))?.focus();
  }

  draw() {
    const answer = this.#answer;
    if (!answer) return;
    const order = this.#order;
    const keys = [...answer.keys];
    if (order) keys.sort((a, b) => Math.abs(b[order]) - Math.abs(a[order]));
    const shown = this.#isWhole ? keys : keys.slice(0, SHOWN);
    const largest = NAMES.map((name) => Math.max(largestOf(keys.map((key) => key[name])), NOISE));
    /** @param {Measures} values @param {number[]} most */
    const cells = (values, most) => NAMES.map((name, i) => MEASURES[name].cell(values[name], most[i]));
    const rows = shown.map((key) => make("tr", { "data-key": key.position }, this.title(key), ...cells(key, largest)));
    const none = NAMES.map(() => 0);
    const sums = make("tr", { class: "hs-sum" }, make("th", { scope: "row" }, "all keys"), ...cells(answer.sums, none));
    sums.title =
      "The norm is that of all vectors together, which may cancel. The changes are those of edges cut singly.";
    const headings = [this.heading(""), ...NAMES.map((name) => this.heading(name))];
    this.table.replaceChildren(
      make("caption", { class: "hs-hidden" }, `What L${answer.layer} H${answer.head} takes from each token`),
      make("thead", {}, make("tr", {}, ...headings)),
      make("tbody", {}, ...rows, sums),
    );
    this.more.hidden = keys.length <= SHOWN;
    this.more.textContent = this.#isWhole ? `Show the first ${SHOWN}` : `Show all ${keys.length} tokens`;
  }

  /** A title that sorts. @param {MeasureName | ""} name */
  heading(name) {
    const words = name ? MEASURES[name].title : "token (key)";
    const button = make("button", { type: "button", "data-order": name, onclick: () => this.sortBy(name) }, words);
    button.title = `${name ? `${MEASURES[name].help} ` : ""}Click to sort by ${name ? "size" : "position"}.`;
    const isOrder = name === this.#order;
    return make("th", { scope: "col", "aria-sort": isOrder && (name ? "descending" : "ascending") }, button);
  }

  /** A key, whose cell is locked where it is clicked. @param {KeyMeasures} key */
  title({ position, text }) {
    const { store } = this;
    const query = this.#answer?.position ?? 0;
    const onclick = () => store.lock({ query, key: position });
    const button = make("button", { type: "button", class: "hs-alternative", onclick }, visible(text));
    button.setAttribute("aria-label", `“${visible(text)}” at position ${position}: pin this cell`);
    return make("th", { scope: "row" }, button, make("small", {}, String(position)));
  }

  /** @param {EventTarget | null} target */
  point(target) {
    const row = target instanceof Element ? /** @type {HTMLElement | null} */ (target.closest("[data-key]")) : null;
    const query = this.#answer?.position;
    if (query !== undefined) this.store.point(row ? { query, key: Number(row.dataset.key) } : null);
  }

  /** Mark the key that is described elsewhere. @param {number | null} key */
  mark(key) {
    for (const row of /** @type {NodeListOf<HTMLElement>} */ (this.table.querySelectorAll("[data-key]"))) {
      setFlag(row, "data-here", Number(row.dataset.key) === key);
    }
  }
}
