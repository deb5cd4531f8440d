// The table that a picture also has, and the button that shows and hides it.

import { make, setFlag } from "../lib/dom.mjs";

export class TableView {
  /**
   * @param {string} label
   * @param {() => void} draw fills what is in `content`; called only while that is shown
   * @param {...HTMLElement} content
   */
  constructor(label, draw, ...content) {
    this.draw = draw;
    this.element = make("div", { class: "hs-table", hidden: true }, ...content);
    // Its name stays the same: aria-expanded and its looks say whether the table is shown.
    const attributes = { type: "button", class: "hs-small", "aria-label": label, "aria-expanded": "false" };
    this.toggle = make("button", attributes, "Table");
    this.toggle.addEventListener("click", () => this.show(Boolean(this.element.hidden)));
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

/**
 * The first row of a table: titles of columns, or elements as they are.
 * @param {...(string | HTMLElement)} titles
 */
export const tableHead = (...titles) => {
  const cells = titles.map((title) => (typeof title === "string" ? make("th", { scope: "col" }, title) : title));
  return make("thead", {}, make("tr", {}, ...cells));
};
