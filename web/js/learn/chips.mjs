// Tokens in a row, each with something below it: its id, its probability.

import { make } from "../look/dom.mjs";
import { visible } from "../look/words.mjs";

export class Chips {
  constructor() {
    this.said = make("p", { class: "hl-count" });
    this.problem = make("p", { class: "hl-problem", role: "alert" });
    this.list = make("ol", { class: "hl-chips" });
    this.element = make("div", {}, this.said, this.problem, this.list);
  }

  /** `chips` are [{text, below, known}], of `n` that there are. */
  show(chips, n, said, problem = "") {
    this.said.textContent = said;
    this.problem.textContent = problem;
    const more = n > chips.length ? [make("li", { class: "hl-more" }, `… and ${n - chips.length} more`)] : [];
    const items = chips.map(({ text, below, known }) =>
      make("li", { class: known ? "" : "hl-unknown" }, make("span", {}, visible(text)), make("small", {}, below)),
    );
    this.list.replaceChildren(...items, ...more);
  }
}
