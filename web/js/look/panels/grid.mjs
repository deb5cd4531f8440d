// All heads at once: rows are layers, columns are heads, then each layer's mean and rollout if these are shown. Or the
// heads sorted by a metric. Both are also available as a table. Thumbnails grow while the text is written.

import { make, NextFrame, setFlag, setText } from "../../lib/dom.mjs";
import { context2d, offscreenContext } from "../../lib/drawing/canvas.mjs";
import { palette } from "../../lib/drawing/palette.mjs";
import { Scale } from "../../lib/drawing/scale.mjs";
import { ThumbnailPainter } from "../../lib/drawing/images.mjs";
import { allPictures, groupOf, groupSentence, isHead, isSamePicture } from "../../lib/heads.mjs";
import { barEnds, METRICS } from "../../lib/metrics.mjs";
import { measured, withoutZero } from "../../lib/numbers.mjs";
import { ORDERS } from "../../lib/options.mjs";
import { signal } from "../../vendor/signals.mjs";
import { SIDE } from "../../lib/drawing/thumbnails.mjs";
import { pictureName } from "../../lib/words.mjs";
import { paintArcs, paintOverlay } from "./overlay.mjs";
import { labelOf, NO_LABEL } from "../roles/role_words.mjs";
import { TableView } from "../../widgets/table_view.mjs";
import { smallButton } from "../../widgets/controls.mjs";
import { fillTable, makeTable, makeTitle } from "../../widgets/table.mjs";
import { Roving } from "../../widgets/roving.mjs";
import { listen, onResize, whenever } from "../../lib/reactive.mjs";

/** @import { PictureId } from "../../types.js" */
/** @import { ShownText } from "../state/shown_text.mjs" */

const LAYERS = "Layers and heads are counted from 0: L0 is the first layer";
const LAYER_NAMES = 24; // CSS pixels of their column
const TILES_PER_FRAME = 8; // tiles that are drawn in one frame while a text grows
const MIN_ROLLOUT_WIDTH = 46; // CSS pixels of a column in which "rollout" fits

/**
 * A picture in the grid.
 * @typedef {object} Card
 * @property {PictureId} picture
 * @property {string} name
 * @property {boolean} isHead not a mean or a rollout
 * @property {number} value of the chosen metric
 * @property {string} word for its role; "" for none
 * @property {boolean} filtered whether its value is outside the chosen range
 * @property {HTMLButtonElement} button
 * @property {HTMLCanvasElement} canvas
 * @property {HTMLElement} bar
 * @property {HTMLElement} number the value
 * @property {HTMLElement} tag the role, in a line above the picture
 */

/** A value short enough for a tile. @param {number} value */
const short = (value) => (Number.isNaN(value) ? "" : withoutZero(value.toFixed(value >= 10 ? 0 : value >= 1 ? 1 : 2)));

/** Whether a word fits into a line of the page. @param {HTMLElement} line @returns {(word: string) => boolean} */
function fitting(line) {
  const { clientWidth } = line;
  const ruler = offscreenContext(1, 1);
  ruler.font = getComputedStyle(line).font;
  return (word) => ruler.measureText(word).width <= clientWidth;
}

