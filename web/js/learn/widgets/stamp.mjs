// Whether two ways lead to the same numbers, and how far apart these are.

import { make } from "../../lib/dom.mjs";

export class Stamp {
  /** @param {string} what is compared */
  constructor(what) {
    this.what = what;
    this.element = make("p", { class: "hl-stamp", role: "status" });
  }

  /**
   * @param {number | null} error null for NaN
   * @param {number} [most] the error up to which the numbers count as equal
   */
  show(error, most = 1e-5) {
    const isEqual = error !== null && error <= most;
    this.element.classList.toggle("hl-differs", !isEqual);
    const shown = error === 0 ? "0" : error === null ? "not a number" : error.toExponential(2).replace("-", "−");
    const verdict = make("b", {}, `recomputed ${isEqual ? "=" : "≠"} model`);
    this.element.replaceChildren(verdict, `, max error ${shown}`, make("small", {}, ` · ${this.what}`));
  }
}
