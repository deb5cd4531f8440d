// What went wrong last, for those who show it.

import { Topics } from "../../lib/topics.mjs";

/** Emits "problem" when it changes. */
export class Problems extends Topics {
  #problem = "";

  /** In words; "" for nothing. */
  get problem() {
    return this.#problem;
  }

  /** @param {string} problem what went wrong, "" for nothing */
  report(problem) {
    if (this.#problem === problem) return;
    this.#problem = problem;
    this.emit("problem");
  }
}
