// Which tokens a table shows: a table of thousands of cells helps nobody.

import { make } from "../../lib/dom.mjs";
import { visible } from "../../lib/words.mjs";

/** @import { Token } from "../../types.js" */

const SHOWN = 32; // tokens at a time

/** A range of tokens that starts at the position in a field. */
export class TokenRange {
  #from = 0;

  /**
   * @param {string} label
   * @param {() => void} changed
   */
  constructor(label, changed) {
    this.input = make("input", { type: "number", min: 0, step: SHOWN, value: 0 });
    this.input.addEventListener("change", () => {
      this.#from = Math.max(0, Math.trunc(Number(this.input.value)) || 0);
      changed();
    });
    this.element = make("label", { hidden: true }, `${label} `, this.input);
  }

  /** The positions shown, out of n. @param {number} n */
  positions(n) {
    this.element.hidden = n <= SHOWN;
    this.#from = Math.min(this.#from, Math.max(n - 1, 0));
    this.input.value = String(this.#from);
    return Array.from({ length: Math.min(SHOWN, n - this.#from) }, (_, i) => this.#from + i);
  }
}

/**
 * The title of a row or column: a token and its position.
 * @param {Token[]} tokens
 * @param {number} position
 * @param {"row" | "col"} scope
 */
export const tokenTitle = (tokens, position, scope) =>
  make("th", { scope }, `“${visible(tokens[position].text)}” ${position}`);
