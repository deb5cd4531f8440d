// Buttons or other items of which Tab reaches one, and the arrow keys, Home and End the others.

import { ARROWS, hasModifier } from "../lib/dom.mjs";

/**
 * The place among `count` items that a key leads to; null for none. In one column the last is followed by the first;
 * from the last full row of several columns, Down leads to the last item.
 * @param {string} key
 * @param {number} at
 * @param {number} count
 * @param {number} [columns]
 * @param {boolean} [isFlow] whether a row goes on in the next one, like text
 */
export function placeAfter(key, at, count, columns = 1, isFlow = false) {
  if (key === "Home") return 0;
  if (key === "End") return count - 1;
  if (!ARROWS[key]) return null;
  const [down, right] = ARROWS[key];
  if (columns === 1) return (at + down + right + count) % count;
  const to = at + right + down * columns;
  const rowOf = (/** @type {number} */ place) => Math.floor(place / columns);
  if (right && !isFlow && rowOf(to) !== rowOf(at)) return null;
  if (to >= 0 && to < count) return to;
  return down > 0 && rowOf(at) < rowOf(count - 1) ? count - 1 : null;
}

export class Roving {
  /** @type {HTMLElement | undefined} the one that Tab reaches */
  #stop;

  /**
   * @param {HTMLElement} element holds the items
   * @param {() => HTMLElement[]} items
   * @param {object} [options]
   * @param {() => number} [options.columns]
   * @param {() => boolean} [options.isFlow] whether a row goes on in the next one, like text
   * @param {(at: number) => void} [options.choose] called before an item gets the focus by a key
   */
  constructor(element, items, { columns = () => 1, isFlow = () => false, choose = () => {} } = {}) {
    this.items = items;
    element.addEventListener("keydown", (event) => {
      const at = items().findIndex((item) => item === document.activeElement);
      const to = at < 0 || hasModifier(event) ? null : placeAfter(event.key, at, items().length, columns(), isFlow());
      if (to === null) return;
      event.preventDefault();
      choose(to);
      items()[to].focus(); // which may have been made anew
    });
    element.addEventListener("focusin", () => this.update());
  }

  /** Call this when the items may have changed. @param {HTMLElement} [start] the stop while none has the focus */
  update(start) {
    const items = this.items();
    const focused = items.find((item) => item === document.activeElement);
    const kept = items.find((item) => item === this.#stop);
    this.#stop = focused ?? start ?? kept ?? items[0];
    for (const item of items) item.tabIndex = item === this.#stop ? 0 : -1;
  }
}
