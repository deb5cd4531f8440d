// Two columns of tokens: lines lead from each selected token (query) to those it looks at (key), as strong as the
// weight; where none is selected and there is a threshold, from every token.

import { forPointer, make } from "../../lib/dom.mjs";
import { label } from "../../lib/drawing/axes.mjs";
import { sharpContext } from "../../lib/drawing/canvas.mjs";
import { monospace } from "../../lib/drawing/fonts.mjs";
import { palette } from "../../lib/drawing/palette.mjs";
import { Scale } from "../../lib/drawing/scale.mjs";
import { exact } from "../../lib/numbers.mjs";
import { moveByKey } from "../widgets/token_keys.mjs";

/** @import { Cell } from "../../types.js" */
/** @import { Store } from "../state/store.mjs" */

const ROW = 17; // CSS pixels of a token
const FAINT = 6; // steps below which no line is drawn
const SIDE = 0.34; // of the width, for the tokens of either side
const NUMBERS = 32; // CSS pixels from the left to the end of the positions
const ROOM = 132; // CSS pixels that a token and its number need

/**
 * The lines that a text has now: of the tokens that are selected or, where none is and there is a threshold, of all
 * that existed at the selected step.
 * @param {Store} store
 */
export function* linesOf(store) {
  const scale = Scale.of(store);
  const all = Math.min(store.count, store.step ?? Infinity);
  const areSelected = store.hover || store.locked.length || !store.view.options.threshold;
  for (const query of areSelected ? store.queries : Array(all).keys()) {
    const row = store.row(query);
    const largest = scale.largest(row, 0, query + 1);
    for (let key = 0; key <= query; key++) {
      const step = scale.step(row[key], key, largest);
      if (step >= FAINT) yield { query, key, strength: step / 255 };
    }
  }
}

/**
 * @typedef {Pick<CanvasRenderingContext2D,
 *   "globalAlpha" | "beginPath" | "moveTo" | "bezierCurveTo" | "stroke">} LineContext
 */

/**
 * @param {LineContext} context
 * @param {number} x0
 * @param {number} y0
 * @param {number} x1
 * @param {number} y1
 * @param {number} strength from 0 to 1
 */
export function drawLine(context, x0, y0, x1, y1, strength) {
  const middle = (x0 + x1) / 2;
  context.globalAlpha = strength;
  context.beginPath();
  context.moveTo(x0, y0);
  context.bezierCurveTo(middle, y0, middle, y1, x1, y1);
  context.stroke();
}

export class Lines {
  #floor = make("div", { class: "hs-floor" }); // as high as all tokens, so that there is something to scroll

  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    this.canvas = make("canvas", { "aria-hidden": true });
    this.announcement = make("p", { class: "hs-hidden", "aria-live": "polite" });
    this.board = make("div", { class: "hs-lines", tabindex: 0, role: "application" }, this.canvas, this.#floor);
    const titles = ["this token (query)", "looks at that token (key)"].map((title) => make("span", {}, title));
    const how = forPointer("Hover a token or lock it", "Tap a token");
    const hint = `${how} to see only its lines. Otherwise “weight at least” shows all lines above that weight.`;
    this.element = make("div", {}, make("p", { class: "hs-columns" }, ...titles), this.board, this.announcement);
    this.element.append(make("p", { class: "hs-hint" }, hint));
    this.board.addEventListener("pointermove", (event) => store.point(this.cellAt(event)));
    this.board.addEventListener("pointerleave", () => store.point(null));
    this.board.addEventListener("click", (event) => this.lock(event));
    this.board.addEventListener("keydown", (event) => this.move(event));
    this.board.addEventListener("blur", () => store.point(null));
    store.on("open weights tokens view focus", () => this.draw());
    store.on("view step focus", () => this.showFocus()); // once they are visible, or another token is in focus
    new ResizeObserver(() => this.draw()).observe(this.board);
    this.board.addEventListener("scroll", () => this.draw());
  }

