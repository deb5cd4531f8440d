// Heads sorted by a number, as a table with bars; a click opens the head.

import { make, smallButton } from "../../lib/dom.mjs";
import { pictureName } from "../../lib/words.mjs";

/** @import { PictureId } from "../../types.js" */
/** @import { Store } from "../state/store.mjs" */

const MAX_SHOWN_ROWS = 8; // rows, until the visitor asks for all of them

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
 * @property {(name: string) => string} label of the check box of a head
 * @property {(picture: PictureId) => boolean} has
 * @property {(picture: PictureId) => void} toggle
 */

export class HeadList {
  /** @type {HeadRow[]} */
  #rows = [];
  #all = false;

  /**
   * @param {Store} store
   * @param {string} caption
   * @param {Picking} [picking] given if heads can be ticked
   */
  constructor(store, caption, picking) {
    this.store = store;
    this.picking = picking;
    this.body = make("tbody", {});
    this.column = make("th", { scope: "col", colspan: picking ? 3 : 2 });
    const head = make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "head"), this.column));
    this.table = make("table", {}, make("caption", { class: "hs-hidden" }, caption), head, this.body);
    this.more = smallButton("", () => this.toggle());
    this.element = make("div", { class: "hs-head-list" }, this.table, this.more);
    store.on("open", () => this.mark());
  }

  toggle() {
    this.#all = !this.#all;
    this.draw();
  }

  /**
   * @param {string} column heading of the numbers
   * @param {HeadRow[]} rows in the order to show
   */
  show(column, rows) {
    this.column.textContent = column;
    this.#rows = rows;
    this.draw();
  }

  draw() {
    const most = Math.max(...this.#rows.map(({ value }) => Math.abs(value)), 1e-12);
    const shown = this.#all ? this.#rows : this.#rows.slice(0, MAX_SHOWN_ROWS);
    this.body.replaceChildren(...shown.map((row) => this.makeRow(row, most)));
    this.more.hidden = this.#rows.length <= MAX_SHOWN_ROWS;
    this.more.textContent = this.#all ? "Show fewer" : `Show all ${this.#rows.length} heads`;
    this.mark();
  }

  /** @param {HeadRow} row @param {number} most */
  makeRow({ picture, value, text, error }, most) {
    const { store } = this;
    const open = smallButton(pictureName(picture, store.pointer), () => store.view.choose(picture));
    const bar = make("span", { class: value < 0 ? "hs-amount hs-less" : "hs-amount", "aria-hidden": "true" });
    bar.style.setProperty("--part", String(Math.abs(value) / most));
    const whisker = make("span", { class: "hs-error", "aria-hidden": "true", hidden: error === undefined });
    whisker.style.setProperty("--from", String(Math.max(0, Math.abs(value) - (error ?? 0)) / most));
    whisker.style.setProperty("--part", String((2 * (error ?? 0)) / most));
    const cells = [make("td", { class: "hs-number-cell" }, text), make("td", { class: "hs-bar-cell" }, bar, whisker)];
    const { picking } = this;
    if (picking) {
      const label = picking.label(pictureName(picture, store.pointer));
      const box = make("input", { type: "checkbox", "aria-label": label, title: label });
      box.checked = picking.has(picture);
      box.addEventListener("change", () => picking.toggle(picture));
      cells.push(make("td", { class: "hs-pick-cell" }, box));
    }
    return make("tr", { "data-picture": picture.join() }, make("th", { scope: "row" }, open), ...cells);
  }

  /** Mark the open head. */
  mark() {
    const open = this.store.open.join();
    for (const row of this.body.children) {
      const isOpen = /** @type {HTMLElement} */ (row).dataset.picture === open;
      row.classList.toggle("hs-is-open", isOpen);
      if (isOpen) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    }
  }
}
