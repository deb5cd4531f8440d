// The weights of the open picture as a table, for those who cannot use the picture.

import { make } from "../../lib/dom.mjs";
import { exact } from "../../lib/numbers.mjs";
import { TableView, tableHead } from "../../widgets/table_view.mjs";
import { TokenRange, tokenTitle } from "../widgets/token_range.mjs";

/** @import { Store } from "../state/store.mjs" */

/** @param {Store} store */
export function headTable(store) {
  const table = make("table");
  const [queries, keys] = ["queries from", "keys from"].map((label) => new TokenRange(label, () => view.refresh()));
  const fields = make("p", { class: "hs-window" }, queries.element, keys.element);
  const view = new TableView("Show as table", draw, fields, make("div", {}, table));
  store.on("open weights tokens", () => view.refresh());
  return view;

  function draw() {
    const { tokens, weights, count: n } = store;
    const columns = keys.positions(n);
    const rows = queries.positions(n).map((query) => {
      const cells = columns.map((key) => make("td", {}, key <= query ? exact(weights.at(query, key)) : ""));
      return make("tr", {}, tokenTitle(tokens, query, "row"), ...cells);
    });
    const titles = columns.map((key) => tokenTitle(tokens, key, "col"));
    table.replaceChildren(
      make("caption", {}, `Attention weights, ${store.openName}`),
      tableHead(make("td", {}, "query ↓ key →"), ...titles),
      make("tbody", {}, ...rows),
    );
  }
}
