// The answer of Ask that is shown, and the numbers with which it colours the grid.

import { batch, signal } from "../../vendor/signals.mjs";

/** @import { Answered, Overlay } from "../../types.js" */

export class ShownAnswer {
  /** @type {Answered | null} */
  #answered = null;
  #overlay = signal(/** @type {Overlay | null} */ (null));
  #isHidden = signal(false);
  /** @type {Answered | null} */
  #onStage = null;
  /** @type {Answered["asked"] | null} the question that was answered last, even if its answer is closed */
  lastAsked = null;

  /** What was asked, with its answer; null if none is shown. */
  get answered() {
    return this.#answered;
  }

  /** The answer that the stage shows in place of Ask. */
  get onStage() {
    return this.#onStage;
  }

  set onStage(answered) {
    this.#onStage = answered;
    this.lastAsked = answered?.asked ?? this.lastAsked;
  }

  /** What the answer says about every head; null for nothing. */
  get overlay() {
    return this.#overlay.value;
  }

  /** The overlay that colours the grid; null for attention. */
  get shownOverlay() {
    return this.#isHidden.value ? null : this.#overlay.value;
  }

  /** @param {Answered | null} answered */
  show(answered) {
    this.#answered = answered;
    this.lastAsked = answered?.asked ?? this.lastAsked;
  }

  /** @param {Overlay | null} overlay */
  setOverlay(overlay) {
    batch(() => {
      this.#overlay.value = overlay;
      if (!overlay) this.#isHidden.value = false;
    });
  }

  /** Switch between the answer and attention. */
  toggleOverlay() {
    this.#isHidden.value = !this.#isHidden.peek();
  }
}
