// The table that a picture also has, and the button that shows and hides it.

import { make } from "./dom.mjs";

export class Twin {
  /** `draw()` fills what is in `content`; it is called while that is shown only. */
  constructor(label, draw, ...content) {
    this.draw = draw;
    this.element = make("div", { class: "hs-table", hidden: true }, ...content);
    // One name, whatever is shown: whether it is, is said by aria-expanded and by the looks.
    this.toggle = make("button", { type: "button", class: "hs-small", "aria-label": label, "aria-expanded": "false" }, "Table");
    this.toggle.addEventListener("click", () => this.show(this.element.hidden));
  }

  show(shown) {
    this.element.hidden = !shown;
    this.toggle.setAttribute("aria-expanded", shown);
    this.refresh();
  }

  refresh() {
    if (!this.element.hidden) this.draw();
  }
}

/** The first row of a table; what is no element yet becomes the title of a column. */
export const tableHead = (...titles) =>
  make("thead", {}, make("tr", {}, ...titles.map((title) => (title instanceof Element ? title : make("th", { scope: "col" }, title)))));
