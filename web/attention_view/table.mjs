// The same weights as a real table, for those who cannot use the picture.

import { make } from "./dom.mjs";
import { exact, visible } from "./words.mjs";

const WINDOW = 32; // queries and keys shown at a time: a table of thousands of cells helps nobody

export class Table {
  constructor(store) {
    this.store = store;
    this.shown = false;
    this.from = { query: 0, key: 0 };
    this.toggle = make("button", { type: "button", class: "hs-small", "aria-expanded": false });
    this.toggle.addEventListener("click", () => this.show(!this.shown));
    this.name(false);
    this.fields = make("p", { class: "hs-window" });
    this.inputs = { query: this.field("queries from", "query"), key: this.field("keys from", "key") };
    this.table = make("table");
    this.element = make("div", { class: "hs-table", hidden: true }, this.fields, make("div", {}, this.table));
    store.on("open weights tokens", () => this.shown && this.draw());
  }

  field(label, axis) {
    const input = make("input", { type: "number", min: 0, step: WINDOW, value: 0 });
    input.addEventListener("change", () => {
      this.from[axis] = Math.max(0, Math.trunc(Number(input.value)) || 0);
      this.draw();
    });
    this.fields.append(make("label", {}, `${label} `, input));
    return input;
  }

  show(shown) {
    this.shown = shown;
    this.element.hidden = !shown;
    this.name(shown);
    this.toggle.setAttribute("aria-expanded", shown);
    if (shown) this.draw();
  }

  name(shown) {
    this.toggle.textContent = shown ? "Hide table" : "Table";
    this.toggle.setAttribute("aria-label", shown ? "Hide table" : "Show as table");
  }

  draw() {
    const { tokens, weights, count: n } = this.store;
    this.fields.hidden = n <= WINDOW;
    for (const axis of ["query", "key"]) {
      this.from[axis] = Math.min(this.from[axis], Math.max(n - 1, 0));
      this.inputs[axis].value = this.from[axis];
    }
    const keys = range(this.from.key, n);
    const head = (position, scope) => make("th", { scope }, `“${visible(tokens[position].text)}” ${position}`);
    const corner = make("td", {}, "query ↓ key →");
    this.table.replaceChildren(
      make("caption", {}, `Attention weights, ${this.store.openName}`),
      make("thead", {}, make("tr", {}, corner, ...keys.map((key) => head(key, "col")))),
      make(
        "tbody",
        {},
        ...range(this.from.query, n).map((query) => {
          const cells = keys.map((key) => make("td", {}, key <= query ? exact(weights.at(query, key)) : ""));
          return make("tr", {}, head(query, "row"), ...cells);
        }),
      ),
    );
  }
}

const range = (from, n) => Array.from({ length: Math.max(0, Math.min(WINDOW, n - from)) }, (_, i) => from + i);
