// The heads and their metrics as a table, in the grid's order: for those who cannot use pictures, or want the numbers.

import { make, setFlag } from "../../lib/dom.mjs";
import { METRICS } from "../../lib/metrics.mjs";
import { measured } from "../../lib/numbers.mjs";
import { TableView, tableHead } from "../../widgets/table_view.mjs";

/** @import { Store } from "../state/store.mjs" */
/** @import { Grid } from "./grid.mjs" */

/**
 * Create it after the grid, so that it is notified after the grid has its new order.
 * @param {Store} store
 * @param {Grid} grid
 */
export function gridTable(store, grid) {
  const table = make("table");
  const view = new TableView("Show heads as table", draw, make("div", {}, table));
  store.on("state thumbnails view open", () => view.refresh());
  return view;

  function draw() {
    const focused = table.contains(document.activeElement) ? document.activeElement?.textContent : null;
    const { sorted, metric } = store.view.options;
    const directions = { high: "descending", low: "ascending", "": false };
    const titles = Object.entries(METRICS).map(([key, { name }]) =>
      make("th", { scope: "col", "aria-sort": key === metric && directions[sorted] }, name),
    );
    const rows = grid.shown.map((card) => {
      const open = make("button", { type: "button", class: "hs-small" }, card.name);
      setFlag(open, "aria-pressed", card.place.join() === store.open.join());
      open.addEventListener("click", () => store.view.choose(card.place));
      const values = Object.values(METRICS).map((kind) =>
        make("td", {}, measured(store.metric(card.place, kind.place), kind)),
      );
      return make("tr", {}, make("th", { scope: "row" }, open), ...values);
    });
    table.replaceChildren(
      make("caption", {}, "All heads"),
      tableHead("picture", ...titles),
      make("tbody", {}, ...rows),
    );
    if (focused) [...table.querySelectorAll("button")].find((button) => button.textContent === focused)?.focus();
  }
}
