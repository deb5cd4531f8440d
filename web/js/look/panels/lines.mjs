// Two columns of tokens: lines lead from each selected token (query) to the tokens it looks at (keys), stronger for
// larger weights. If no token is selected and there is a threshold, all tokens have lines. If the selected token or the
// key it looks at most is out of view, a mark at the edge points to it.

import { make, mouseOrTouch } from "../../lib/dom.mjs";
import { label } from "../../lib/drawing/axes.mjs";
import { monospace, sharpContext } from "../../lib/drawing/canvas.mjs";
import { palette } from "../../lib/drawing/palette.mjs";
import { Scale } from "../../lib/drawing/scale.mjs";
import { weightText } from "../../lib/numbers.mjs";
import { firstQuery, keysOf, sizeOf } from "../../lib/triangle.mjs";
import { moveByKey } from "./keyboard.mjs";
import { smallButton } from "../../widgets/controls.mjs";
import { onResize, whenever } from "../../lib/reactive.mjs";

/** @import { Cell } from "../../types.js" */
/** @import { ShownText } from "../state/shown_text.mjs" */

const MIN_DRAWN_SHADE = 6; // of the colour ramp: below it no line is drawn
const SIDE = 0.34; // of the width, for the tokens of either side
const NUMBERS = 32; // CSS pixels from the left to the end of the positions
const ROOM = 132; // CSS pixels that a token and its number need

/**
 * Whether only the lines of some tokens are drawn, not all above the threshold.
 * @param {ShownText} store
 */
const areSelected = ({ selection: { hover, locked }, view }) =>
  hover !== null || locked.length > 0 || !view.options.threshold;

/**
 * The lines to draw: of the selected tokens or, if none is selected and there is a threshold, of all tokens that
 * existed at the selected step.
 * @param {ShownText} store
 */
