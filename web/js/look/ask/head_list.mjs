// Heads sorted by a number, as a table with bars; a click opens the head.

import { make } from "../../lib/dom.mjs";
import { pictureName } from "../../lib/words.mjs";
import { bar, smallButton } from "../../widgets/controls.mjs";
import { fillRows, makeCell, makeRow, makeTable, makeTitle } from "../../widgets/table.mjs";
import { whenever } from "../../lib/reactive.mjs";

/** @import { PictureId } from "../../types.js" */
/** @import { ShownText } from "../state/shown_text.mjs" */

const MAX_SHOWN_ROWS = 8; // rows, until the visitor asks for all of them
const MIN_SHOWN_NEGATIVE = 3; // of them, in a list from the largest value to the smallest one

/**
 * A row of the list: its bar shows the value, and `text` states it.
 * @typedef {object} HeadRow
 * @property {PictureId} picture
 * @property {number} value
 * @property {string} text
 * @property {number} [error] the standard error of the value, drawn below the bar
 */

/**
 * A check box in every row, which selects its head.
 * @typedef {object} Picking
 * @property {string} title of the column
 * @property {(name: string) => string} label of the check box of a head
 * @property {(picture: PictureId) => boolean} has
 * @property {(picture: PictureId) => void} toggle
 */

export class HeadList {
  /** @type {HeadRow[]} */
  #rows = [];
  #all = false;
  #hasTwoEnds = false;

  /**
   * @param {ShownText} store
   * @param {string} caption
   * @param {Picking} [picking] given if heads can be ticked
   */
  constructor(store, caption, picking) {
    this.store = store;
    this.picking = picking;
    this.column = makeTitle("", { colspan: 2 });
    this.table = makeTable({ name: caption, titles: ["head", this.column, ...(picking ? [picking.title] : [])] });
    this.more = smallButton("", () => this.toggle());
    this.element = make("div", { class: "hs-head-list" }, this.table, this.more);
    whenever(
      () => [store.open],
      () => this.mark(),
    );
  }

  toggle() {
    this.#all = !this.#all;
    this.draw();
  }

  /**
   * @param {string} column heading of the numbers
   * @param {HeadRow[]} rows in the order to show
   * @param {boolean} [hasTwoEnds] whether the last ones matter too, where their values are negative
   */
  show(column, rows, hasTwoEnds = false) {
    this.column.textContent = column;
    this.#hasTwoEnds = hasTwoEnds;
    this.#rows = rows;
    this.draw();
  }

  draw() {
    const values = this.#rows.map(({ value }) => value);
    const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
    this.table.style.setProperty("--zero", String(-low / (high - low || 1)));
    this.table.classList.toggle("hs-two-sided", low < 0);
    const shown = this.#all ? this.#rows : shortened(this.#rows, this.#hasTwoEnds);
    fillRows(
      this.table,
      shown.map((row) => this.makeRow(row, low, high - low || 1)),
    );
    this.more.hidden = this.#rows.length <= MAX_SHOWN_ROWS;
    this.more.textContent = this.#all ? "Show fewer" : `Show all ${this.#rows.length} heads`;
    this.mark();
  }

  /**
   * Its bar begins at zero; one of a negative value leads to the left.
   * @param {HeadRow} row
   * @param {number} low the left edge of all bars
   * @param {number} span from there to the right edge
   */
  makeRow({ picture, value, text, error }, low, span) {
    const { store } = this;
    const open = smallButton(pictureName(picture, store.pointer), () => store.view.choose(picture));
    const amount = bar(Math.abs(value) / span, value < 0 ? "hs-amount hs-less" : "hs-amount");
    amount.style.setProperty("--from", String((Math.min(value, 0) - low) / span));
    const whisker = bar((2 * (error ?? 0)) / span, "hs-error");
    whisker.hidden = error === undefined;
    whisker.style.setProperty("--from", String(Math.max(0, value - (error ?? 0) - low) / span));
    const cells = [
      open,
      makeCell(text, { class: "hs-number-cell" }),
      makeCell([amount, whisker], { class: "hs-bar-cell" }),
    ];
    const { picking } = this;
    if (picking) {
      const label = picking.label(pictureName(picture, store.pointer));
      const box = make("input", { type: "checkbox", "aria-label": label, title: label });
      box.checked = picking.has(picture);
      box.addEventListener("change", () => picking.toggle(picture));
      cells.push(makeCell(box, { class: "hs-pick-cell" }));
    }
    return makeRow(cells, { "data-picture": picture.join() });
  }

  /** Mark the open head. */
  mark() {
    const open = this.store.open.join();
    for (const row of this.table.tBodies[0].rows) {
      const isOpen = row.dataset.picture === open;
      row.classList.toggle("hs-is-open", isOpen);
      if (isOpen) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    }
  }
}

/**
 * The rows that are shown at first.
 * @param {HeadRow[]} rows
 * @param {boolean} hasTwoEnds
 */
function shortened(rows, hasTwoEnds) {
  const last = hasTwoEnds ? rows.slice(MAX_SHOWN_ROWS - MIN_SHOWN_NEGATIVE).filter(({ value }) => value < 0) : [];
  const kept = last.slice(-MIN_SHOWN_NEGATIVE);
  return [...rows.slice(0, MAX_SHOWN_ROWS - kept.length), ...kept];
}
