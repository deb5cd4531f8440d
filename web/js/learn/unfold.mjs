// The arithmetic behind a cell: the products of a dot product with their sum, or an exponential's share of its row.

import { make } from "../look/dom.mjs";
import { Heat } from "./heat.mjs";
import { fixed, number } from "./numbers.mjs";

/** Several tables of one picture, of which one cell at a time is taken apart below them. */
export class Unfolding {
  constructor() {
    this.heats = [];
    this.element = make("div", { class: "hl-unfold", "aria-live": "polite" });
    this.hint = make("p", { class: "hl-hint" }, "Click any cell, or move with the arrow keys, to see the arithmetic behind it.");
    this.chosen = null;
  }

  /** A table whose cells `explain(row, column)` as elements. */
  heat({ explain, ...options }) {
    const heat = new Heat({
      ...options,
      choose: () => {
        this.hint.hidden = true;
        this.take(heat);
      },
    });
    heat.explain = explain;
    this.heats.push(heat);
    return heat;
  }

  take(heat) {
    this.chosen = heat;
    for (const other of this.heats) other.outline(other === heat);
    this.element.replaceChildren(...heat.explain(...heat.place), this.hint);
  }

  /** Show a cell before anybody has clicked, or the chosen one again with new numbers. */
  renew(heat, place) {
    if (!this.chosen) heat.place = place.map((at, i) => Math.min(at, (i ? heat.values[0] : heat.values).length - 1));
    this.take(this.chosen ?? heat);
  }
}

export const AXES = "this token (query) ↓ looks at that token (key) →"; // of a table of scores or weights

const side = (name) => make("b", { class: "hl-side" }, name);

/** `title` parts, then each term with what it is, `left × right` unless it has `names`, and what they add up to. */
export function dotProduct({ title, left, right, names = null, products, total }) {
  const terms = products.map((product, i) =>
    make(
      "span",
      { class: "hl-added" },
      make(
        "span",
        { class: "hl-term" },
        make("small", {}, names?.[i] ?? `${number(left[i])} × ${number(right[i])}`),
        make("span", {}, fixed(product)),
      ),
    ),
  );
  const sum = make("span", { class: "hl-total" }, "= ", make("output", {}, fixed(total)));
  return [make("p", {}, ...title), make("div", { class: "hl-terms" }, ...terms, sum)];
}

/** A cell of `a b^T`, from what the server sent as {left, right, products}. */
export function dotCell({ terms, r, c, total, title }) {
  return dotProduct({ title, left: terms.left[r], right: terms.right[c], products: terms.products[r][c], total });
}

/** `above / below`, in `words` what they are, and the result. */
export function division(words, above, below, result) {
  const term = make("span", { class: "hl-term" }, make("small", {}, words), make("span", {}, `${fixed(above)} / ${fixed(below)}`));
  const total = make("span", { class: "hl-total" }, "= ", make("output", {}, fixed(result)));
  return make("div", { class: "hl-terms" }, term, total);
}

/** A cell of a softmax, from what the server sent as {scores, largest, exponentials, sums}. */
export function share({ terms, r, c, total, title }) {
  const score = terms.scores[r][c];
  const shown = score === null ? "−∞" : fixed(score);
  const exponential = terms.exponentials[r][c];
  return [
    make("p", {}, ...title),
    make(
      "div",
      { class: "hl-terms" },
      make(
        "span",
        { class: "hl-term" },
        make("small", {}, `exp(${shown} − ${fixed(terms.largest[r])})`),
        make("span", {}, fixed(exponential)),
      ),
      make("span", { class: "hl-plus" }, "/"),
      make(
        "span",
        { class: "hl-term" },
        make("small", {}, "sum of the row's exponentials"),
        make("span", {}, fixed(terms.sums[r])),
      ),
      make("span", { class: "hl-total" }, "= ", make("output", {}, fixed(total))),
    ),
    make("p", { class: "hl-hint" }, "The row's largest score is taken from each first: it cancels, and exp cannot overflow."),
  ];
}

/** “this” (query) looks at “that” (key). */
export const looks = (query, key) => [side(query), " (query) looks at ", side(key), " (key)"];
export const named = side;