export function* linesOf(store) {
  const scale = Scale.of(store);
  const all = Math.min(store.count, store.selection.step ?? Infinity);
  for (const query of areSelected(store) ? store.selection.queries : Array(all).keys()) {
    const row = store.weights.row(query);
    const largest = scale.largest(row, 0, row.length);
    for (let key = 0; key < row.length; key++) {
      const shade = scale.shade(row[key], key, largest);
      if (shade >= MIN_DRAWN_SHADE) yield { query, key, strength: shade / 255 };
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
  #floor = make("div", { class: "hs-floor" }); // as tall as all tokens, so that the board scrolls
  #followed = ""; // the focus that was last scrolled into view

  /** @param {ShownText} store */
  constructor(store) {
    this.store = store;
    this.canvas = make("canvas", { "aria-hidden": true });
    this.announcement = make("p", { class: "hs-hidden", "aria-live": "polite" });
    this.board = make("div", { class: "hs-lines", tabindex: 0, role: "application" }, this.canvas, this.#floor);
    this.queryMark = new EdgeMark("hs-edge-query", (token) => this.goTo(token - firstQuery()));
    this.keyMark = new EdgeMark("hs-edge-key", (token) => this.goTo(token));
    this.frame = make("div", { class: "hs-lines-frame" }, this.board, this.queryMark.element, this.keyMark.element);
    const titles = ["this token (query)", "looks at that token (key)"].map((title) => make("span", {}, title));
    const how = mouseOrTouch("Hover or lock a token", "Tap a token");
    const hint = `${how} to see only its lines. Otherwise all lines above “weight at least” are shown.`;
    this.element = make("div", {}, make("p", { class: "hs-columns" }, ...titles), this.frame, this.announcement);
    this.element.append(make("p", { class: "hs-hint" }, hint));
    this.board.addEventListener("pointermove", (event) => store.selection.point(this.cellAt(event)));
    this.frame.addEventListener("pointerleave", () => store.selection.point(null));
    this.board.addEventListener("click", (event) => this.lock(event));
    this.board.addEventListener("keydown", (event) => this.move(event));
    this.frame.addEventListener("focusout", ({ relatedTarget }) => {
      if (!(relatedTarget instanceof Node && this.frame.contains(relatedTarget))) store.selection.point(null);
    });
    const drawn = () => [...store.progress, store.open, store.count, store.view.options, store.selection.selected];
    whenever(drawn, () => this.#redraw());
    onResize(() => this.#redraw(), this.board); // also when the lines become visible
    this.board.addEventListener("scroll", () => this.draw());
  }

  #redraw() {
    this.draw();
    this.showFocus();
  }

  draw() {
    const { store, board } = this;
    const hint = "Left: this token (query), right: that token (key). Arrow keys move, Enter locks, Escape unlocks.";
    board.setAttribute("aria-label", `Lines of ${store.openName}. ${hint}`);
    if (board.closest("[hidden]")) return;
    const [width, height] = [board.clientWidth, board.clientHeight];
    if (!width) return;
    // Only the visible part is drawn: a text of a thousand tokens scrolls under a canvas of the panel's size.
    const context = sharpContext(this.canvas, width, height);
    this.canvas.style.top = `${board.scrollTop}px`;
    const rows = this.rowCount;
    const isAtEnd = this.#floor.style.height !== "" && board.scrollTop + height >= this.#floor.offsetHeight - ROW;
    // Scrolled to its end, it still starts with a whole row.
    this.#floor.style.height = `${rows * ROW + (height % ROW)}px`;
    if (isAtEnd && this.isAtNewest) board.scrollTop = rows * ROW; // follows the writing
    this.showMarks(width, height);
    this.drawLines(context, width, height);
    this.drawTokens(context, width, height);
  }

  /** How many rows there are: in cross-attention, the queries and the keys both begin at the top. */
  get rowCount() {
    const { rows, columns } = sizeOf(this.store.count);
    return Math.max(rows, columns);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   * @param {number} height
   */
  drawTokens(context, width, height) {
    const { store, board } = this;
    const { focus } = store.selection;
    const queries = new Set(store.selection.queries);
    const colours = getComputedStyle(board);
    context.font = monospace(12);
    context.textBaseline = "middle";
    const hasRoom = SIDE * width > ROOM;
    const first = Math.max(0, Math.floor(board.scrollTop / ROW) - 1);
    const end = first + Math.ceil(height / ROW) + 2;
    const { rows, columns } = sizeOf(store.count);
    const y = (/** @type {number} */ row) => (row + 0.5) * ROW - board.scrollTop;
    const mark = colours.getPropertyValue("--hs-mark");
    context.textAlign = "right";
    for (let row = first; row < Math.min(rows, end); row++) {
      const query = firstQuery() + row;
      context.fillStyle = queries.has(query) ? mark : colours.color;
      context.fillText(label(store.tokens[query].text), SIDE * width - 8, y(row));
      if (hasRoom) context.fillText(String(query), NUMBERS, y(row));
    }
    for (let key = first; key < Math.min(columns, end); key++) {
      context.fillStyle = focus?.key === key ? mark : colours.color;
      context.textAlign = "left";
      context.fillText(label(store.tokens[key].text), (1 - SIDE) * width + 8, y(key));
      context.textAlign = "right";
      if (hasRoom) context.fillText(this.weightOf(key), width - 8, y(key));
    }
  }

  /** The weight that the token in focus gives to this one. @param {number} key */
  weightOf(key) {
    const { weights } = this.store;
    const { focus } = this.store.selection;
    return focus && focus.key !== null && key < keysOf(focus.query) ? weightText(weights.at(focus.query, key)) : "";
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
    const [first, last] = [board.scrollTop / ROW - 1, (board.scrollTop + height) / ROW];
    const { queryMark, keyMark, marked } = this;
    for (const { query, key, strength } of linesOf(store)) {
      const isMarked = query === marked?.query && key === marked.key;
      const row = query - firstQuery();
      if (!isMarked && (Math.max(row, key) < first || Math.min(row, key) > last)) continue;
      // Ends of the strongest line that are out of view lead to their marks.
      const start = isMarked && queryMark.isShown ? queryMark.point("right") : { x: from, y: y(row) };
      const end = isMarked && keyMark.isShown ? keyMark.point("left") : { x: to, y: y(key) };
      drawLine(context, start.x, start.y, end.x, end.y, strength);
    }
    context.globalAlpha = 1;
  }

  /** The token in focus, and the key that it looks at most or that is locked with it. */
  get marked() {
    const { store } = this;
    const { focus } = store.selection;
    if (!focus || focus.key === null || !areSelected(store)) return null;
    // A key under the pointer is in view anyway.
    const first = store.view.options.hideFirst ? 1 : 0;
    return store.selection.hover ? { query: focus.query, key: store.weights.strongest(focus.query, first) } : focus;
  }

  /**
   * Show where the token in focus and the key that it looks at most are, if out of view.
   * @param {number} width
   * @param {number} height
   */
  showMarks(width, height) {
    const { store, board, queryMark, keyMark, marked } = this;
    if (!marked || marked.key === null) {
      queryMark.hide();
      keyMark.hide();
      return;
    }
    const { query, key } = marked;
    const side = (/** @type {number} */ token) => sideOf(board.scrollTop, height, token);
    queryMark.show(side(query - firstQuery()), query, store.tokens[query].text);
    keyMark.show(side(key), key, store.tokens[key].text, weightText(store.weights.at(query, key)));
    keyMark.element.style.right = `${board.offsetWidth - width}px`; // next to the scrollbar
  }

  /**
   * @param {MouseEvent} event
   * @returns {Cell | null}
   */
  cellAt(event) {
    const { store, board } = this;
    const { leading, focus } = store.selection;
    const box = board.getBoundingClientRect();
    const i = Math.floor((event.clientY - box.top + board.scrollTop) / ROW);
    if (i < 0 || i >= this.rowCount) return null;
    const isRight = event.clientX - box.left > box.width / 2;
    const left = firstQuery() + i;
    if (!isRight) return left < store.count ? { query: left } : null;
    // On the right is what the selected token looks at; on the left, another token can be selected.
    const query = leading?.query ?? focus?.query;
    return query !== undefined && i < keysOf(query) ? { query, key: i } : null;
  }

  /** @param {MouseEvent} event */
  lock(event) {
    const cell = this.cellAt(event);
    if (cell) this.store.selection.lock({ query: cell.query }, event.shiftKey);
  }

  /** @param {KeyboardEvent} event */
  move(event) {
    const query = moveByKey(this.store, event, { back: "ArrowUp", forward: "ArrowDown" }, this.announcement);
    if (query !== null) this.bringIntoView(query - firstQuery());
  }

  /** Scroll to the token in focus when it changes; until then, the visitor's scrolling is kept. */
  showFocus() {
    const { store, board, frame } = this;
    const { focus } = store.selection;
    if (store.view.options.mode !== "lines") return;
    if (!board.clientHeight) this.#followed = "";
    // A token under the pointer is in view, and must not move away from the pointer.
    if (!focus || !board.clientHeight || frame.matches(":hover")) return;
    const row = Math.max(0, (this.isAtNewest ? store.count - 1 : focus.query) - firstQuery());
    const followed = `${store.openName} ${row} ${focus.query} ${focus.key}`;
    if (followed === this.#followed) return;
    this.#followed = followed;
    this.bringIntoView(row);
  }

  /** Whether the newest step is shown, and nothing else is selected. */
  get isAtNewest() {
    const { step, leading, focus, currentRow } = this.store.selection;
    return step === null && !leading && focus?.query === currentRow;
  }

  /** Scroll to a row, then back towards the key of the focus as far as there is room. @param {number} row */
  bringIntoView(row) {
    const { board } = this;
    board.scrollTop = scrollFor(board.scrollTop, board.clientHeight, row, this.store.selection.focus?.key ?? null);
  }

  /** Scroll the row of a mark to the middle. @param {number} row */
  goTo(row) {
    const { board } = this;
    board.scrollTop = ROW * Math.round(row - (board.clientHeight / ROW - 1) / 2);
    board.focus({ preventScroll: true }); // the mark may be gone
  }
}

const ARROWS = { above: "↑", below: "↓" };

class EdgeMark {
  #shown = "";

  /**
   * @param {string} name of its class
   * @param {(token: number) => void} goTo
   */
  constructor(name, goTo) {
    this.token = -1;
    this.element = smallButton("", () => goTo(this.token), { class: `hs-edge-mark ${name}`, hidden: true });
  }

  get isShown() {
    return !this.element.hidden;
  }

  /**
   * @param {"above" | "below" | ""} side of the view on which the token is; "" hides the mark
   * @param {number} token
   * @param {string} text of the token
   * @param {string} weight its attention weight; "" for a query
   */
  show(side, token, text, weight = "") {
    const { element } = this;
    this.token = token;
    const shown = `${side} ${token} ${weight} ${text}`;
    if (shown === this.#shown) return;
    this.#shown = shown;
    if (!side) {
      element.hidden = true;
      return;
    }
    const name = make("b", {}, label(text));
    element.replaceChildren(`${ARROWS[side]} `, name, ` ${token}`, make("span", {}, weight && ` ${weight}`));
    element.title = weight ? `Looked at most: scroll to token ${token}` : `Back to the query, token ${token}`;
    element.setAttribute("aria-label", `${element.title} ${label(text)}${weight && `, weight ${weight}`}, ${side}`);
    element.classList.toggle("hs-below", side === "below");
    element.hidden = false;
  }

  hide() {
    this.show("", this.token, "");
  }

  /** Where a line meets the mark, in CSS pixels of the view. @param {"left" | "right"} end */
  point(end) {
    const { offsetLeft, offsetTop, offsetWidth, offsetHeight } = this.element;
    return { x: offsetLeft + (end === "right" ? offsetWidth : 0), y: offsetTop + offsetHeight / 2 };
  }
}

export const ROW = 17; // CSS pixels of a token

/**
 * Where to scroll to. The query always stays in view. What it looks at is above it, so a query that must be scrolled
 * into view becomes the last row, and the view moves back to the key as far as the query stays in it.
 * @param {number} top the scroll position, in CSS pixels
 * @param {number} height of the view, in CSS pixels
 * @param {number} query
 * @param {number | null} key to show as well, if there is room
 */
export function scrollFor(top, height, query, key) {
  const lowest = ROW * Math.max(0, query + 1 - Math.floor(height / ROW)); // with the query as the last whole row
  const isInView = query * ROW >= top && (query + 1) * ROW <= top + height;
  const from = isInView ? top : lowest;
  return key !== null && key * ROW < from ? Math.max(key * ROW, lowest) : from;
}

/**
 * On which side of the view a token is; "" if it is in view.
 * @param {number} top
 * @param {number} height
 * @param {number} token
 * @returns {"above" | "below" | ""}
 */
export function sideOf(top, height, token) {
  const middle = (token + 0.5) * ROW - top;
  return middle < 0 ? "above" : middle > height ? "below" : "";
}
