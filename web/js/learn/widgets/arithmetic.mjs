// The arithmetic behind a cell: the products of a dot product with their sum, or an exponential's share of its row.

import { make } from "../../lib/dom.mjs";
import { fixed, number } from "../../lib/numbers.mjs";
import { HeatTable } from "./heat_table.mjs";

/** @import { Part } from "./elements.mjs" */

/** @typedef {(row: number, column: number) => Node[]} Explain the elements that explain a cell */
/** @typedef {{ left: number[][], right: number[][], products: number[][][] }} DotTerms of a matrix product a b^T */
/**
 * @typedef {object} SoftmaxTerms of each row
 * @property {(number | null)[][]} scores null for minus infinity
 * @property {number[]} largest
 * @property {number[][]} exponentials
 * @property {number[]} sums
 */
/** @typedef {{ r: number, c: number, total: number, title: Part[] }} Explained a cell with its value */

export const AXES = "this token (query) ↓ looks at that token (key) →"; // of a table of scores or weights

/** Several tables, of which one cell at a time is explained below them. */
export class Arithmetic {
  /** @type {Map<HeatTable, Explain>} */
  #tables = new Map();
  /** @type {HeatTable | null} */
  #chosen = null;

  constructor() {
    const hint = "Click any cell, or move with the arrow keys, to see the arithmetic behind it.";
    this.hint = make("p", { class: "hl-hint" }, hint);
    this.element = make("div", { class: "hl-unfold", "aria-live": "polite" });
  }

  /**
   * A table whose cells can be explained.
   * @param {{ name: string, axes?: string, hole?: string, digits?: number, explain: Explain }} options
   */
  table({ explain, ...options }) {
    const table = new HeatTable({
      ...options,
      choose: () => {
        this.hint.hidden = true;
        this.#take(table);
      },
    });
    this.#tables.set(table, explain);
    return table;
  }

  /** @param {HeatTable} table */
  #take(table) {
    this.#chosen = table;
    for (const other of this.#tables.keys()) other.outline(other === table);
    const explain = this.#tables.get(table);
    this.element.replaceChildren(...(explain?.(...table.place) ?? []), this.hint);
  }

  /**
   * Explain a cell before one was clicked, or the chosen one again with new numbers.
   * @param {HeatTable} table
   * @param {[row: number, column: number]} place
   */
  update(table, place) {
    if (!this.#chosen) table.startAt(place);
    this.#take(this.#chosen ?? table);
  }
}

/** A word of a pair of query and key. @param {string} name */
export const named = (name) => make("b", { class: "hl-side" }, name);

/** “this” (query) looks at “that” (key). @param {string} query @param {string} key */
export const looks = (query, key) => [named(query), " (query) looks at ", named(key), " (key)"];

/** A number in a box, with what it is above it. @param {string} words @param {string} value */
const termBox = (words, value) => make("span", { class: "hl-term" }, make("small", {}, words), make("span", {}, value));

/** @param {string} value */
export const result = (value) => make("span", { class: "hl-total" }, "= ", make("output", {}, value));

/**
 * Each term under its name, or under `left × right`, and their sum.
 * @param {object} sum
 * @param {Part[]} sum.title
 * @param {number[]} [sum.left]
 * @param {number[]} [sum.right]
 * @param {string[]} [sum.names]
 * @param {number[]} sum.products
 * @param {number} sum.total
 */
export function dotProduct({ title, left = [], right = [], names = [], products, total }) {
  const terms = products.map((product, i) => {
    const words = names[i] ?? `${number(left[i])} × ${number(right[i])}`;
    return make("span", { class: "hl-added" }, termBox(words, fixed(product)));
  });
  return [make("p", {}, ...title), make("div", { class: "hl-terms" }, ...terms, result(fixed(total)))];
}

/** A cell of a matrix product. @param {Explained & { terms: DotTerms }} cell */
export function dotCell({ terms, r, c, total, title }) {
  return dotProduct({ title, left: terms.left[r], right: terms.right[c], products: terms.products[r][c], total });
}

/**
 * `above / below` and its result.
 * @param {string} words what they are
 * @param {number} above
 * @param {number} below
 * @param {number} quotient
 */
export function division(words, above, below, quotient) {
  const term = termBox(words, `${fixed(above)} / ${fixed(below)}`);
  return make("div", { class: "hl-terms" }, term, result(fixed(quotient)));
}

/** An exponential divided by the sum of its row. @param {string} exponent @param {string[]} values */
export function exponentialShare(exponent, [exponential, sum, share]) {
  return make(
    "div",
    { class: "hl-terms" },
    termBox(`exp(${exponent})`, exponential),
    make("span", { class: "hl-plus" }, "/"),
    termBox("sum of the row's exponentials", sum),
    result(share),
  );
}

/** A cell of a softmax. @param {Explained & { terms: SoftmaxTerms }} cell */
export function softmaxCell({ terms, r, c, total, title }) {
  const score = terms.scores[r][c];
  const exponent = `${score === null ? "−∞" : fixed(score)} − ${fixed(terms.largest[r])}`;
  const values = [terms.exponentials[r][c], terms.sums[r], total].map((value) => fixed(value));
  const why = "The row's largest score is subtracted first: it cancels, and exp cannot overflow.";
  return [make("p", {}, ...title), exponentialShare(exponent, values), make("p", { class: "hl-hint" }, why)];
}
