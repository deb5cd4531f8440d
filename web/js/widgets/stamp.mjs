// Whether several ways of computing agree, and how far apart they are.

import { make } from "../lib/dom.mjs";

/** @type {[string, string]} the verdicts on three ways */
export const ALL_THREE = ["all three agree", "the three differ"];

export class Stamp {
  /**
   * @param {string} what is compared
   * @param {boolean} [isModel] whether one of the two is what the loaded model computed
   * @param {[string, string]} [verdicts] if they agree, if they differ
   */
  constructor(what, isModel = false, verdicts = ["both ways agree", "the two ways differ"]) {
    this.what = what;
    this.isModel = isModel;
    this.verdicts = verdicts;
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
    const verdict = this.isModel ? `recomputed ${isEqual ? "=" : "≠"} model` : this.verdicts[isEqual ? 0 : 1];
    const size = make("small", {}, ` · ${this.what}`);
    this.element.replaceChildren(make("b", {}, verdict), `, max difference ${shown}`, size);
  }
}
