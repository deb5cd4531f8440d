// The arithmetic behind a cell: the products of a dot product and their sum, or an exponential's share of its row.

import { make, mouseOrTouch, setFlag } from "../lib/dom.mjs";
import { fixed, number } from "../lib/numbers.mjs";
import { CellEditor, HeatTable } from "./heat_table.mjs";
import { smallButton } from "./controls.mjs";

/** @typedef {Node | string} Part */

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

export const AXES = "query ↓ looks at key →"; // of a table of scores or weights

/** @typedef {[table: HeatTable, row: number, column: number]} Operand a cell that a number is computed from */
/** @typedef {(row: number, column: number) => Operand[][]} Operands each factor of a sum, term after term */
/** @import { Edit } from "./heat_table.mjs" */

const LIT = ["hl-left", "hl-right"]; // the first factors of a sum, and the second ones
const NOW = "hl-now";
const GAP = 8; // pixels between a table and the explanation below it

/** Several tables. One cell at a time is explained below them, and the cells it is computed from are highlighted. */
export class Arithmetic {
  /** @type {Map<HeatTable, { explain: Explain, operands: Operands | null }>} */
  #tables = new Map();
  /** @type {HeatTable | null} the table of the cell that was chosen */
  #chosen = null;
  /** @type {Operand[][]} */
  #lit = [];
  /** @type {EventTarget | null} what the mouse points at in a table */
  #pointed = null;
  /** @type {((table: HeatTable, place: [row: number, column: number]) => void) | null} gets the cell */
  shown = null;