  draw() {
    const { store, board } = this;
    const hint = "Left: this token (query), right: that token (key). Arrow keys move, Enter locks, Escape unlocks.";
    board.setAttribute("aria-label", `Lines of ${store.openName}. ${hint}`);
    const [width, height] = [board.clientWidth, board.clientHeight];
    if (!width || board.closest("[hidden]")) return;
    // Only what is in view is drawn: a text of a thousand tokens scrolls under a canvas of the panel's size.
    const context = sharpContext(this.canvas, width, height);
    this.canvas.style.top = `${board.scrollTop}px`;
    const isAtEnd = this.#floor.style.height !== "" && board.scrollTop + height >= this.#floor.offsetHeight - ROW;
    // Scrolled to its end, it still starts with a whole row.
    this.#floor.style.height = `${store.count * ROW + (height % ROW)}px`;
    if (isAtEnd && this.isAtNewest) board.scrollTop = store.count * ROW; // follows the writing
    this.drawLines(context, width, height);
    this.drawTokens(context, width, height);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   * @param {number} height
   */
  drawTokens(context, width, height) {
    const { store, board } = this;
    const { focus } = store;
    const queries = new Set(store.queries);
    const colours = getComputedStyle(board);
    context.font = monospace(12);
    context.textBaseline = "middle";
    const hasRoom = SIDE * width > ROOM;
    const first = Math.max(0, Math.floor(board.scrollTop / ROW) - 1);
    const last = Math.min(store.count, first + Math.ceil(height / ROW) + 2);
    for (let i = first; i < last; i++) {
      const y = (i + 0.5) * ROW - board.scrollTop;
      const text = label(store.tokens[i].text);
      context.textAlign = "right";
      context.fillStyle = queries.has(i) ? colours.getPropertyValue("--hs-mark") : colours.color;
      context.fillText(text, SIDE * width - 8, y);
      if (hasRoom) context.fillText(String(i), NUMBERS, y);
      context.textAlign = "left";
      context.fillStyle = focus?.key === i ? colours.getPropertyValue("--hs-mark") : colours.color;
      context.fillText(text, (1 - SIDE) * width + 8, y);
      context.textAlign = "right";
      if (hasRoom) context.fillText(this.weightOf(i), width - 8, y);
    }
  }

  /** The weight that the token in focus gives to this one. @param {number} key */
  weightOf(key) {
    const { focus, weights } = this.store;
    return focus && focus.key !== null && key <= focus.query ? exact(weights.at(focus.query, key)) : "";
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   * @param {number} height
   */
  drawLines(context, width, height) {
    const { store, board } = this;
    const [from, to] = [SIDE * width, (1 - SIDE) * width];
    /** @param {number} i */
    const y = (i) => (i + 0.5) * ROW - board.scrollTop;
    context.lineWidth = 2;
    context.strokeStyle = palette().looks.css[190];
    // A key is never below its query: a line that starts above the view or ends below it is not in view.
    const [first, last] = [board.scrollTop / ROW - 1, (board.scrollTop + height) / ROW];
    for (const { query, key, strength } of linesOf(store)) {
      if (query >= first && key <= last) drawLine(context, from, y(query), to, y(key), strength);
    }
    context.globalAlpha = 1;
  }

  /**
   * @param {MouseEvent} event
   * @returns {Cell | null}
   */
  cellAt(event) {
    const { store, board } = this;
    const box = board.getBoundingClientRect();
    const i = Math.floor((event.clientY - box.top + board.scrollTop) / ROW);
    if (i < 0 || i >= store.count) return null;
    const isRight = event.clientX - box.left > box.width / 2;
    if (!isRight) return { query: i };
    // On the right there is what the selected token looks at; on the left another token is selected.
    const query = store.locked.at(-1)?.query ?? store.focus?.query;
    return query !== undefined && i <= query ? { query, key: i } : null;
  }

  /** @param {MouseEvent} event */
  lock(event) {
    const cell = this.cellAt(event);
    if (cell) this.store.lock({ query: cell.query }, event.shiftKey);
  }

  /** @param {KeyboardEvent} event */
  move(event) {
    const query = moveByKey(this.store, event, { back: "ArrowUp", forward: "ArrowDown" }, this.announcement);
    if (query !== null) this.scrollTo(query);
  }

  /** Scroll to the token in focus. */
  showFocus() {
    const { focus } = this.store;
    // What is under the pointer is in view, and must not move away from it.
    if (!focus || !this.board.clientHeight || this.board.matches(":hover")) return;
    this.scrollTo(this.isAtNewest ? this.store.count - 1 : focus.query);
  }

  /** Whether the newest step is shown, and nothing else is selected. */
  get isAtNewest() {
    const { store } = this;
    return store.step === null && store.focus?.query === store.currentRow;
  }

  /** @param {number} query */
  scrollTo(query) {
    const { board } = this;
    const y = query * ROW;
    if (y < board.scrollTop) board.scrollTop = y;
    else if (y + ROW > board.scrollTop + board.clientHeight)
      board.scrollTop = ROW * Math.ceil((y + ROW - board.clientHeight) / ROW);
  }
}
