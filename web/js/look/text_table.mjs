// The text as a real table: each token with how probable the model found it, which colours can only hint at.

import { make } from "./dom.mjs";
import { bits } from "./text.mjs";
import { Twin, tableHead } from "./twin.mjs";
import { exact, visible } from "./words.mjs";

export function textTable(store) {
  const shown = []; // the token of each row
  const body = make("tbody", {});
  const caption = make("caption", {}, "Tokens and how probable each was");
  const table = make("table", {}, caption, tableHead("position", "token", "probability", "bits"), body);
  const twin = new Twin("Show text as table", draw, make("div", { tabindex: 0, role: "group", "aria-label": "Table of tokens" }, table));
  store.on("state tokens", () => twin.refresh());
  return twin;

  /** Rows are made anew only where their token is another one: a long text grows by a few at a time. */
  function draw() {
    const { tokens } = store;
    shown.length = Math.min(shown.length, tokens.length);
    while (body.children.length > tokens.length) body.lastChild.remove();
    tokens.forEach((token, i) => {
      if (shown[i] === token) return;
      shown[i] = token;
      const surprise = bits(token);
      const numbers = surprise === null ? ["given", ""] : [exact(2 ** -surprise), surprise.toFixed(2)];
      const cells = [`“${visible(token.text)}”`, ...numbers].map((text) => make("td", {}, text));
      const row = make("tr", {}, make("th", { scope: "row" }, String(i)), ...cells);
      if (body.children[i]) body.children[i].replaceWith(row);
      else body.append(row);
    });
  }
}
