// A table of numbers whose cells are coloured and, where they can be explained, clicked.

import { make } from "../look/dom.mjs";
import { onThemeChange, palette } from "../look/palette.mjs";
import { fixed } from "./numbers.mjs";

const STRONGEST = 225; // of the 256 steps of a ramp: the darkest hide the mark of the chosen cell
const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
const LONGEST = 12;

export const word = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text);

export class Heat {
  /** `name` is its heading, `hole` what stands for a number that is none, `choose(row, column)` what a click does. */
  constructor({ name, axes = "", hole = "NaN", digits = 4, choose = null }) {
    Object.assign(this, { name, hole, digits, choose });
    this.place = [0, 0];
    this.table = make("table", { class: "hl-heat", "aria-label": name });
    this.note = make("span", { class: "hl-axes" }, axes);
    const caption = make("figcaption", {}, make("b", {}, name), " ", this.note);
    this.element = make("figure", { class: "hl-figure" }, caption, make("div", { class: "hl-scroll" }, this.table));
    if (choose) this.table.addEventListener("keydown", (event) => this.move(event));
    onThemeChange(() => this.paint());
  }

  /** `values` [row][column]; `columns` may be null for rows of plain numbers. */
  show({ rows, columns = null, values }) {
    this.values = values;
    this.labels = { rows, columns };
    const head = columns ? [make("thead", {}, make("tr", {}, make("td"), ...columns.map(columnHead)))] : [];
    this.cells = values.map((line, r) => line.map((value, c) => this.cell(value, r, c)));
    const body = this.cells.map((line, r) => make("tr", {}, rowHead(rows[r]), ...line));
    this.table.replaceChildren(...head, make("tbody", {}, ...body));
    this.place = [Math.min(this.place[0], values.length - 1), Math.min(this.place[1], values[0].length - 1)];
    this.paint();
  }

  cell(value, r, c) {
    const text = value === null ? this.hole : fixed(value, this.digits);
    if (!this.choose) return make("td", {}, text);
    const button = make("button", { type: "button", tabindex: -1, onclick: () => this.take(r, c) }, text);
    return make("td", {}, button);
  }

  paint() {
    if (!this.values) return;
    const most = Math.max(...this.values.flat().map((value) => Math.abs(value ?? 0)), 1e-9);
    const ramps = palette();
    this.values.forEach((line, r) =>
      line.forEach((value, c) => {
        const cell = this.cells[r][c];
        cell.classList.toggle("hl-hole", value === null);
        cell.classList.toggle("hl-zero", value === 0);
        if (!value) return;
        const ramp = value < 0 ? ramps.seen : ramps.looks;
        const step = Math.round((STRONGEST * Math.abs(value)) / most);
        cell.style.backgroundColor = ramp.css[step];
        cell.style.color = ramp.ink[step];
      }),
    );
    this.mark();
  }

  mark() {
    if (!this.choose) return;
    for (const button of this.table.querySelectorAll("button")) button.tabIndex = -1;
    const [r, c] = this.place;
    const button = this.cells[r]?.[c]?.firstChild;
    if (button) button.tabIndex = 0;
  }

  /** Outline the chosen cell, or none. */
  outline(chosen) {
    for (const cell of this.table.querySelectorAll(".hl-chosen")) cell.classList.remove("hl-chosen");
    for (const button of this.table.querySelectorAll("[aria-pressed]")) button.removeAttribute("aria-pressed");
    if (!chosen) return;
    const cell = this.cells[this.place[0]][this.place[1]];
    cell.classList.add("hl-chosen");
    cell.firstChild.setAttribute("aria-pressed", "true");
  }

  take(r, c) {
    this.place = [r, c];
    this.mark();
    this.choose(r, c);
  }

  move(event) {
    const step = MOVES[event.key];
    if (!step) return;
    const r = Math.min(Math.max(this.place[0] + step[0], 0), this.values.length - 1);
    const c = Math.min(Math.max(this.place[1] + step[1], 0), this.values[0].length - 1);
    this.take(r, c);
    this.cells[r][c].firstChild.focus();
    event.preventDefault();
  }
}

const columnHead = (text) => make("th", { scope: "col", title: text }, word(text));
const rowHead = (text) => make("th", { scope: "row", title: text }, word(text));
