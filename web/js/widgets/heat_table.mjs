// A table of numbers whose cells are coloured and, if the table allows it, explained on a click or edited.

import { make } from "../lib/dom.mjs";
import { MAX_RAMP_SHADE, onThemeChange, palette } from "../lib/drawing/palette.mjs";
import { clamp, fixed, withoutZero } from "../lib/numbers.mjs";
import { shorten } from "../lib/words.mjs";
import { rangeInput, setRange } from "./controls.mjs";
import { fillTable, makeCell, makeTable, makeTitle } from "./table.mjs";
import { Roving } from "./roving.mjs";

/** @typedef {(number | null)[][]} Values by row and column; null for NaN or minus infinity */
/** @typedef {(row: number, column: number) => void} Choose */

const MAX_TITLE = 12; // characters of a title
const EXACT = 4; // digits of a number that is pointed at
const MAX_ROOMY = 7; // rows or columns; with more the cells are smaller, so that a rung stays short
const MAX_DIGITS_OF_WIDE = 3; // of a number in a table with more columns; a click shows all

/** A word, shortened for a title or a chip. @param {string} text */
export const shortWord = (text) => shorten(text, MAX_TITLE);

export class HeatTable {
  /** @type {HTMLTableCellElement[][]} */
  #cells = [];
  /** @type {Values} */
  #values = [];
  /** @type {[row: number, column: number]} the chosen cell, or the one that Tab reaches */
  #place = [0, 0];
  /** @type {Edit | null} changes a number, if the visitor may */
  edit = null;
  /** @type {Choose | null} explains a cell without choosing it */
  point = null;
  /** @type {Edit | null} the one the cells were made for */
  #editBuilt = null;

  /**
   * @param {object} options
   * @param {string} options.name
   * @param {string} [options.axes] what rows and columns are
   * @param {string | ((row: number, column: number) => string)} [options.hole] what is shown for null
   * @param {number} [options.digits]
   * @param {Choose | null} [options.choose] called when a cell is clicked
   * @param {boolean} [options.sums] whether each row ends with its sum
   * @param {number | null} [options.darkest] the magnitude with the darkest colour; by default the largest one shown
   */
  constructor({ name, axes = "", hole = "NaN", digits = 4, choose = null, sums = false, darkest = null }) {
    this.sums = sums;
    this.darkest = darkest;
    this.hole = hole;
    this.digits = digits;
    this.choose = choose;
    this.table = makeTable({}, { class: "hl-heat", "aria-label": name });
    this.axes = make("span", { class: "hl-axes" }, axes);
    this.name = make("b", {}, name);
    const caption = make("figcaption", {}, this.name, " ", this.axes);
    this.element = make("figure", { class: "hl-figure" }, caption, make("div", { class: "hl-scroll" }, this.table));
    const columns = () => this.size[1];
    const buttons = () => [...this.table.querySelectorAll("button")];
    const choosePlace = (/** @type {number} */ at) => this.select(Math.floor(at / columns()), at % columns());
    this.roving = new Roving(this.table, buttons, { columns, choose: choosePlace });
    onThemeChange(() => this.paint());
  }

  /** @param {string} name */
  rename(name) {
    this.name.textContent = name;
    this.table.setAttribute("aria-label", name);
  }

  /** The chosen cell, or the one that Tab reaches. */
  get place() {
    return this.#place;
  }

  /**
   * Choose a cell without a click; the nearest one if it does not exist.
   * @param {[row: number, column: number]} place
   */
  startAt([row, column]) {
    this.#place = this.#nearest(row, column);
  }

  /**
   * @param {object} table
   * @param {string[]} table.rows
   * @param {string[] | null} [table.columns]
   * @param {Values} table.values
   */
  show({ rows, columns = null, values }) {
    const isKept =
      this.edit &&
      this.edit === this.#editBuilt &&
      values.length === this.#cells.length &&
      values[0].length === this.#cells[0]?.length;
    const hadFocus = this.table.contains(document.activeElement);
    this.#values = values;
    if (isKept) this.#renew(rows, columns);
    else this.#build(rows, columns);
    this.startAt(this.#place);
    this.paint();
    if (hadFocus) this.#buttonAt(...this.#place)?.focus({ preventScroll: true });
  }

  /** @param {string[]} rows @param {string[] | null} columns */
  #build(rows, columns) {
    this.#editBuilt = this.edit;
    this.#cells = this.#values.map((line, r) => line.map((value, c) => this.makeCell(value, r, c)));
    const titles = columns && [...columns, ...(this.sums ? ["Σ row"] : [])].map(columnTitle);
    const [nRows, nColumns] = this.size;
    this.element.classList.toggle("hl-dense", Math.max(nRows, nColumns) > MAX_ROOMY);
    this.element.classList.toggle("hl-wide", nColumns > MAX_ROOMY);
    fillTable(this.table, {
      ...(titles && { titles: [makeCell(""), ...titles] }),
      rows: this.#cells.map((line, r) => [rowTitle(rows[r]), ...line, ...this.#sumOf(this.#values[r])]),
    });
  }

