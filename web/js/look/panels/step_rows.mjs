// "This step": the row that every head had when one token was written, one strip per head, layer by layer.

import { headAt, headIndex, isHead, isSamePicture } from "../../lib/heads.mjs";
import { firstQuery, keysOf } from "../../lib/triangle.mjs";
import { ARROWS, make } from "../../lib/dom.mjs";
import { label } from "../../lib/drawing/axes.mjs";
import { monospace, sharpContext } from "../../lib/drawing/canvas.mjs";
import { palette } from "../../lib/drawing/palette.mjs";
import { Scale } from "../../lib/drawing/scale.mjs";
import { LatestLoader, pauseFor } from "../../lib/latest.mjs";
import { clamp, weightText } from "../../lib/numbers.mjs";
import { characters, pictureName, sentence, visible } from "../../lib/words.mjs";
import { TableView, TokenRange } from "../../widgets/table_view.mjs";
import { fillTable, makeTable, tokenTitle } from "../../widgets/table.mjs";
import { onResize, whenever } from "../../lib/reactive.mjs";
import { signal } from "../../vendor/signals.mjs";

/** @import { PictureId } from "../../types.js" */
/** @import { RunFetcher } from "../state/run_fetcher.mjs" */
/** @import { ShownText } from "../state/shown_text.mjs" */

/** @typedef {{ head: number, key: number }} StepCell heads are numbered through all layers */
/**
 * The weights of one query in every picture.
 * @typedef {{ weights: Float32Array, query: number, fetcher: RunFetcher }} StepWeights
 */

const ROW = 13; // CSS pixels of a strip
const GAP = 6; // between two layers
const [LEFT, TOP] = [52, 20]; // room for the names of the heads, and of the keys
const LABEL_CELL = 9; // CSS pixels that a key needs for its token as a label
const POSITION_CELL = 30; // CSS pixels that a position needs

export class StepRows {
  /** @type {StepCell | null} under the pointer or the keyboard */
  #at = null;
  #step = signal(/** @type {StepWeights | null} */ (null));
  #cell = 0; // CSS pixels of a key

  /** @param {ShownText} store */
  constructor(store) {
    this.store = store;
    this.canvas = make("canvas", { "aria-hidden": true });
    this.marks = make("canvas", { "aria-hidden": true });
    this.status = make("p", { class: "hs-hint hs-step-status" });
    this.announcement = make("p", { class: "hs-hidden", "aria-live": "polite" });
    this.board = make("div", { class: "hs-strips", tabindex: 0, role: "application" });
    this.board.append(this.canvas, this.marks, this.announcement);
    this.board.addEventListener("pointermove", (event) => this.point(this.cellAt(event)));
    this.board.addEventListener("pointerleave", () => this.point(null));
    this.board.addEventListener("click", (event) => this.open(this.cellAt(event)));
    this.board.addEventListener("keydown", (event) => this.move(event));
    this.table = stepTable(store, this);
    this.element = make("div", { class: "hs-at-step" }, this.status, this.board, this.table.element);
    /** @type {LatestLoader<RunFetcher, StepWeights>} */
    this.loader = new LatestLoader({
      load: (fetcher, query) => this.load(fetcher, query),
      show: (step) => this.show(step),
      report: (error) => store.report(`Could not fetch the attention weights: ${error.message}`),
    });
    whenever(
      () => [...store.progress, store.rows, store.selection.selected, this.isShown],
      () => this.want(),
    );
    store.waitFor((n) => !this.isShown || n < 2 || this.loader.has(store.fetcher, n - 2));
    whenever(
      () => [store.view.options, store.open],
      () => this.draw(),
    );
    onResize(() => this.draw(), this.board);
  }

  get isShown() {
    return this.store.view.options.heads === "step";
  }

  want() {
    const { store } = this;
    if (!this.isShown) return;
    const { run, state } = store.pointer;
    const { leading, chosen, currentRow } = store.selection;
    const query = leading || chosen !== null ? currentRow : store.rows - 1;
    const { isBehind } = store.playback;
    const pause = isBehind ? 0 : pauseFor(state === "writing");
    const wanted = run && query >= firstQuery() ? query : null;
    this.loader.want(store.fetcher, wanted, pause, isBehind ? store.soonRow : query);
  }

