// "This step": the row that every head had when one token was written, one strip for each head, layer after layer.

import { label } from "./axes.mjs";
import { make, sharpContext } from "./dom.mjs";
import { Latest, pauseOf } from "./latest.mjs";
import { palette } from "./palette.mjs";
import { Scale } from "./scale.mjs";
import { Window, tokenTitle } from "./table.mjs";
import { Twin, tableHead } from "./twin.mjs";
import { exact, pictureName, sentence, visible } from "./words.mjs";

const ROW = 13; // CSS pixels of a strip
const GAP = 6; // between two layers
const [LEFT, TOP] = [52, 20]; // room for the names of the heads, and of the keys
const LABEL_CELL = 9; // CSS pixels that a key needs for its token to stand above it
const FONT = "11px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace";
const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

export class StepRows {
  constructor(store) {
    this.store = store;
    this.at = null; // {head, key} under the pointer or the keys; heads are counted through all layers
    this.canvas = make("canvas", { "aria-hidden": true });
    this.marks = make("canvas", { "aria-hidden": true });
    this.said = make("p", { class: "hs-hint hs-step-said" });
    this.spoken = make("p", { class: "hs-hidden", "aria-live": "polite" });
    this.board = make("div", { class: "hs-strips", tabindex: 0, role: "application" }, this.canvas, this.marks, this.spoken);
    this.board.addEventListener("pointermove", (event) => this.point(this.cellAt(event)));
    this.board.addEventListener("pointerleave", () => this.point(null));
    this.board.addEventListener("click", (event) => this.choose(this.cellAt(event)));
    this.board.addEventListener("keydown", (event) => this.move(event));
    this.table = make("table", {});
    this.keys = new Window("keys from", () => this.twin.refresh());
    const fields = make("p", { class: "hs-window" }, this.keys.element);
    this.twin = new Twin("Show this step as table", () => this.ready && this.drawTable(), fields, make("div", {}, this.table));
    this.element = make("div", { class: "hs-step" }, this.said, this.board, this.twin.element);
    this.latest = new Latest({
      load: async (fetcher, query) => ({ weights: await fetcher.query(query), query, fetcher }),
      show: (found) => this.show(found),
      report: (error) => store.report(`Could not fetch the attention weights: ${error.message}`),
    });
    store.on("state tokens step", () => this.want());
    store.on("view open", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.board);
  }

  get isShown() {
    return this.store.view.options.heads === "step";
  }

  want() {
    const { store } = this;
    if (!this.isShown) return;
    const query = store.step === null ? store.rows - 1 : store.step - 1;
    this.latest.want(store.fetcher, store.pointer.run && query >= 0 ? query : null, pauseOf(store.pointer));
  }

  show(found) {
    this.found = found;
    this.board.dataset.query = found.query;
    this.point(null);
    this.draw();
  }

  /** What can be drawn: the answer of the run that is shown, whose tokens are there. */
  get ready() {
    const { found, store } = this;
    return this.isShown && found && found.fetcher === store.fetcher && store.tokens.length > found.query;
  }

  weight(head, key) {
    const { n_head } = this.store.pointer;
    const picture = this.store.index([Math.floor(head / n_head), head % n_head]);
    return this.found.weights[picture * (this.found.query + 1) + key];
  }

  row(head) {
    const n = this.found.query + 1;
    return Float32Array.from({ length: n }, (_, key) => this.weight(head, key));
  }

  place(head) {
    const { n_head } = this.store.pointer;
    return [Math.floor(head / n_head), head % n_head];
  }

  top(head) {
    return TOP + head * ROW + this.place(head)[0] * GAP;
  }

  draw() {
    if (!this.isShown) return;
    if (!this.ready) {
      this.want();
      return;
    }
    const { store, board } = this;
    const { n_layer, n_head } = store.pointer;
    const [width, n] = [Math.floor(board.clientWidth), this.found.query + 1];
    if (!width) return;
    const height = this.top(n_layer * n_head - 1) + ROW;
    board.style.height = `${height}px`;
    this.cell = (width - LEFT) / n;
    const context = sharpContext(this.canvas, width, height);
    const scale = new Scale(store.view.options);
    const { looks } = palette();
    const colours = getComputedStyle(board);
    context.font = FONT;
    context.textBaseline = "middle";
    context.imageSmoothingEnabled = false;
    for (let head = 0; head < n_layer * n_head; head++) {
      const row = this.row(head);
      const largest = scale.largest(row, 0, n);
      const y = this.top(head);
      const open = this.place(head).join() === store.open.join();
      context.fillStyle = open ? colours.getPropertyValue("--hs-mark") : colours.color;
      context.textAlign = "left";
      context.fillText(pictureName(this.place(head), store.pointer), 2, y + ROW / 2);
      // The faintest step is drawn first and the strongest last, so that no narrow cell hides one beside it.
      const cells = Array.from(row, (weight, key) => [scale.step(weight, key, largest), key]).sort((a, b) => a[0] - b[0]);
      for (const [step, key] of cells) {
        context.fillStyle = looks.css[step];
        context.fillRect(LEFT + key * this.cell, y, Math.max(this.cell, 1), ROW - 1);
      }
    }
    this.drawKeys(context, n, colours);
    this.mark();
    board.setAttribute("aria-label", `${this.title()}. Arrow keys move over heads and keys, Enter opens the head.`);
    this.twin.refresh();
  }