  /**
   * Put new numbers into the existing cells, one of which may be being dragged.
   * @param {string[]} rows
   * @param {string[] | null} columns
   */
  #renew(rows, columns) {
    columns?.forEach((name, c) => this.table.tHead?.rows[0].cells[c + 1].replaceWith(columnTitle(name)));
    this.#cells.forEach((line, r) => {
      line[0].parentElement?.firstElementChild?.replaceWith(rowTitle(rows[r]));
      line.forEach((cell, c) => {
        const shown = /** @type {HTMLElement} */ (cell.firstElementChild ?? cell);
        const value = this.#values[r][c];
        shown.textContent = this.#written(value, r, c);
        if (this.digits < EXACT && value !== null) shown.title = fixed(value, EXACT);
      });
    });
  }

  /** @param {number | null} value @param {number} row @param {number} column */
  #written(value, row, column) {
    if (value !== null) return this.#inPlace(value, this.digits);
    return typeof this.hole === "string" ? this.hole : this.hole(row, column);
  }

  /** A number as it fits into its column. @param {number} value @param {number} [digits] */
  #inPlace(value, digits = 4) {
    if (this.size[1] <= MAX_ROOMY) return fixed(value, digits);
    return withoutZero(fixed(value, Math.min(digits, MAX_DIGITS_OF_WIDE)));
  }

  /** @param {(number | null)[]} line */
  #sumOf(line) {
    if (!this.sums) return [];
    const total = line.reduce((/** @type {number} */ sum, value) => sum + (value ?? NaN), 0);
    return [makeCell(Number.isNaN(total) ? "NaN" : this.#inPlace(total, this.digits), { class: "hl-sum-of-row" })];
  }

  /** @param {number} row @param {number} column */
  valueAt(row, column) {
    return this.#values[row]?.[column] ?? null;
  }

  /** The size of the table: rows and columns. */
  get size() {
    return [this.#values.length, this.#values[0]?.length ?? 0];
  }

  /** @param {number} row @param {number} column @returns {Element | null} */
  cellAt(row, column) {
    return this.#cells[row]?.[column] ?? null;
  }

  /** The cell that an element is in. @param {EventTarget | null} target @returns {[number, number] | null} */
  cellOf(target) {
    const cell = target instanceof Element ? target.closest("td") : null;
    const row = this.#cells.findIndex((line) => cell && line.includes(cell));
    return cell && row >= 0 ? [row, this.#cells[row].indexOf(cell)] : null;
  }

  /** Mark a cell as a term of a sum. @param {[number, number]} place @param {string} css @param {number} i */
  light([row, column], css, i) {
    const cell = this.#cells[row]?.[column];
    cell?.classList.add(css);
    cell?.style.setProperty("--i", String(i));
  }

  /** @param {...string} css */
  unlight(...css) {
    for (const name of css) for (const cell of this.table.querySelectorAll(`.${name}`)) cell.classList.remove(name);
  }

  /**
   * @param {number | null} value
   * @param {number} row
   * @param {number} column
   */
  makeCell(value, row, column) {
    const text = this.#written(value, row, column);
    const title = this.digits < EXACT && value !== null ? fixed(value, EXACT) : "";
    if (!this.choose) return makeCell(text, { title });
    const onclick = () => this.select(row, column);
    const button = make("button", { type: "button", tabindex: -1, title, onclick }, text);
    if (this.edit && value !== null) {
      button.classList.add("hl-editable");
      const change = (/** @type {number} */ next) => this.edit?.(row, column, next);
      dragToChange(button, () => this.valueAt(row, column) ?? 0, change);
    }
    return makeCell(button);
  }

  paint() {
    if (!this.#values.length) return;
    const ramps = palette();
    const most = this.darkest ?? Math.max(...this.#values.flat().map((value) => Math.abs(value ?? 0)), 1e-9);
    this.#values.forEach((line, r) =>
      line.forEach((value, c) => {
        const cell = this.#cells[r][c];
        cell.classList.toggle("hl-hole", value === null);
        cell.classList.toggle("hl-zero", value === 0);
        if (!value) {
          cell.style.backgroundColor = cell.style.color = "";
          return;
        }
        const ramp = value < 0 ? ramps.seen : ramps.looks;
        ramp.paint(cell, Math.round((MAX_RAMP_SHADE * Math.abs(value)) / most));
      }),
    );
    this.markFocusable();
  }

  /** Make one cell reachable by Tab. */
  markFocusable() {
    this.roving.update(this.#buttonAt(...this.#place) ?? undefined);
  }

  /** Outline the chosen cell, or none. @param {boolean} isChosen */
  outline(isChosen) {
    for (const cell of this.table.querySelectorAll(".hl-chosen")) cell.classList.remove("hl-chosen");
    for (const button of this.table.querySelectorAll("[aria-pressed]")) button.removeAttribute("aria-pressed");
    if (!isChosen) return;
    const [row, column] = this.#place;
    this.#cells[row][column].classList.add("hl-chosen");
    this.#buttonAt(row, column)?.setAttribute("aria-pressed", "true");
  }

  /**
   * @param {number} row
   * @param {number} column
   */
  select(row, column) {
    this.#place = [row, column];
    this.markFocusable();
    this.choose?.(row, column);
  }

  /**
   * @param {number} row
   * @param {number} column
   */
  #buttonAt(row, column) {
    return this.#cells[row]?.[column]?.querySelector("button");
  }

  /**
   * @param {number} row
   * @param {number} column
   * @returns {[row: number, column: number]}
   */
  #nearest(row, column) {
    return [clamp(row, 0, this.#values.length - 1), clamp(column, 0, this.#values[0].length - 1)];
  }
}

/** @param {string} text */
const columnTitle = (text) => makeTitle(shortWord(text), { title: text });

/** @param {string} text */
const rowTitle = (text) => makeTitle(shortWord(text), { scope: "row", title: text });

const MAX_NUMBER = 10; // largest magnitude; the server accepts no larger numbers
const MAX_ON_SLIDER = 2; // largest magnitude on the slider
const PER_PIXEL = 0.01;
const CLICK_TOLERANCE = 4; // pixels that the pointer may move during a click

/** @typedef {(row: number, column: number, value: number) => void} Edit */

const hundredths = (/** @type {number} */ value) => Math.round(100 * clamp(value, -MAX_NUMBER, MAX_NUMBER)) / 100;

/** A field and a slider for one number, which stay while the number changes. */
export class CellEditor {
  /** @type {((value: number) => void) | null} */
  #change = null;

  constructor() {
    const range = {
      step: 0.01,
      min: -MAX_ON_SLIDER,
      max: MAX_ON_SLIDER,
      "aria-label": "Change this number",
    };
    this.field = make("input", { type: "number", step: 0.01, min: -MAX_NUMBER, max: MAX_NUMBER });
    this.slider = rangeInput(range);
    for (const input of [this.field, this.slider]) {
      input.addEventListener("input", () => {
        if (input.value === "" || !Number.isFinite(Number(input.value))) return;
        const value = hundredths(Number(input.value));
        if (input === this.field) setRange(this.slider, value);
        else this.field.value = String(value);
        this.#change?.(value);
      });
    }
    const label = make("label", {}, "Change this number: ", this.field);
    this.element = make("div", { class: "hl-editor" }, label, this.slider);
  }

  /** @param {number} value @param {(value: number) => void} change */
  show(value, change) {
    this.#change = change;
    const shown = Number(value.toFixed(4));
    if (document.activeElement !== this.field) this.field.value = String(shown);
    if (document.activeElement !== this.slider) setRange(this.slider, shown);
  }
}

/**
 * Let a number be changed by dragging its cell sideways.
 * @param {HTMLElement} cell
 * @param {() => number} read the number now
 * @param {(value: number) => void} change
 */
function dragToChange(cell, read, change) {
  let [from, start] = [0, 0];
  let [isDown, isDragged] = [false, false];
  cell.addEventListener("pointerdown", (event) => {
    [from, start, isDown, isDragged] = [event.clientX, read(), true, false];
  });
  cell.addEventListener("pointermove", (event) => {
    const moved = event.clientX - from;
    if (!isDown || (!isDragged && Math.abs(moved) < CLICK_TOLERANCE)) return;
    if (!isDragged) cell.setPointerCapture(event.pointerId);
    isDragged = true;
    change(hundredths(start + PER_PIXEL * moved));
  });
  const end = () => (isDown = false);
  cell.addEventListener("pointerup", end);
  cell.addEventListener("pointercancel", end);
  cell.addEventListener(
    "click",
    (event) => {
      if (isDragged) event.stopImmediatePropagation();
      isDragged = false;
    },
    true,
  );
}
