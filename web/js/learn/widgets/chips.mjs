// Tokens in a row, each with something below it: its id, its probability.

import { make } from "../../lib/dom.mjs";
import { visible } from "../../lib/words.mjs";

/**
 * @typedef {object} Chip
 * @property {string} text
 * @property {string | number} below
 * @property {boolean} known
 * @property {(() => void) | null} [open] shows how the numbers below come about
 */

export class Chips {
  constructor() {
    this.summary = make("p", { class: "hl-count" });
    this.problem = make("p", { class: "hl-problem", role: "alert" });
    this.list = make("ol", { class: "hl-chips" });
    this.element = make("div", {}, this.summary, this.problem, this.list);
  }

  /**
   * @param {Chip[]} chips the first of them
   * @param {number} n how many tokens there are
   * @param {string} summary
   */
  show(chips, n, summary, problem = "") {
    this.summary.textContent = summary;
    this.problem.textContent = problem;
    const items = chips.map(({ text, below, known, open = null }) => {
      const label = `How ${below} comes about: “${visible(text)}”`;
      const attributes = { type: "button", class: "hl-opens", "aria-label": label, onclick: () => open?.() };
      const shown = open ? make("button", attributes, below) : below;
      return make(
        "li",
        { class: known ? "" : "hl-unknown" },
        make("span", {}, visible(text)),
        make("small", {}, shown),
      );
    });
    if (n > chips.length) items.push(make("li", { class: "hl-more" }, `… and ${n - chips.length} more`));
    this.list.replaceChildren(...items);
  }
}