export class Grid {
  /** @type {Card[]} */
  #cards = [];
  #shape = "";
  #layout = "";
  #isResized = true; // since the room for a tile was measured
  #room = 48; // CSS pixels
  /** @type {(word: string) => boolean} whether a word fits into the line above a picture */
  #fits = () => true;
  /** @type {Set<Card>} shown ones that are out of date */
  #due = new Set();
  #nextFrame = new NextFrame(() => {
    this.#drawDue(TILES_PER_FRAME);
    if (this.#due.size) this.#nextFrame.request();
  });
  #sheet = offscreenContext(SIDE, SIDE); // for pictures that are enlarged
  /** @type {(picture: PictureId | null) => void} */
  #hovered = () => {};
  #shown = signal(/** @type {Card[]} */ ([]));

  /** @param {ShownText} store */
  constructor(store) {
    this.store = store;
    this.most = 0; // the largest value that a head has of the chosen metric
    this.element = make("div", { class: "hs-grid", role: "group" });
    this.element.addEventListener("click", (event) =>
      this.openAt(/** @type {Element} */ (event.target).closest("button"), event.shiftKey),
    );
    this.roving = new Roving(this.element, () => this.shown.map(({ button }) => button), {
      columns: () => this.columns(),
      isFlow: () => store.view.options.sorted !== "",
    });
    this.element.addEventListener("pointerover", (event) => this.hover(event.target));
    this.element.addEventListener("pointerleave", () => this.hover(null));
    this.resized = onResize(() => {
      this.#isResized = true;
      this.draw();
    }, this.element);
    whenever(
      () => [
        store.pointer.run,
        store.isGrowing,
        store.rows,
        store.drawing,
        store.selection.step,
        store.view.options,
        store.roles,
        store.answer.shownOverlay,
        this.hasSummaries,
      ],
      () => this.draw(),
    );
    whenever(
      () => store.selectedHeads.shown,
      () => this.mark(),
    );
    listen(document.fonts, "loadingdone", () => (this.#isResized = true));
  }

  /** The cards that are shown, in order. */
  get shown() {
    return this.#shown.value;
  }

  /** Read the layout, which is too slow to be done whenever a text grows. */
  #measureRoom() {
    this.#isResized = false;
    const width = (this.element.clientWidth - LAYER_NAMES) / this.tableColumns;
    this.element.classList.toggle("hs-narrow", width < MIN_ROLLOUT_WIDTH);
    this.#room = this.#cards[0].canvas.clientWidth || 48;
    this.#fits = fitting(this.#cards[0].tag);
  }

  /** @param {(picture: PictureId | null) => void} callback gets the picture under the pointer */
  onHover(callback) {
    this.#hovered = callback;
  }

  /** @param {EventTarget | null} target */
  hover(target) {
    const button = target instanceof Element ? target.closest("button") : null;
    const card = this.shown.find((shown) => shown.button === button);
    this.#hovered(card?.picture ?? null);
  }

  /** Make the cards if the model's shape is another one. Returns whether there are new ones. */
  build() {
    const { pointer } = this.store;
    const { n_layer, n_head, n_kv_head, run } = pointer;
    const shape = run ? `${n_layer}x${n_head}:${n_kv_head}` : "";
    if (shape === this.#shape) return false;
    this.#shape = shape;
    if (this.#cards.length) this.resized.unobserve(this.#cards[0].canvas);
    this.#cards = run ? allPictures(pointer).map((picture) => this.makeCard(picture)) : [];
    this.#layout = "";
    if (run) this.resized.observe(this.#cards[0].canvas);
    else this.element.replaceChildren();
    return run !== "";
  }

  /**
   * @param {PictureId} picture
   * @returns {Card}
   */
  makeCard(picture) {
    const { pointer } = this.store;
    const name = pictureName(picture, pointer);
    const canvas = make("canvas");
    const bar = make("span", { class: "hs-bar" });
    const number = make("span", { class: "hs-value", "aria-hidden": "true" });
    const tag = make("span", { class: "hs-tag", "aria-hidden": "true" });
    const caption = make("span", { class: "hs-caption" }, name);
    const foot = make("span", { class: "hs-foot" }, bar, number);
    const button = make("button", { type: "button" }, tag, canvas, foot, caption);
    button.dataset.picture = picture.join();
    button.classList.toggle("hs-group-start", picture[1] > 0 && groupOf(picture, pointer)?.[0] === picture[1]);
    return {
      picture,
      name,
      isHead: isHead(picture, pointer),
      value: 0,
      word: "",
      filtered: false,
      button,
      canvas,
      bar,
      number,
      tag,
    };
  }

  /** Give each card its value of the chosen metric. */
  measure() {
    const { store } = this;
    const { metric, least, most } = store.view.options;
    for (const card of this.#cards) card.value = store.data.metric(card.picture, METRICS[metric].index);
    this.most = barEnds(store.data, metric).most;
    for (const card of this.#cards) {
      card.filtered = card.isHead && (card.value < least * this.most || card.value > most * this.most);
    }
  }

  /**
   * Write its value and role on a card.
   * @param {Card} card
   * @param {{ least: number, most: number }} ends of the bars
   */
  #label(card, ends) {
    const { store } = this;
    const { name, unit } = METRICS[store.view.options.metric];
    const { button, tag: line, picture } = card;
    const { tag, word, text, where } = card.isHead ? labelOf(store, picture) : NO_LABEL;
    card.word = word;
    setText(line, [word, tag].find(this.#fits) ?? "");
    button.classList.toggle("hs-filtered", card.filtered);
    setText(card.number, short(card.value));
    const part = (card.value - ends.least) / Math.max(ends.most - ends.least, 1e-9);
    card.bar.style.setProperty("--part", String(Math.min(1, Math.max(0.02, part || 0))));
    if (store.isGrowing && button.title) return; // renamed when the text is complete
    const value = measured(card.value, { unit });
    const group = groupSentence(picture, store.pointer);
    const said = `${card.name}, ${name} ${value}${text && `, role: ${text}`}`;
    button.setAttribute("aria-label", group ? `${said}. ${group}` : said);
    button.title = [card.name, `${name}: ${value}`, text && `${where}: ${text}`, group].filter(Boolean).join("\n");
  }

  /** Arrange the cards: a table of layers, or one after the other if they are sorted. */
  arrange() {
    const { sorted } = this.store.view.options;
    const shown = sortCards(this.#cards, sorted, this.hasSummaries);
    const layout = `${sorted} ${shown.map((card) => card.picture).join(" ")}`;
    if (layout === this.#layout) return;
    this.#layout = layout;
    this.#isResized = true;
    this.#shown.value = shown;
    this.element.classList.toggle("hs-sorted", sorted !== "");
    const label = sorted ? `Heads, ${ORDERS[sorted]}` : "All heads: rows are layers, columns heads";
    this.element.setAttribute("aria-label", label);
    this.element.style.setProperty("--hs-columns", String(this.tableColumns));
    // The open head below the tiles takes the rest of the window.
    const panels = /** @type {HTMLElement} */ (this.element.closest(".hs-panels") ?? this.element);
    panels.style.setProperty("--hs-layers", String(this.store.pointer.n_layer));
    this.element.replaceChildren(...(sorted ? this.sortedParts() : this.tableParts()));
    this.mark();
  }

  sortedParts() {
    if (!this.shown.length) return [make("p", { class: "hs-none" }, "No head is in this range.")];
    return this.shown.map((card) => card.button);
  }

  /** Whether means and rollout have tiles: if the visitor chose so, or one of them is open. */
  get hasSummaries() {
    const { n_layer, n_head } = this.store.pointer;
    const [layer, column] = this.store.open;
    return this.store.view.options.summaries || layer >= n_layer || column >= n_head;
  }

  /** The number of pictures per layer in the table. */
  get tableColumns() {
    return this.store.pointer.n_head + (this.hasSummaries ? 2 : 0);
  }

  tableParts() {
    const { n_layer, n_head } = this.store.pointer;
    const summaries = this.hasSummaries;
    const buttons = this.shown.map((card) => card.button);
    const columns = Array.from({ length: n_head }, (_, head) => `H${head}`);
    /** @type {HTMLElement[]} */
    const parts = ["", ...columns, ...(summaries ? ["mean", "rollout"] : [])].map((text) =>
      make("span", { class: text.length > 3 ? "hs-label hs-column hs-tall" : "hs-label hs-column" }, text),
    );
    for (let layer = 0; layer < n_layer; layer++) {
      parts.push(make("span", { class: "hs-label", title: LAYERS }, `L${layer}`));
      parts.push(...buttons.slice(layer * this.tableColumns, (layer + 1) * this.tableColumns));
    }
    if (!summaries) return parts;
    return [...parts, make("span", { class: "hs-label hs-all" }, "mean of all heads"), buttons[buttons.length - 1]];
  }

  /** Draw all tiles; while the text grows, they take turns. */
  draw() {
    const { store } = this;
    this.build();
    if (!this.#cards.length || !store.view.options.details) return;
    this.measure();
    this.arrange();
    if (this.#isResized) this.#measureRoom();
    this.element.dataset.rows = String(this.rows[0]);
    for (const card of this.shown) this.#due.add(card);
    if (store.isGrowing) this.#nextFrame.request();
    else this.#drawDue(this.shown.length);
  }

  /** How many tokens the tiles show: in full colour, and with the faded ones after them. */
  get rows() {
    const { readable } = this.store;
    const { step } = this.store.selection;
    const rows = step ?? readable;
    return [rows, readable];
  }

  /** Draw the cards that have waited longest. @param {number} most */
  #drawDue(most) {
    const { store } = this;
    const room = this.#room * (window.devicePixelRatio || 1);
    const [rows, drawn] = this.rows;
    const isFilled = store.isGrowing;
    const painter = new ThumbnailPainter(
      store.data.thumbnails,
      new Scale(store.view.options),
      palette().looks.pixels,
      room,
      rows,
      drawn,
      isFilled,
    );
    const { side } = painter;
    // Resizing a canvas causes a new layout of everything around it.
    const size = Math.max(isFilled ? Math.round(room) : side, 1);
    const ends = barEnds(store.data, store.view.options.metric);
    const cards = [...this.#due].slice(0, most);
    for (const card of cards) {
      const { picture, canvas } = card;
      this.#due.delete(card);
      this.#label(card, ends);
      if (canvas.width !== size) canvas.width = canvas.height = size;
      const context = context2d(canvas);
      context.clearRect(0, 0, size, size);
      if (!side) continue;
      const image = painter.paint(store.data.index(picture));
      if (!isFilled) {
        context.putImageData(image, 0, 0);
        continue;
      }
      this.#sheet.putImageData(image, 0, 0);
      context.imageSmoothingEnabled = false;
      context.drawImage(this.#sheet.canvas, 0, 0, side, side, 0, 0, size, size);
    }
    paintOverlay(this.element, cards, store.answer.shownOverlay);
    if (!this.#due.size) paintArcs(this.element, this.shown, store.answer.shownOverlay?.arcs ?? []);
  }

  /** Mark the open picture, which is also the one that Tab reaches. */
  mark() {
    const selected = new Set(this.store.selectedHeads.heads.map(String));
    for (const { picture, button } of this.shown) {
      const isOpen = isSamePicture(picture, this.store.open);
      setFlag(button, "aria-pressed", isOpen);
      button.classList.toggle("hs-with", !isOpen && selected.has(String(picture)));
    }
    this.roving.update(this.shown.find(({ picture }) => isSamePicture(picture, this.store.open))?.button);
  }

  /**
   * @param {HTMLButtonElement | null} button
   * @param {boolean} adds whether it is selected in addition to the open one
   */
  openAt(button, adds) {
    const card = this.#cards.find((candidate) => candidate.button === button);
    if (!card) return;
    if (adds) {
      this.store.selectedHeads.toggle(card.picture);
      return;
    }
    this.store.selectedHeads.choose([]);
    this.store.choosePicture(card.picture);
  }

  columns() {
    if (!this.store.view.options.sorted) return this.tableColumns;
    const top = this.shown[0].button.offsetTop;
    const next = this.shown.findIndex((card) => card.button.offsetTop > top);
    return next < 0 ? this.shown.length : next;
  }
}

/**
 * All cards, with or without means and rollouts; or, if an order is chosen, the heads whose value is in range, sorted.
 * @template {{ isHead: boolean, filtered: boolean, value: number }} Card
 * @param {Card[]} cards
 * @param {"" | "high" | "low"} order
 * @param {boolean} summaries
 */
export function sortCards(cards, order, summaries) {
  if (!order) return summaries ? cards : cards.filter((card) => card.isHead);
  const sign = order === "low" ? 1 : -1;
  return cards.filter((card) => card.isHead && !card.filtered).sort((a, b) => sign * (a.value - b.value));
}

/**
 * @param {ShownText} store
 * @param {Grid} grid
 */
export function gridTable(store, grid) {
  const table = makeTable({});
  const view = new TableView("Show heads as a table", draw, make("div", {}, table));
  whenever(
    () => [store.pointer, store.rows, store.drawing, store.view.options, store.open, grid.shown],
    () => view.refresh(),
  );
  return view;

  function draw() {
    const focused = table.contains(document.activeElement) ? document.activeElement?.textContent : null;
    const { sorted, metric } = store.view.options;
    const directions = { high: "descending", low: "ascending", "": false };
    const titles = Object.entries(METRICS).map(([key, { name }]) =>
      makeTitle(name, { "aria-sort": key === metric && directions[sorted] }),
    );
    const rows = grid.shown.map((card) => {
      const open = smallButton(card.name, () => store.view.choose(card.picture));
      setFlag(open, "aria-pressed", isSamePicture(card.picture, store.open));
      const values = Object.values(METRICS).map((kind) => measured(store.data.metric(card.picture, kind.index), kind));
      return [open, ...values];
    });
    fillTable(table, { caption: "All heads", titles: ["picture", ...titles], rows });
    if (focused) [...table.querySelectorAll("button")].find((button) => button.textContent === focused)?.focus();
  }
}
