// The same heads as a real table, in the grid's order: for those who cannot use pictures, or want the numbers.

import { make } from "./dom.mjs";
import { METRICS } from "./view.mjs";
import { measured } from "./words.mjs";

export class GridTable {
  /** Made after the grid, so that it hears of changes when the grid has its new order. */
  constructor(store, grid) {
    this.store = store;
    this.grid = grid;
    this.toggle = make("button", { type: "button", class: "hs-small", "aria-expanded": false });
    this.toggle.addEventListener("click", () => this.show(this.element.hidden));
    this.table = make("table");
    this.element = make("div", { class: "hs-table", hidden: true }, make("div", {}, this.table));
    this.show(false);
    store.on("state thumbnails view open", () => this.element.hidden || this.draw());
  }

  show(shown) {
    this.element.hidden = !shown;
    this.toggle.textContent = shown ? "Hide table" : "Table";
    this.toggle.setAttribute("aria-label", shown ? "Hide table of heads" : "Show heads as table");
    this.toggle.setAttribute("aria-expanded", shown);
    if (shown) this.draw();
  }

  draw() {
    const { store, grid, table } = this;
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
    table.replaceChildren(
      make("caption", {}, "All heads"),
      make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "picture"), ...heads)),
      make("tbody", {}, ...rows),
    );
    if (kept) [...table.querySelectorAll("button")].find((button) => button.textContent === kept)?.focus();
  }
}
