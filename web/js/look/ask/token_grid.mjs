// A picture with a column for each token of a text and a row for each layer. It is a table, so that it can be read
// aloud; Tab reaches one of its cells, and the arrow keys the others.

import { make, setFlag } from "../../lib/dom.mjs";
import { clamp } from "../../lib/numbers.mjs";
import { smallButton } from "../../widgets/controls.mjs";
import { fillTable, makeCell, makeRow, makeTable, makeTitle } from "../../widgets/table.mjs";
import { Roving } from "../../widgets/roving.mjs";

/** @import { Ramp } from "../../lib/drawing/palette.mjs" */
/** @import { Cell } from "../../widgets/table.mjs" */

const MAX_COLUMNS = 64; // tokens at once
const ROOM_BESIDE = 70; // CSS pixels that stay in view beside the chosen column

/**
 * What a cell shows.
 * @typedef {object} GridCell
 * @property {string} text
 * @property {string} label everything that is to be said of it
 * @property {Ramp} ramp
 * @property {number} shade
 * @property {string} [css]
 */

/**
 * @typedef {object} TokenPicture
 * @property {number} first the position of the first token
 * @property {number} end after the last one
 * @property {string} corner the title above the titles of the rows
 * @property {(position: number) => { content: Cell, label: string }} title of a column
 * @property {string[]} rows
 * @property {(position: number, row: number) => GridCell} cell
 * @property {{ title: string, text: (position: number) => string }} [foot] a last row
 */

/**
 * The first column of the window centred on a position.
 * @param {number} position
 * @param {{ first: number, end: number }} range
 */
export const windowStart = (position, { first, end }) =>
  clamp(position - MAX_COLUMNS / 2, first, Math.max(first, end - MAX_COLUMNS));

/** The name of a row: the residual stream at the start, or after a layer. @param {number} reading */
export const shortName = (reading) => (reading ? `L${reading - 1}` : "start");

export class TokenGrid {
  #start = 0;
  /** @type {[position: number, row: number]} the chosen cell */
  #cell = [0, 0];
  /** @type {TokenPicture | null} */
  #picture = null;

  /**
   * @param {string} name
   * @param {string} key of the table
   * @param {(position: number, row: number) => void} choose called when the visitor chooses a cell
   */
  constructor(name, key, choose) {
    this.name = name;
    this.chosen = choose;
    this.table = makeTable({}, { class: "hs-answer-table hs-tokens-grid", "data-table": key });
    this.scroll = make("div", { class: "hs-answer-scroll hs-tokens-scroll" }, this.table);
    const turn = (/** @type {number} */ by) => () => this.#open(this.#start + by);
    this.earlier = smallButton("Earlier tokens", turn(-MAX_COLUMNS));
    this.later = smallButton("Later tokens", turn(MAX_COLUMNS));
    this.turning = make("p", { class: "hs-controls" }, this.earlier, this.later);
    this.element = make("div", { class: "hs-answer-part" }, this.scroll, this.turning);
    this.table.addEventListener("click", ({ target }) => {
      /** @type {HTMLElement | null} */
      const cell = target instanceof Element ? target.closest("td[data-row]") : null;
      if (cell) this.#choose(Number(cell.dataset.position), Number(cell.dataset.row));
    });
    const columns = () => this.#positions().length || 1;
    const go = (/** @type {number} */ at) => this.#choose(this.#start + (at % columns()), Math.floor(at / columns()));
    this.roving = new Roving(this.table, () => [...this.table.querySelectorAll("button")], { columns, choose: go });
  }

  /** The chosen cell. */
  get cell() {
    return this.#cell;
  }

  /** The positions of the columns. */
  #positions() {
    const count = Math.min((this.#picture?.end ?? 0) - this.#start, MAX_COLUMNS);
    return Array.from({ length: Math.max(count, 0) }, (_, i) => this.#start + i);
  }

  /**
   * Show another picture.
   * @param {TokenPicture} picture
   * @param {number} position of its chosen cell
   * @param {number} row
   */
  show(picture, position, row) {
    this.#picture = picture;
    this.#cell = [clamp(position, picture.first, picture.end - 1), row];
    this.#open(windowStart(this.#cell[0], picture));
    this.reveal();
  }

  /** Choose another column. @param {number} position */
  select(position) {
    if (!this.#picture) return;
    this.#cell[0] = clamp(position, this.#picture.first, this.#picture.end - 1);
    if (this.#positions().includes(this.#cell[0])) this.#mark();
    else this.#open(windowStart(this.#cell[0], this.#picture));
    this.reveal();
  }

  /** Draw again, in the colours of the theme. */
  repaint() {
    this.#open(this.#start);
  }

  /** @param {number} position @param {number} row */
  #choose(position, row) {
    this.#cell = [position, row];
    this.#mark();
    this.chosen(position, row);
  }

  /** Scroll the chosen column into view, with what comes before it. */
  reveal() {
    // Once the table has a size. Only the table scrolls, so that the page stays where it is.
    requestAnimationFrame(() => {
      const { scroll } = this;
      /** @type {HTMLElement | null} */
      const title = this.table.querySelector(`th[data-position="${this.#cell[0]}"]`);
      const left = title?.offsetLeft ?? 0;
      scroll.scrollLeft = clamp(scroll.scrollLeft, left - scroll.clientWidth + ROOM_BESIDE, left - 2 * ROOM_BESIDE);
    });
  }

  /** Show the columns from `start` on. @param {number} start */
  #open(start) {
    const picture = this.#picture;
    if (!picture) return;
    const last = Math.max(picture.first, picture.end - MAX_COLUMNS);
    this.#start = clamp(start, picture.first, last);
    this.#draw(picture);
    this.turning.hidden = last === picture.first;
    this.earlier.disabled = this.#start === picture.first;
    this.later.disabled = this.#start === last;
  }

  /** @param {TokenPicture} picture */
  #draw({ corner, title, rows, cell, foot }) {
    const positions = this.#positions();
    this.table.style.setProperty("--columns", String(positions.length));
    const titles = positions.map((position) => {
      const { content, label } = title(position);
      return makeTitle(content, { "data-position": position, title: label });
    });
    const lines = rows.map((name, row) => [name, ...positions.map((at) => cellOf(cell(at, row), at, row))]);
    const last = foot && makeRow([foot.title, ...positions.map(foot.text)], { class: "hs-foot-row" });
    fillTable(this.table, { name: this.name, titles: [corner, ...titles], rows: [...lines, ...(last ? [last] : [])] });
    this.#mark();
  }

  /** Outline the chosen cell, which Tab reaches; if it is not shown, Tab reaches the first one. */
  #mark() {
    const [position, row] = this.#cell;
    /** @type {HTMLButtonElement | undefined} */
    let chosen;
    for (const cell of /** @type {NodeListOf<HTMLElement>} */ (this.table.querySelectorAll("[data-position]"))) {
      const isHere = Number(cell.dataset.position) === position;
      setFlag(cell, "data-here", isHere);
      const button = cell.querySelector("button");
      if (!button) continue;
      const isChosen = isHere && Number(cell.dataset.row) === row;
      setFlag(button, "aria-pressed", isChosen);
      if (isChosen) chosen = button;
    }
    this.roving.update(chosen);
  }
}

/** @param {GridCell} cell @param {number} position @param {number} row */
function cellOf({ text, label, ramp, shade, css }, position, row) {
  const button = make("button", { type: "button", tabindex: -1, "aria-label": label, title: label }, text);
  const cell = makeCell(button, { class: css, "data-row": row, "data-position": position });
  ramp.paint(cell, shade);
  return cell;
}
