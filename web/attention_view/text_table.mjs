// The text as a real table: each token with how probable the model found it, which colours can only hint at.

import { make } from "./dom.mjs";
import { bits } from "./text.mjs";
import { exact, visible } from "./words.mjs";

export class TextTable {
  constructor(store) {
    this.store = store;
    this.toggle = make("button", { type: "button", class: "hs-small" });
    this.toggle.addEventListener("click", () => this.show(this.element.hidden));
    const titles = ["position", "token", "probability", "bits"].map((title) => make("th", { scope: "col" }, title));
    this.body = make("tbody", {});
    const caption = make("caption", {}, "Tokens and how probable each was");
    const table = make("table", {}, caption, make("thead", {}, make("tr", {}, ...titles)), this.body);
    this.element = make("div", { class: "hs-table", hidden: true }, make("div", { tabindex: 0, role: "group", "aria-label": "Table of tokens" }, table));
    this.show(false);
    store.on("state tokens", () => this.element.hidden || this.draw());
  }

  show(shown) {
    this.element.hidden = !shown;
    this.toggle.textContent = shown ? "Hide table" : "Table";
    this.toggle.setAttribute("aria-label", shown ? "Hide table of tokens" : "Show text as table");
    this.toggle.setAttribute("aria-expanded", shown);
    if (shown) this.draw();
  }

  /** Rows are made anew only where their token is another one: a long text grows by a few at a time. */
  draw() {
    const { tokens } = this.store;
    this.rows ??= []; // the token of each row
    this.rows.length = Math.min(this.rows.length, tokens.length);
    while (this.body.children.length > tokens.length) this.body.lastChild.remove();
    tokens.forEach((token, i) => {
      if (this.rows[i] === token) return;
      this.rows[i] = token;
      const surprise = bits(token);
      const numbers = surprise === null ? ["given", ""] : [exact(2 ** -surprise), surprise.toFixed(2)];
      const cells = [`“${visible(token.text)}”`, ...numbers].map((text) => make("td", {}, text));
      const row = make("tr", {}, make("th", { scope: "row" }, String(i)), ...cells);
      if (this.body.children[i]) this.body.children[i].replaceWith(row);
      else this.body.append(row);
    });
  }
}