  title() {
    const { query } = this.found;
    return `What “${visible(this.store.tokens[query].text)}” ${query} looks at in every head`;
  }

  drawKeys(context, n, colours) {
    context.fillStyle = colours.color;
    context.textAlign = "center";
    const texts = this.cell >= LABEL_CELL;
    const step = texts ? 1 : Math.ceil(30 / this.cell);
    for (let key = 0; key < n; key += step) {
      const text = label(this.store.tokens[key].text);
      const said = texts ? (context.measureText(text).width <= this.cell + 2 ? text : `${text[0]}`) : String(key);
      context.fillText(said, LEFT + (key + 0.5) * this.cell, TOP / 2);
    }
  }

  /** What the pointer or the keys stand on, over the picture, which stays. */
  mark() {
    if (!this.cell) return;
    const context = sharpContext(this.marks, this.board.clientWidth, this.board.clientHeight);
    if (!this.at) {
      this.said.textContent = `${this.title()}: keys from left to right`;
      return;
    }
    const { head, key } = this.at;
    context.strokeStyle = getComputedStyle(this.board).getPropertyValue("--hs-mark");
    context.lineWidth = 2;
    context.strokeRect(LEFT + key * this.cell - 1, this.top(head) - 1, Math.max(this.cell, 1) + 2, ROW + 1);
    const name = pictureName(this.place(head), this.store.pointer);
    const text = visible(this.store.tokens[key].text);
    this.said.textContent = `${name}: “${text}” ${key}, key, gets ${exact(this.weight(head, key))}`;
  }

  cellAt(event) {
    if (!this.ready || !this.cell) return null;
    const { n_layer, n_head } = this.store.pointer;
    const box = this.board.getBoundingClientRect();
    const y = event.clientY - box.top - TOP;
    const layer = Math.floor(y / (n_head * ROW + GAP));
    const column = Math.floor((y - layer * (n_head * ROW + GAP)) / ROW);
    const key = Math.floor((event.clientX - box.left - LEFT) / this.cell);
    if (y < 0 || layer >= n_layer || column >= n_head || key > this.found.query) return null;
    return { head: layer * n_head + column, key: Math.max(key, 0) };
  }

  point(at) {
    if (this.at?.head === at?.head && this.at?.key === at?.key && !this.at === !at) return;
    this.at = at;
    if (this.ready) this.mark();
  }

  choose(at) {
    if (at) this.store.view.choose(this.place(at.head));
  }

  move(event) {
    if (!this.ready) return;
    const { n_layer, n_head } = this.store.pointer;
    const [layer, column] = this.store.open;
    const open = layer < n_layer && column < n_head ? layer * n_head + column : 0;
    const { head, key } = this.at ?? { head: open, key: this.found.query };
    if (event.key === "Enter") this.choose({ head, key });
    else if (!MOVES[event.key]) return;
    else {
      const [down, right] = MOVES[event.key];
      const to = { head: clamp(head + down, n_layer * n_head - 1), key: clamp(key + right, this.found.query) };
      this.point(to);
      const said = sentence(this.store.tokens, this.found.query, to.key, this.weight(to.head, to.key));
      this.spoken.textContent = `${pictureName(this.place(to.head), this.store.pointer)}: ${said}`;
    }
    event.preventDefault();
  }

  drawTable() {
    const { store } = this;
    const { n_layer, n_head } = store.pointer;
    const first = store.view.options.hideFirst ? 1 : 0;
    const columns = this.keys.positions(this.found.query + 1);
    const rows = Array.from({ length: n_layer * n_head }, (_, head) => {
      const row = this.row(head);
      let best = Math.min(first, row.length - 1);
      for (let key = best; key < row.length; key++) if (row[key] > row[best]) best = key;
      const name = make("th", { scope: "row" }, pictureName(this.place(head), store.pointer));
      const strongest = `“${visible(store.tokens[best].text)}” ${best}`;
      const numbers = [strongest, exact(row[best]), ...columns.map((key) => exact(row[key]))];
      return make("tr", {}, name, ...numbers.map((number) => make("td", {}, number)));
    });
    const titles = columns.map((key) => tokenTitle(store.tokens, key, "col"));
    const head = tableHead("head", "strongest key", "its weight", ...titles);
    this.table.replaceChildren(make("caption", {}, this.title()), head, make("tbody", {}, ...rows));
  }
}

const clamp = (value, most) => Math.min(Math.max(value, 0), most);