  constructor() {
    const how = mouseOrTouch("Point at any number, click it or move with the arrow keys,", "Tap any number");
    const hint = `${how} to see how it is computed.`;
    this.hint = make("p", { class: "hl-hint" }, hint);
    this.editor = new CellEditor();
    this.body = make("div", { "aria-live": "polite" });
    const close = make("button", { type: "button", class: "hl-close", "aria-label": "Close" }, "×");
    this.element = make("div", { class: "hl-unfold" }, close, this.body);
    close.addEventListener("click", () => this.element.classList.remove("hl-pinned"));
    this.body.addEventListener("pointerover", (event) => this.#pointAtTerm(event.target));
    this.body.addEventListener("pointerleave", () => this.#pointAtTerm(null));
  }

  /**
   * A table whose cells can be explained.
   * @param {object} options
   * @param {string} options.name
   * @param {string} [options.axes]
   * @param {string | ((row: number, column: number) => string)} [options.hole]
   * @param {number} [options.digits]
   * @param {boolean} [options.sums]
   * @param {number | null} [options.darkest]
   * @param {Explain} options.explain
   * @param {Operands} [options.operands] the cells that a number is computed from
   * @param {Edit | null} [options.edit] changes a number, if the visitor may
   */
  table({ explain, operands, edit, ...options }) {
    const table = new HeatTable({
      ...options,
      choose: () => {
        this.hint.hidden = true;
        this.element.classList.add("hl-pinned");
        this.#select(table);
      },
    });
    table.edit = edit ?? null;
    table.point = (...place) => {
      if (this.element.classList.contains("hl-pinned")) return;
      table.startAt(place);
      this.#select(table);
    };
    if (edit) table.table.addEventListener("keydown", (event) => this.#type(table, event));
    table.table.addEventListener("click", () => this.#uncover(table));
    // Not "pointerover": a page that scrolls or grows under a resting mouse must not replace the chosen cell.
    table.table.addEventListener("pointermove", ({ target, pointerType, movementX, movementY }) => {
      if (pointerType !== "mouse" || target === this.#pointed || !(movementX || movementY)) return;
      this.#pointed = target;
      const place = table.cellOf(target);
      if (!place) return;
      this.#show(table, place);
      this.#pinBeside(table.cellAt(...place));
    });
    table.table.addEventListener("pointerleave", () => {
      this.#pointed = null;
      if (this.#chosen) this.#show(this.#chosen, this.#chosen.place);
    });
    this.#tables.set(table, { explain, operands: operands ?? null });
    return table;
  }

  /** Let a digit that is typed in a cell replace its number. @param {HeatTable} table @param {KeyboardEvent} event */
  #type(table, event) {
    const place = table.cellOf(event.target);
    if (!place || event.ctrlKey || event.metaKey || event.altKey || !/^[-.\d]$/.test(event.key)) return;
    table.select(...place);
    this.editor.field.select(); // the browser then types the digit there
  }

  /** Keep the explanation in view, unless it would then cover its cell. @param {Element | null} cell */
  #pinBeside(cell) {
    if (!cell || this.element.classList.contains("hl-pinned")) return;
    this.element.classList.add("hl-pinned");
    const [of, panel] = [cell, this.element].map((each) => each.getBoundingClientRect());
    if (of.bottom > panel.top && of.top < panel.bottom) this.element.classList.remove("hl-pinned");
  }

  /** Scroll if the explanation covers a part of the table. @param {HeatTable} of */
  #uncover(of) {
    const [table, panel] = [of.table, this.element].map((each) => each.getBoundingClientRect());
    if (table.bottom <= panel.top || table.top >= panel.bottom) return;
    scrollBy(0, Math.min(table.bottom, innerHeight) - panel.top + GAP);
  }

  /** Explain a number outside the tables. @param {Part[]} parts */
  open(...parts) {
    this.hint.hidden = true;
    this.element.classList.add("hl-pinned");
    this.#light([]);
    this.body.replaceChildren(...parts, this.hint);
  }

  /** @param {HeatTable} table */
  #select(table) {
    this.#chosen = table;
    for (const other of this.#tables.keys()) other.outline(other === table);
    this.#show(table, table.place);
  }

  /** @param {HeatTable} table @param {[row: number, column: number]} place */
  #show(table, [r, c]) {
    const { explain, operands } = this.#tables.get(table) ?? {};
    const value = table.valueAt(r, c);
    const isChosen = table === this.#chosen && String(table.place) === String([r, c]);
    const parts = [...(explain?.(r, c) ?? []), this.hint];
    const isEdited = isChosen && table.edit !== null && value !== null;
    if (isEdited) this.editor.show(value, (next) => table.edit?.(r, c, next));
    if (isEdited && this.editor.element.parentElement === this.body) {
      // The field that is being typed in stays in place.
      for (const child of [...this.body.children]) if (child !== this.editor.element) child.remove();
      this.editor.element.before(...parts);
    } else this.body.replaceChildren(...parts, ...(isEdited ? [this.editor.element] : []));
    this.shown?.(table, [r, c]);
    this.#light(operands?.(r, c) ?? []);
  }

  /** @param {Operand[][]} factors */
  #light(factors) {
    for (const table of this.#tables.keys()) table.unlight(...LIT, NOW);
    this.#lit = factors;
    factors.forEach((cells, side) => cells.forEach(([table, r, c], i) => table.light([r, c], LIT[side], i)));
  }

  /** Highlight the numbers of one term. @param {EventTarget | null} target */
  #pointAtTerm(target) {
    const term = target instanceof Element ? target.closest(".hl-added") : null;
    for (const table of this.#tables.keys()) table.unlight(NOW);
    if (!term?.parentElement) return;
    const i = [...term.parentElement.children].indexOf(term);
    for (const cells of this.#lit) {
      const [table, r, c] = cells[i] ?? [];
      if (table && r !== undefined && c !== undefined) table.light([r, c], NOW, i);
    }
  }

  /**
   * Explain a cell before any has been clicked, or the chosen cell again with new numbers.
   * @param {HeatTable} table
   * @param {[row: number, column: number]} place
   */
  update(table, place) {
    if (!this.#chosen) table.startAt(place);
    this.#select(this.#chosen ?? table);
  }
}

/** The cells of a row, as the factors of a sum. @param {HeatTable} table @param {number} r @returns {Operand[]} */
export const rowOf = (table, r) => Array.from({ length: table.size[1] }, (_, i) => [table, r, i]);

/** @param {HeatTable} table @param {number} c @returns {Operand[]} */
export const columnOf = (table, c) => Array.from({ length: table.size[0] }, (_, i) => [table, i, c]);

/** The word of a query or a key. @param {string} name */
export const named = (name) => make("b", { class: "hl-side" }, name);

/** “this” (query) looks at “that” (key). @param {string} query @param {string} key */
export const looks = (query, key) => [named(query), " (query) looks at ", named(key), " (key)"];

/** A number in a box under its name. @param {string} words @param {string} value */
const termBox = (words, value) => make("span", { class: "hl-term" }, make("small", {}, words), make("span", {}, value));

/**
 * Two factors, each in the colour in which its cell lights up.
 * @param {number} left
 * @param {number} right
 * @param {number} product
 */
function productBox(left, right, product) {
  /** @param {string} css @param {number} value */
  const factor = (css, value) => make("u", { class: css }, number(value));
  const small = make("small", {}, factor("hl-of-left", left), " × ", factor("hl-of-right", right));
  return make("span", { class: "hl-term" }, small, make("span", {}, fixed(product)));
}

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
 * @param {number} [sum.few] how many terms are shown until the visitor asks for all
 */
export function dotProduct({ title, left = [], right = [], names = [], products, total, few = Infinity }) {
  let soFar = 0;
  const terms = products.map((product, i) => {
    soFar += product;
    const box = names[i] ? termBox(names[i], fixed(product)) : productBox(left[i], right[i], product);
    if (i) box.append(make("i", { title: "the sum so far" }, `→ ${fixed(soFar)}`));
    const term = make("span", { class: "hl-added" }, box);
    term.style.setProperty("--i", String(i));
    return term;
  });
  const parts = [...terms, ...fold(terms, few), result(fixed(total))];
  return [make("p", {}, ...title), make("div", { class: "hl-terms" }, ...parts)];
}

/**
 * Hide all but the first terms behind a button, unless only a few would be hidden.
 * @param {HTMLElement[]} terms
 * @param {number} few
 */
function fold(terms, few) {
  if (terms.length < few + 3) return [];
  const toggle = () => show(button.getAttribute("aria-expanded") === "false");
  const button = smallButton("", toggle, { class: "hl-more" });
  /** @param {boolean} isOpen */
  const show = (isOpen) => {
    for (const term of terms.slice(few)) term.hidden = !isOpen;
    button.textContent = isOpen ? `only the first ${few}` : `+ ${terms.length - few} more`;
    setFlag(button, "aria-expanded", isOpen);
  };
  show(false);
  return [button];
}

/**
 * A cell of a matrix product, to which a bias may be added.
 * @param {Explained & { terms: DotTerms, bias?: number }} cell
 */
export function dotCell({ terms, r, c, total, title, bias }) {
  const [left, right, products] = [terms.left[r], terms.right[c], terms.products[r][c]];
  if (bias === undefined) return dotProduct({ title, left, right, products, total });
  const names = [...left.map((value, i) => `${number(value)} × ${number(right[i])}`), "bias"];
  return dotProduct({ title, names, products: [...products, bias], total });
}

/**
 * `above / below` and its result.
 * @param {string} words the label of the term
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
    termBox("sum of the row’s exponentials", sum),
    result(share),
  );
}

/** A cell of a softmax. @param {Explained & { terms: SoftmaxTerms }} cell */
export function softmaxCell({ terms, r, c, total, title }) {
  const score = terms.scores[r][c];
  const exponent = `${score === null ? "−∞" : fixed(score)} − ${fixed(terms.largest[r])}`;
  const values = [terms.exponentials[r][c], terms.sums[r], total].map((value) => fixed(value));
  const why = "The row’s largest score is subtracted first: it cancels, and exp cannot overflow.";
  return [make("p", {}, ...title), exponentialShare(exponent, values), make("p", { class: "hl-hint" }, why)];
}
