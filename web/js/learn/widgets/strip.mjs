// A long vector as a strip of coloured cells. Pointing at a cell shows its number.

import { ARROWS, make } from "../../lib/dom.mjs";
import { MAX_RAMP_SHADE, onThemeChange, palette } from "../../lib/drawing/palette.mjs";
import { clamp, fixed } from "../../lib/numbers.mjs";
import { TableView } from "../../widgets/table_view.mjs";
import { PHONE_WIDTH } from "./elements.mjs";
import { fillRows, makeTable } from "../../widgets/table.mjs";

const [MAX_COLUMNS, MAX_PHONE_COLUMNS] = [128, 64]; // the maximum number of cells in a line, and on a phone
const IN_A_ROW = 8; // numbers in a row of the table
const [CELL, LINE] = [8, 15]; // pixels of the canvas

/** @typedef {(strip: Strip, index: number) => void} Choose */

export class Strip {
  /** @type {number[]} */
  values = [];
  index = 0;
  /** @type {Set<number>} */
  #lit = new Set();
  #isChosen = false;

  /**
   * @param {string} stage as the server knows it
   * @param {string} name
   * @param {Choose} choose
   */
  constructor(stage, name, choose) {
    this.stage = stage;
    this.name = name;
    this.choose = choose;
    this.canvas = make("canvas", { class: "hl-strip", tabindex: 0, role: "slider", "aria-label": name });
    this.status = make("span", { class: "hl-strip-value" });
    this.size = make("span", { class: "hl-axes" });
    this.rows = makeTable({ name });
    this.table = new TableView(`Show ${name} as a table`, () => this.#drawTable(), this.rows);
    const caption = make(
      "figcaption",
      {},
      make("b", {}, name),
      " ",
      this.size,
      " ",
      this.table.toggle,
      " ",
      this.status,
    );
    this.element = make("figure", { class: "hl-figure" }, caption, this.canvas, this.table.element);
    this.canvas.addEventListener(
      "pointermove",
      (event) => event.pointerType === "mouse" && this.#take(this.#at(event)),
    );
    this.canvas.addEventListener("click", (event) => this.#take(this.#at(event)));
    this.canvas.addEventListener("keydown", (event) => this.#move(event));
    onThemeChange(() => this.draw());
  }

  /** @param {number[]} values @param {string} [note] */
  show(values, note = "") {
    this.values = values;
    this.index = clamp(this.index, 0, values.length - 1);
    this.size.textContent = `${values.length} numbers${note ? `, ${note}` : ""}`;
    this.#say();
    this.draw();
    this.table.refresh();
  }

  /** Show the same numbers as a table, each row headed by the index of its first number. */
  #drawTable() {
    const rows = [];
    for (let first = 0; first < this.values.length; first += IN_A_ROW) {
      rows.push([first, ...this.values.slice(first, first + IN_A_ROW).map((value) => fixed(value))]);
    }
    fillRows(this.rows, rows);
  }

  get columns() {
    return Math.min(innerWidth > PHONE_WIDTH ? MAX_COLUMNS : MAX_PHONE_COLUMNS, this.values.length);
  }

  /** @param {MouseEvent} event */
  #at(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * this.columns);
    const line = Math.floor(((event.clientY - box.top) / box.height) * Math.ceil(this.values.length / this.columns));
    return clamp(line * this.columns + clamp(column, 0, this.columns - 1), 0, this.values.length - 1);
  }

  /** @param {number} index */
  #take(index) {
    if (index === this.index && this.#isChosen) return;
    this.index = index;
    this.#say();
    this.choose(this, index);
  }

  /** @param {KeyboardEvent} event */
  #move(event) {
    const move = ARROWS[event.key];
    if (!move) return;
    this.#take(clamp(this.index + move[0] * this.columns + move[1], 0, this.values.length - 1));
    event.preventDefault();
  }

  #say() {
    const value = fixed(this.values[this.index] ?? 0);
    this.status.textContent = `number ${this.index}: ${value}`;
    this.canvas.setAttribute("aria-valuenow", String(this.index));
    this.canvas.setAttribute("aria-valuemin", "0");
    this.canvas.setAttribute("aria-valuemax", String(this.values.length - 1));
    this.canvas.setAttribute("aria-valuetext", this.status.textContent);
  }

  /** Mark the chosen number, or the numbers `lit` behind it. @param {boolean} isChosen @param {number[]} lit */
  mark(isChosen, lit) {
    this.#isChosen = isChosen;
    this.#lit = new Set(lit);
    this.element.classList.toggle("hl-strip-lit", lit.length > 0);
    this.draw();
  }

  draw() {
    const { values, columns, canvas } = this;
    const context = canvas.getContext("2d");
    if (!context || !values.length) return;
    const lines = Math.ceil(values.length / columns);
    Object.assign(canvas, { width: columns * CELL, height: lines * LINE });
    canvas.style.maxWidth = `${columns * CELL}px`;
    const ramps = palette();
    const most = Math.max(...values.map(Math.abs), 1e-9);
    const style = getComputedStyle(canvas);
    values.forEach((value, i) => {
      const [x, y] = [(i % columns) * CELL, Math.floor(i / columns) * LINE];
      const ramp = value < 0 ? ramps.seen : ramps.looks;
      context.fillStyle = ramp.css[Math.round((MAX_RAMP_SHADE * Math.abs(value)) / most)];
      context.fillRect(x, y, CELL - 1, LINE - 1);
      const isHere = this.#isChosen && i === this.index;
      if (!isHere && !this.#lit.has(i)) return;
      context.strokeStyle = style.getPropertyValue(isHere ? "--hs-mark" : "--hs-left");
      context.lineWidth = 2;
      context.strokeRect(x + 1, y + 1, CELL - 3, LINE - 3);
    });
  }
}
