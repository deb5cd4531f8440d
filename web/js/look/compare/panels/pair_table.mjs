// Both texts and one row of both heads as tables, for those who cannot use the pictures or want the numbers.

import { make } from "../../../lib/dom.mjs";
import { exact, signed } from "../../../lib/numbers.mjs";
import { visible } from "../../../lib/words.mjs";
import { TableView, tableHead } from "../../../widgets/table_view.mjs";
import { SIDES } from "../pair.mjs";

/** @import { Pair } from "../pair.mjs" */

/** The row of the selected token: what it gives to each token on both sides. @param {Pair} pair */
export function rowTable(pair) {
  const table = make("table");
  const view = new TableView("Show this row as table", draw, make("div", {}, table));
  pair.on("weights focus step", () => view.refresh());
  return view;

  function draw() {
    const { a } = pair.stores;
    const { focus } = a;
    const row = focus && pair.alignment.pieceOf("a", focus.query);
    table.replaceChildren();
    if (row === null || row >= pair.difference.rows) return;
    const rows = [];
    for (let key = 0; key <= row; key++) {
      const { a: left, b: right, difference } = pair.difference.at(row, key);
      const cells = Number.isNaN(difference) ? ["", "", ""] : [exact(left), exact(right), signed(difference, exact)];
      const name = make("th", { scope: "row" }, `“${pieceText(pair, key)}” ${pair.alignment.numberOf(key)}`);
      rows.push(make("tr", {}, name, ...cells.map((text) => make("td", {}, text))));
    }
    const query = `“${pieceText(pair, row)}” ${pair.alignment.numberOf(row)}`;
    const caption = `What ${query} looks at, ${a.openName} and ${pair.stores.b.openName}`;
    table.replaceChildren(
      make("caption", {}, caption),
      tableHead("key", "A", "B", "B − A"),
      make("tbody", {}, ...rows),
    );
  }
}

/** The tokens of both texts, step by step. @param {Pair} pair */
export function textsTable(pair) {
  const table = make("table");
  const view = new TableView("Show texts as table", draw, make("div", {}, table));
  pair.on("state tokens", () => view.refresh());
  return view;

  function draw() {
    const rows = Array.from({ length: pair.length }, (_, step) => {
      const [left, right] = SIDES.map((side) => pair.tokenOf(side, step));
      const cells = [left, right].flatMap((token) => [
        token ? `“${visible(token.text)}”` : "",
        token?.logprob == null ? "" : exact(Math.exp(token.logprob)),
      ]);
      const change = left?.logprob == null || right?.logprob == null ? "" : signed(right.logprob - left.logprob, exact);
      const numbers = [...cells, change].map((text) => make("td", {}, text));
      return make("tr", {}, make("th", { scope: "row" }, step), ...numbers);
    });
    const titles = tableHead("step", "A", "probability", "B", "probability", "log-probability, B − A");
    table.replaceChildren(make("caption", {}, "Tokens of both texts"), titles, make("tbody", {}, ...rows));
  }
}

/** @param {Pair} pair @param {number} piece */
function pieceText(pair, piece) {
  const { a0, a1 } = pair.alignment.pieces[piece];
  const tokens = pair.stores.a.tokens.slice(a0, a1);
  return visible(tokens.map(({ text }) => text).join(""));
}