  /**
   * @param {RunFetcher} fetcher
   * @param {number} query
   * @returns {Promise<StepWeights[]>}
   */
  async load(fetcher, query) {
    return [{ weights: await fetcher.query(query), query, fetcher }];
  }

  /** @param {StepWeights} step */
  show(step) {
    this.#step.value = step;
    this.board.dataset.query = String(step.query);
    this.point(null);
    this.draw();
  }

  /** The query whose rows can be drawn (of the current run, and its tokens have arrived), else null. */
  get query() {
    const { store } = this;
    const step = this.#step.value;
    const isReady = this.isShown && step?.fetcher === store.fetcher && store.tokens.length > step.query;
    return isReady ? step.query : null;
  }

  /** @param {number} head @returns {PictureId} */
  picture(head) {
    return headAt(head, this.store.pointer);
  }

  /** @param {number} head */
  name(head) {
    return pictureName(this.picture(head), this.store.pointer);
  }

  /** What one head looks at. @param {number} head @returns {Float32Array} */
  row(head) {
    if (!this.#step.value) return new Float32Array(0);
    const { weights, query } = this.#step.value;
    const start = this.store.data.index(this.picture(head)) * keysOf(query);
    return weights.subarray(start, start + keysOf(query));
  }

  /** CSS pixels above a strip. @param {number} head */
  top(head) {
    return TOP + head * ROW + this.picture(head)[0] * GAP;
  }

  draw() {
    if (!this.isShown) return;
    if (this.query === null) {
      this.want();
      return;
    }
    const { store, board } = this;
    const n_heads = store.pointer.n_layer * store.pointer.n_head;
    const [width, n] = [Math.floor(board.clientWidth), keysOf(this.query)];
    if (!width) return;
    const height = this.top(n_heads - 1) + ROW;
    board.style.height = `${height}px`;
    this.#cell = (width - LEFT) / n;
    const context = sharpContext(this.canvas, width, height);
    const colours = getComputedStyle(board);
    context.font = monospace(12);
    context.textBaseline = "middle";
    context.imageSmoothingEnabled = false;
    for (let head = 0; head < n_heads; head++) {
      const isOpen = isSamePicture(this.picture(head), store.open);
      context.fillStyle = isOpen ? colours.getPropertyValue("--hs-mark") : colours.color;
      context.textAlign = "left";
      context.fillText(this.name(head), 2, this.top(head) + ROW / 2);
      this.drawStrip(context, head);
    }
    context.fillStyle = colours.color;
    this.drawKeys(context, n);
    this.mark();
    board.setAttribute("aria-label", `${this.title}. Arrow keys move over heads and keys, Enter opens the head.`);
    this.table.refresh();
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} head
   */
  drawStrip(context, head) {
    const row = this.row(head);
    const scale = Scale.of(this.store);
    const largest = scale.largest(row, 0, row.length);
    const { css } = palette().looks;
    // Faintest first and strongest last, so that no narrow cell hides a stronger neighbour.
    const cells = Array.from(row, (weight, key) => ({ shade: scale.shade(weight, key, largest), key }));
    for (const { shade, key } of cells.sort((a, b) => a.shade - b.shade)) {
      context.fillStyle = css[shade];
      context.fillRect(LEFT + key * this.#cell, this.top(head), Math.max(this.#cell, 1), ROW - 1);
    }
  }

  get title() {
    const query = this.query ?? 0;
    return `What “${visible(this.store.tokens[query].text)}” ${query} looks at in every head`;
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} n
   */
  drawKeys(context, n) {
    context.textAlign = "center";
    const haveTexts = this.#cell >= LABEL_CELL;
    const step = haveTexts ? 1 : Math.ceil(POSITION_CELL / this.#cell);
    for (let key = 0; key < n; key += step) {
      const text = label(this.store.tokens[key].text);
      const fits = context.measureText(text).width <= this.#cell + 2;
      const shown = haveTexts ? (fits ? text : characters(text)[0]) : String(key);
      context.fillText(shown, LEFT + (key + 0.5) * this.#cell, TOP / 2);
    }
  }

  /** Mark the cell under the pointer or the keyboard, on a canvas over the picture. */
  mark() {
    if (!this.#cell) return;
    const context = sharpContext(this.marks, this.board.clientWidth, this.board.clientHeight);
    if (!this.#at) {
      this.status.textContent = `${this.title}: keys from left to right`;
      return;
    }
    const { head, key } = this.#at;
    context.strokeStyle = getComputedStyle(this.board).getPropertyValue("--hs-mark");
    context.lineWidth = 2;
    context.strokeRect(LEFT + key * this.#cell - 1, this.top(head) - 1, Math.max(this.#cell, 1) + 2, ROW + 1);
    const text = visible(this.store.tokens[key].text);
    this.status.textContent = `${this.name(head)}: “${text}” ${key}, key, gets ${weightText(this.row(head)[key])}`;
  }

  /**
   * @param {MouseEvent} event
   * @returns {StepCell | null}
   */
  cellAt(event) {
    if (this.query === null || !this.#cell) return null;
    const { n_layer, n_head } = this.store.pointer;
    const box = this.board.getBoundingClientRect();
    const y = event.clientY - box.top - TOP;
    const layer = Math.floor(y / (n_head * ROW + GAP));
    const column = Math.floor((y - layer * (n_head * ROW + GAP)) / ROW);
    const key = Math.floor((event.clientX - box.left - LEFT) / this.#cell);
    if (y < 0 || layer >= n_layer || column >= n_head || key >= keysOf(this.query)) return null;
    return { head: headIndex([layer, column], { n_head }), key: Math.max(key, 0) };
  }

  /** @param {StepCell | null} at */
  point(at) {
    if (this.#at?.head === at?.head && this.#at?.key === at?.key) return;
    this.#at = at;
    if (this.query !== null) this.mark();
  }

  /** @param {StepCell | null} at */
  open(at) {
    if (at) this.store.view.choose(this.picture(at.head));
  }

  /** @param {KeyboardEvent} event */
  move(event) {
    const { query, store } = this;
    if (query === null) return;
    const { n_layer, n_head } = store.pointer;
    const open = isHead(store.open, store.pointer) ? headIndex(store.open, store.pointer) : 0;
    const { head, key } = this.#at ?? { head: open, key: query };
    if (event.key === "Enter") this.open({ head, key });
    else if (!ARROWS[event.key]) return;
    else {
      const [down, right] = ARROWS[event.key];
      const to = { head: clamp(head + down, 0, n_layer * n_head - 1), key: clamp(key + right, 0, keysOf(query) - 1) };
      this.point(to);
      const words = sentence(store.tokens, query, to.key, this.row(to.head)[to.key]);
      this.announcement.textContent = `${this.name(to.head)}: ${words}`;
    }
    event.preventDefault();
  }
}

/**
 * @typedef {object} Rows
 * @property {number | null} query
 * @property {string} title
 * @property {(head: number) => string} name
 * @property {(head: number) => Float32Array} row
 */

/**
 * @param {ShownText} store
 * @param {Rows} rows
 */
function stepTable(store, rows) {
  const table = makeTable({});
  const keys = new TokenRange("keys from", () => view.refresh());
  const fields = make("p", { class: "hs-window" }, keys.element);
  const view = new TableView("Show this step as a table", draw, fields, make("div", {}, table));
  return view;

  function draw() {
    if (rows.query === null) return;
    const { n_layer, n_head } = store.pointer;
    const first = store.view.options.hideFirst ? 1 : 0;
    const columns = keys.positions(keysOf(rows.query));
    const lines = Array.from({ length: n_layer * n_head }, (_, head) => {
      const row = rows.row(head);
      let best = Math.min(first, row.length - 1);
      for (let key = best; key < row.length; key++) if (row[key] > row[best]) best = key;
      const strongest = `“${visible(store.tokens[best].text)}” ${best}`;
      return [rows.name(head), strongest, weightText(row[best]), ...columns.map((key) => weightText(row[key]))];
    });
    const titles = ["head", "strongest key", "its weight", ...columns.map((key) => tokenTitle(store.tokens, key))];
    fillTable(table, { caption: rows.title, titles, rows: lines });
  }
}
