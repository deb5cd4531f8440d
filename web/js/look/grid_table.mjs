// The same heads as a real table, in the grid's order: for those who cannot use pictures, or want the numbers.

import { make } from "./dom.mjs";
import { Twin, tableHead } from "./twin.mjs";
import { METRICS } from "./view.mjs";
import { measured } from "./words.mjs";

/** Made after the grid, so that it hears of changes when the grid has its new order. */
export function gridTable(store, grid) {
  const table = make("table");
  const twin = new Twin("Show heads as table", draw, make("div", {}, table));
  store.on("state thumbnails view open", () => twin.refresh());
  return twin;

  function draw() {
    const kept = table.contains(document.activeElement) ? document.activeElement.textContent : null;
    const metrics = Object.entries(METRICS);
    const { sorted, metric } = store.view.options;
    const heads = metrics.map(([key, { name }]) =>
      make("th", { scope: "col", "aria-sort": key === metric && { high: "descending", low: "ascending" }[sorted] }, name),
    );
    const rows = (grid.shown ?? []).map((card) => {
      const open = make("button", { type: "button", class: "hs-small" }, card.name);
      open.setAttribute("aria-pressed", card.place.join() === store.open.join());
      open.addEventListener("click", () => store.view.choose(card.place));
      const index = store.index(card.place);
      const values = metrics.map(([, kind]) => make("td", {}, measured(store.metric(index, kind.place), kind)));
      return make("tr", {}, make("th", { scope: "row" }, open), ...values);
    });
    table.replaceChildren(make("caption", {}, "All heads"), tableHead("picture", ...heads), make("tbody", {}, ...rows));
    if (kept) [...table.querySelectorAll("button")].find((button) => button.textContent === kept)?.focus();
  }
}
