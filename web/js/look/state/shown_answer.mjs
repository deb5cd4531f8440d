// The answer of Ask that is shown, and the numbers with which it colours the grid.

/** @import { Answered, Overlay } from "../../types.js" */

export class ShownAnswer {
  /** @type {Answered | null} */
  #answered = null;
  /** @type {Overlay | null} */
  #overlay = null;
  #isHidden = false;

  /** @param {() => void} changed called when the grid is to be coloured differently */
  constructor(changed) {
    this.changed = changed;
  }

  /** What was asked, with its answer; null if none is shown. */
  get answered() {
    return this.#answered;
  }

  /** What the answer says about every head; null for nothing. */
  get overlay() {
    return this.#overlay;
  }

  /** The overlay that colours the grid; null for attention. */
  get shownOverlay() {
    return this.#isHidden ? null : this.#overlay;
  }

  /** @param {Answered | null} answered */
  show(answered) {
    this.#answered = answered;
  }

  /** @param {Overlay | null} overlay */
  setOverlay(overlay) {
    if (overlay === this.#overlay) return;
    this.#overlay = overlay;
    if (!overlay) this.#isHidden = false;
    this.changed();
  }

  /** Switch between the answer and attention. */
  toggleOverlay() {
    this.#isHidden = !this.#isHidden;
    this.changed();
  }
}
