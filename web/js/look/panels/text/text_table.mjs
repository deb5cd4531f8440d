// The text as a table: each token with its probability, which colours can only hint at.

import { make } from "../../../lib/dom.mjs";
import { exact, surprise } from "../../../lib/numbers.mjs";
import { visible } from "../../../lib/words.mjs";
import { TableView, tableHead } from "../../../widgets/table_view.mjs";

/** @import { Token } from "../../../types.js" */
/** @import { Store } from "../../state/store.mjs" */

/** @param {Store} store */
export function textTable(store) {
  /** @type {Token[]} */
  const shown = []; // the token of each row
  const body = make("tbody", {});
  const caption = make("caption", {}, "Tokens and their probabilities");
  const table = make("table", {}, caption, tableHead("position", "token", "probability", "bits"), body);
  const box = make("div", { tabindex: 0, role: "group", "aria-label": "Table of tokens" }, table);
  const view = new TableView("Show text as table", draw, box);
  store.on("state tokens", () => view.refresh());
  return view;

  /** Replace only the rows whose token has changed: a long text grows by a few tokens at a time. */
  function draw() {
    const { tokens } = store;
    shown.length = Math.min(shown.length, tokens.length);
    while (body.children.length > tokens.length) body.lastChild?.remove();
    tokens.forEach((token, i) => {
      if (shown[i] === token) return;
      shown[i] = token;
      const row = tokenRow(token, i);
      if (body.children[i]) body.children[i].replaceWith(row);
      else body.append(row);
    });
  }
}

/**
 * @param {Token} token
 * @param {number} position
 */
function tokenRow(token, position) {
  const bits = surprise(token);
  const numbers = bits === null ? ["given", ""] : [exact(2 ** -bits), bits.toFixed(2)];
  const cells = [`“${visible(token.text)}”`, ...numbers].map((text) => make("td", {}, text));
  return make("tr", {}, make("th", { scope: "row" }, position), ...cells);
}
