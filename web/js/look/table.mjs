// The same weights as a real table, for those who cannot use the picture.

import { make } from "./dom.mjs";
import { Twin, tableHead } from "./twin.mjs";
import { exact, visible } from "./words.mjs";

const WINDOW = 32; // queries and keys shown at a time: a table of thousands of cells helps nobody

/** Which of the tokens a table shows: those from the one on that stands in a field. */
export class Window {
  constructor(label, changed) {
    this.from = 0;
    this.input = make("input", { type: "number", min: 0, step: WINDOW, value: 0 });
    this.input.addEventListener("change", () => {
      this.from = Math.max(0, Math.trunc(Number(this.input.value)) || 0);
      changed();
    });
    this.element = make("label", { hidden: true }, `${label} `, this.input);
  }

  /** The positions that are shown of n. */
  positions(n) {
    this.element.hidden = n <= WINDOW;
    this.from = Math.min(this.from, Math.max(n - 1, 0));
    this.input.value = this.from;
    return Array.from({ length: Math.min(WINDOW, n - this.from) }, (_, i) => this.from + i);
  }
}

/** The title of a row or of a column: a token and its position. */
export const tokenTitle = (tokens, position, scope) => make("th", { scope }, `“${visible(tokens[position].text)}” ${position}`);

export function headTable(store) {
  const table = make("table");
  const [queries, keys] = ["queries from", "keys from"].map((label) => new Window(label, () => twin.refresh()));
  const fields = make("p", { class: "hs-window" }, queries.element, keys.element);
  const twin = new Twin("Show as table", draw, fields, make("div", {}, table));
  store.on("open weights tokens", () => twin.refresh());
  return twin;

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
