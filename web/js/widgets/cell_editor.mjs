// Changing a number of a table: typed or moved in the arithmetic, or dragged in the table itself.

import { make } from "../lib/dom.mjs";
import { clamp } from "../lib/numbers.mjs";

const MOST = 10; // either way; the server takes no larger numbers
const REACH = 2; // of the slider, either way
const PER_PIXEL = 0.01;
const DEAD = 4; // pixels a pointer may move in a click

/** @typedef {(row: number, column: number, value: number) => void} Edit */

const hundredths = (/** @type {number} */ value) => Math.round(100 * clamp(value, -MOST, MOST)) / 100;

/** A field and a slider for one number, kept while the number changes. */
export class CellEditor {
  /** @type {((value: number) => void) | null} */
  #change = null;

  constructor() {
    const range = { type: "range", step: 0.01, min: -REACH, max: REACH, "aria-label": "Change this number" };
    this.field = make("input", { type: "number", step: 0.01, min: -MOST, max: MOST });
    this.slider = make("input", range);
    for (const input of [this.field, this.slider]) {
      input.addEventListener("input", () => {
        if (input.value === "" || !Number.isFinite(Number(input.value))) return;
        const value = hundredths(Number(input.value));
        (input === this.field ? this.slider : this.field).value = String(value);
        this.#change?.(value);
      });
    }
    const label = make("label", {}, "Change this number: ", this.field);
    this.element = make("div", { class: "hl-editor" }, label, this.slider);
  }

  /** @param {number} value @param {(value: number) => void} change */
  show(value, change) {
    this.#change = change;
    for (const input of [this.field, this.slider]) {
      if (document.activeElement !== input) input.value = String(Number(value.toFixed(4)));
    }
  }
}

/**
 * Let a number be changed by dragging its cell sideways.
 * @param {HTMLElement} cell
 * @param {() => number} read the number now
 * @param {(value: number) => void} change
 */
export function dragToChange(cell, read, change) {
  let [from, start] = [0, 0];
  let [isDown, isDragged] = [false, false];
  cell.addEventListener("pointerdown", (event) => {
    [from, start, isDown, isDragged] = [event.clientX, read(), true, false];
  });
  cell.addEventListener("pointermove", (event) => {
    const moved = event.clientX - from;
    if (!isDown || (!isDragged && Math.abs(moved) < DEAD)) return;
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
