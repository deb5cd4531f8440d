// The rows of one step as a table.

import { make } from "../../lib/dom.mjs";
import { exact } from "../../lib/numbers.mjs";
import { visible } from "../../lib/words.mjs";
import { TableView, tableHead } from "../../widgets/table_view.mjs";
import { TokenRange, tokenTitle } from "../widgets/token_range.mjs";

/** @import { Store } from "../state/store.mjs" */

/**
 * @typedef {object} Rows
 * @property {number | null} query
 * @property {string} title
 * @property {(head: number) => string} name
 * @property {(head: number) => Float32Array} row
 */

/**
 * @param {Store} store
 * @param {Rows} rows
 */
export function stepTable(store, rows) {
  const table = make("table", {});
  const keys = new TokenRange("keys from", () => view.refresh());
  const fields = make("p", { class: "hs-window" }, keys.element);
  const view = new TableView("Show this step as table", draw, fields, make("div", {}, table));
  return view;

  function draw() {
    if (rows.query === null) return;
    const { n_layer, n_head } = store.pointer;
    const first = store.view.options.hideFirst ? 1 : 0;
    const columns = keys.positions(rows.query + 1);
    const lines = Array.from({ length: n_layer * n_head }, (_, head) => {
      const row = rows.row(head);
      let best = Math.min(first, row.length - 1);
      for (let key = best; key < row.length; key++) if (row[key] > row[best]) best = key;
      const strongest = `“${visible(store.tokens[best].text)}” ${best}`;
      const numbers = [strongest, exact(row[best]), ...columns.map((key) => exact(row[key]))];
      const cells = numbers.map((number) => make("td", {}, number));
      return make("tr", {}, make("th", { scope: "row" }, rows.name(head)), ...cells);
    });
    const titles = columns.map((key) => tokenTitle(store.tokens, key, "col"));
    const head = tableHead("head", "strongest key", "its weight", ...titles);
    table.replaceChildren(make("caption", {}, rows.title), head, make("tbody", {}, ...lines));
  }
}
