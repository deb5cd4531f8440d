// The table version of a picture, and the button that shows and hides it.

import { make, setFlag } from "../lib/dom.mjs";
import { smallButton } from "./controls.mjs";

export class TableView {
  /**
   * @param {string} label
   * @param {() => void} draw fills `content`; called only while it is shown
   * @param {...HTMLElement} content
   */
  constructor(label, draw, ...content) {
    this.draw = draw;
    this.element = make("div", { class: "hs-table", hidden: true }, ...content);
    // Its name stays the same: aria-expanded and its style say whether the table is shown.
    const toggle = () => this.show(Boolean(this.element.hidden));
    this.toggle = smallButton("Table", toggle, { "aria-label": label, "aria-expanded": "false" });
  }

  /** @param {boolean} shown */
  show(shown) {
    this.element.hidden = !shown;
    setFlag(this.toggle, "aria-expanded", shown);
    this.refresh();
  }

  refresh() {
    if (!this.element.hidden) this.draw();
  }
}

const MAX_SHOWN_TOKENS = 32; // tokens at a time: a table of thousands of cells is unreadable

/** A range of tokens that starts at the position in a field. */
export class TokenRange {
  #from = 0;

  /**
   * @param {string} label
   * @param {() => void} changed
   */
  constructor(label, changed) {
    this.input = make("input", { type: "number", min: 0, step: MAX_SHOWN_TOKENS, value: 0 });
    this.input.addEventListener("change", () => {
      this.#from = Math.max(0, Math.trunc(Number(this.input.value)) || 0);
      changed();
    });
    this.element = make("label", { hidden: true }, `${label} `, this.input);
  }

  /** The positions shown, out of n. @param {number} n */
  positions(n) {
    this.element.hidden = n <= MAX_SHOWN_TOKENS;
    this.#from = Math.min(this.#from, Math.max(n - 1, 0));
    this.input.value = String(this.#from);
    return Array.from({ length: Math.min(MAX_SHOWN_TOKENS, n - this.#from) }, (_, i) => this.#from + i);
  }
}
