// All pictures at once: rows are layers, columns heads, then each layer's mean and rollout; thumbnails that grow while
// the text is written. Or only the heads, sorted by a metric.

import { make } from "./dom.mjs";
import { palette } from "./palette.mjs";
import { Scale } from "./scale.mjs";
import { ThumbnailPainter } from "./thumbnail.mjs";
import { METRICS, ORDERS } from "./view.mjs";
import { measured, pictureName } from "./words.mjs";

const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
const SIDE = 24; // CSS pixels of the layers' names
const ACROSS = 46; // that a column needs for "rollout" to stand across it

export class Grid {
  constructor(store) {
    this.store = store;
    this.cards = []; // {place, button, canvas, bar, value}
    this.element = make("div", { class: "hs-grid", role: "group" });
    this.element.addEventListener("click", (event) => this.openAt(event.target.closest("button")));
    this.element.addEventListener("keydown", (event) => this.move(event));
    store.on("state", () => this.build());
    store.on("thumbnails view", () => this.draw());
    store.on("open", () => this.mark());
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  /** Make the cards, once for each shape of a model. */
  build() {
    const { n_layer, n_head, run } = this.store.pointer;
    const shape = run ? `${n_layer}x${n_head}` : "";
    if (shape === this.shape) return;
    this.shape = shape;
    this.cards = [];
    this.layout = null;
    if (!run) {
      this.element.replaceChildren();
      return;
    }
    for (let layer = 0; layer < n_layer; layer++) {
      for (let column = 0; column < n_head + 2; column++) this.cards.push(this.card([layer, column]));
    }
    this.cards.push(this.card([n_layer, n_head]));
    this.draw();
  }

  card(place) {
    const { pointer } = this.store;
    const name = pictureName(place, pointer);
    const canvas = make("canvas");
    const bar = make("span", { class: "hs-bar" });
    const caption = make("span", { class: "hs-caption" }, name);
    const button = make("button", { type: "button" }, canvas, bar, caption);
    return { place, name, button, canvas, bar, isHead: place[0] < pointer.n_layer && place[1] < pointer.n_head };
  }

  /** What each card has of the chosen metric, and which are shown. */
  measure() {
    const { store } = this;
    const { metric, least, most } = store.view.options;
    const heads = this.cards.filter((card) => card.isHead);
    for (const card of this.cards) card.value = store.metric(store.index(card.place), METRICS[metric].place);
    this.most = Math.max(...heads.map((card) => card.value), 1e-9);
    for (const card of this.cards) {
      const said = measured(card.value, METRICS[metric]);
      card.button.setAttribute("aria-label", `${card.name}, ${METRICS[metric].name} ${said}`);
      card.button.title = `${card.name}\n${METRICS[metric].name}: ${said}`;
      card.bar.style.setProperty("--part", Math.min(1, card.value / this.most));
      card.out = card.isHead && (card.value < least * this.most || card.value > most * this.most);
      card.button.classList.toggle("hs-out", card.out);
    }
  }

  /** Put the cards in their places: a table of layers, or one after the other where they are sorted. */
  arrange() {
    const { sorted } = this.store.view.options;
    const shown = sorted
      ? this.cards.filter((card) => card.isHead && !card.out).sort((a, b) => (sorted === "low" ? a.value - b.value : b.value - a.value))
      : this.cards;
    const layout = `${sorted} ${shown.map((card) => card.place).join(" ")}`;
    if (layout === this.layout) return;
    this.layout = layout;
    this.shown = shown;
    const { n_layer, n_head } = this.store.pointer;
    this.element.classList.toggle("hs-sorted", sorted !== "");
    const label = sorted ? `Heads, ${ORDERS[sorted]}` : "All heads: rows are layers, columns heads";
    this.element.setAttribute("aria-label", label);
    this.element.style.setProperty("--hs-columns", n_head + 2);
    const buttons = shown.map((card) => card.button);
    if (sorted) this.element.replaceChildren(...(buttons.length ? buttons : [make("p", { class: "hs-none" }, "No head is in this range.")]));
    else {
      const columns = Array.from({ length: n_head }, (_, head) => `H${head}`);
      const top = ["", ...columns, "mean", "rollout"].map((text) => make("span", { class: text.length > 3 ? "hs-label hs-tall" : "hs-label" }, text));
      const rows = [];
      for (let layer = 0; layer < n_layer; layer++) {
        rows.push(make("span", { class: "hs-label" }, `L${layer}`));
        rows.push(...buttons.slice(layer * (n_head + 2), (layer + 1) * (n_head + 2)));
      }
      const last = make("span", { class: "hs-label hs-all" }, "mean of all heads");
      this.element.replaceChildren(...top, ...rows, last, buttons.at(-1));
    }
    this.mark();
  }

  draw() {
    const { store } = this;
    if (!this.cards.length) return;
    this.measure();
    this.arrange();
    const width = (this.element.clientWidth - SIDE) / (store.pointer.n_head + 2);
    this.element.classList.toggle("hs-narrow", width < ACROSS);
    const room = (this.cards[0].canvas.clientWidth || 48) * (window.devicePixelRatio || 1);
    const rows = store.step === null ? Infinity : store.step;
    const scale = new Scale(store.view.options);
    const painter = new ThumbnailPainter(store.thumbnails, scale, palette().looks.pixels, room, rows);
    const side = Math.max(painter.side, 1);
    for (const { place, canvas } of this.shown) {
      if (canvas.width !== side) canvas.width = canvas.height = side;
      const context = canvas.getContext("2d");
      if (painter.side) context.putImageData(painter.paint(store.index(place)), 0, 0);
      else context.clearRect(0, 0, side, side);
    }
  }

  /** Show which picture is open; it is also the one that Tab leads to. */
  mark() {
    const open = this.store.open.join();
    let found = false;
    for (const { place, button } of this.shown ?? []) {
      const is = place.join() === open;
      found ||= is;
      button.setAttribute("aria-pressed", is);
      button.tabIndex = is ? 0 : -1;
    }
    if (!found && this.shown?.length) this.shown[0].button.tabIndex = 0;
  }

  openAt(button) {
    const card = button && this.cards.find((candidate) => candidate.button === button);
    if (card) this.store.view.choose(card.place);
  }

  move(event) {
    const step = MOVES[event.key];
    const at = this.shown.findIndex((card) => card.button === event.target);
    if (!step || at < 0) return;
    const columns = this.columns();
    const to = at + step[1] + step[0] * columns;
    // From the row of the layers to the mean of all, and back.
    const target = this.shown[to] ?? (step[0] > 0 ? this.shown.at(-1) : null);
    event.preventDefault();
    if (!target || (step[1] && !this.store.view.options.sorted && Math.floor(to / columns) !== Math.floor(at / columns))) return;
    this.shown[at].button.tabIndex = -1;
    target.button.tabIndex = 0;
    target.button.focus();
  }

  columns() {
    if (!this.store.view.options.sorted) return this.store.pointer.n_head + 2;
    const top = this.shown[0].button.offsetTop;
    const next = this.shown.findIndex((card) => card.button.offsetTop > top);
    return next < 0 ? this.shown.length : next;
  }
}
