// A picture's weights as a matrix, and the exact number of the cell under the pointer or the keyboard cursor.

import { ARROWS, make } from "../dom.mjs";
import { clamp, full } from "../numbers.mjs";
import { areRectangles, firstQuery, keysOf, sizeOf } from "../triangle.mjs";
import { plainly, shorten, visible } from "../words.mjs";
import { drawAxes } from "./axes.mjs";
import { monospace, offscreenContext, sansSerif, sharpContext } from "./canvas.mjs";
import { onThemeChange } from "./palette.mjs";
import { isPlain, WeightCells } from "./weight_cells.mjs";
import { listen, onResize, whenever } from "../reactive.mjs";

/** @import { Cell, MatrixCells, MatrixSelection, MatrixSource } from "../../types.js" */
/** @import { Layout } from "./axes.mjs" */

export class Matrix {
  /** @type {Layout | null} */
  #layout = null;
  #width = 0;
  #height = 0;
  #isResized = true; // since the width and the colours were read
  /** @type {OffscreenCanvasRenderingContext2D | null} */
  #axes = null;
  /** @type {OffscreenCanvasRenderingContext2D | null} */
  #ruler = null; // in which labels are measured, before the height is known
  #colours = { ink: "", mark: "" };

  /**
   * @param {MatrixSource} store
   * @param {MatrixSelection} selection
   * @param {MatrixCells} [cells] what is drawn
   */
  constructor(store, selection, cells = new WeightCells(store, selection)) {
    this.store = store;
    this.selection = selection;
    this.cells = cells;
    /** @type {"center" | "left" | "right"} alignment of the name of the key; a side meets the end of its column */
    this.keyAlign = "center";
    /** Whether rows after the selected step are faded. */
    this.fades = true;
    this.picture = make("canvas", { "aria-hidden": true });
    this.marks = make("canvas", { "aria-hidden": true });
    this.pair = make("p", { class: "hs-pair" });
    this.number = make("p", { class: "hs-number" });
    this.prediction = make("p", { class: "hs-then" });
    this.readout = make("div", { class: "hs-readout" }, this.pair, this.number, this.prediction);
    // The cell locked last keeps its place and number while another one is read below it.
    this.lockedPair = make("p", { class: "hs-pair" });
    this.lockedNumber = make("p", { class: "hs-pinned-number" });
    this.pinned = make("div", { class: "hs-pinned", hidden: true }, this.lockedPair, this.lockedNumber);
    this.readouts = make("div", { class: "hs-readouts" }, this.pinned, this.readout);
    this.announcement = make("p", { class: "hs-hidden", "aria-live": "polite" });
    this.board = make("div", { class: "hs-board", tabindex: 0, role: "application" });
    this.board.append(this.picture, this.marks, this.readouts, this.announcement);
    this.board.addEventListener("pointermove", (event) => selection.point(this.cellAt(event)));
    this.board.addEventListener("pointerdown", (event) => selection.point(this.cellAt(event)));
    this.board.addEventListener("pointerleave", () => selection.point(null));
    this.board.addEventListener("click", (event) => this.lock(event));
    this.board.addEventListener("keydown", (event) => this.move(event));
    this.board.addEventListener("blur", () => selection.point(null));
    this.element = make(
      "div",
      { class: "hs-matrix" },
      make("p", { class: "hs-axis-key" }, "looks at that token (key) →"),
      make("p", { class: "hs-axis-query" }, "this token (query) →"),
      this.board,
    );
    /** @type {unknown[]} */
    let drawn = [];
    whenever(
      () => [...store.drawn, this.cells.count, selection.focus, selection.step, selection.locked],
      () => {
        const now = [...store.drawn, this.cells.count];
        if (now.every((value, i) => value === drawn[i])) this.mark();
        else this.draw();
        drawn = now;
      },
    );
    onThemeChange(() => (this.#isResized = true));
    listen(document.fonts, "loadingdone", () => {
      this.#ruler = null; // widths were measured in it with another font
      this.draw();
    });
    void document.fonts.load(monospace(13)); // a canvas does not wait for its font
    // The board may be narrower than its container.
    onResize(() => {
      this.#isResized = true;
      this.draw();
    }, this.element);
    onResize(() => {
      if (Math.floor(this.board.clientWidth) === this.#width) return;
      this.#isResized = true;
      this.draw();
    }, this.board);
  }

  /**
   * For the axes: drawing text on a canvas in the page would force the browser to lay out the page first.
   * @param {CanvasRenderingContext2D} context
   */
  #axesFor({ canvas: { width, height } }) {
    if (this.#axes?.canvas.width !== width || this.#axes.canvas.height !== height)
      this.#axes = offscreenContext(width, height);
    const ratio = width / this.#width;
    this.#axes.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.#axes.clearRect(0, 0, this.#width, this.#height);
    return this.#axes;
  }

  /** Read the layout and the colours, which is too slow to be done whenever a text grows. */
  #measure() {
    const width = Math.floor(this.board.clientWidth);
    const colours = getComputedStyle(this.element);
    this.#colours = { ink: colours.color, mark: colours.getPropertyValue("--hs-mark") };
    this.#isResized = !width; // hidden for now
    this.#width = width;
  }

  draw() {
    const hint = "Arrow keys move over the cells, Enter locks one, Escape unlocks.";
    this.board.setAttribute("aria-label", `Matrix of ${this.store.openName}. ${hint}`);
    if (this.#isResized) this.#measure();
    const width = this.#width;
    if (!width) return;
    const n = this.cells.count;
    this.board.dataset.count = String(n);
    this.#layout = n ? this.cells.place((this.#ruler ??= offscreenContext(1, 1)), n, width) : null;
    const { rows, columns } = sizeOf(n);
    this.#height = this.#layout && areRectangles() ? Math.ceil(this.#layout.margin + rows * this.#layout.high) : width;
    this.board.style.height = `${this.#height}px`;
    const context = sharpContext(this.picture, width, this.#height);
    if (this.#layout) {
      const axes = this.#axesFor(context);
      const { margin, cell, high } = this.#layout;
      this.board.dataset.margin = String(margin);
      // Below the labels of the keys; a rectangle has no free corner, and they are below it.
      if (!areRectangles()) this.readouts.style.top = `${margin + 8}px`;
      context.imageSmoothingEnabled = false;
      context.drawImage(this.cells.paint(n, width - margin), margin, margin, cell * columns, high * rows);
      if (this.#layout.texts || !isPlain(this.store)) {
        drawAxes(axes, this.store.tokens, n, this.#layout, this.#colours.ink);
        context.drawImage(axes.canvas, 0, 0, width, this.#height);
      }
    }
    this.mark();
  }

  /**
   * Name the tokens of a cell on the axes.
   * @param {CanvasRenderingContext2D} marks
   * @param {Layout} layout
   * @param {Cell & { key: number }} cell
   */
  #nameCell(marks, { margin, cell, high }, { query, key }) {
    const { tokens } = this.store;
    const context = this.#axesFor(marks);
    context.fillStyle = this.#colours.mark;
    context.font = sansSerif(13, 700);
    context.textBaseline = "middle";
    context.textAlign = "right";
    const y = Math.min(margin + (query - firstQuery() + 0.5) * high, this.#height - 7); // all of the last row's name
    context.fillText(shorten(plainly(tokens[query].text), 9), margin - 7, y, margin - 7);
    const word = plainly(tokens[key].text);
    const { width } = context.measureText(word);
    const [place, before, gap] = { center: [0.5, 0.5, 0], right: [1, 1, -4], left: [1, 0, 4] }[this.keyAlign];
    context.textAlign = this.keyAlign;
    const x = margin + (key + place) * cell + gap;
    context.fillText(word, clamp(x, before * width, this.#width - (1 - before) * width), margin - 14);
    marks.drawImage(context.canvas, 0, 0, this.#width, this.#height);
  }

  /** Draw the crosshairs and write the number; nothing here waits for the server. */
  mark() {
    if (!this.#width) return;
    const context = sharpContext(this.marks, this.#width, this.#height);
    const { store, selection } = this;
    const { focus } = selection;
    this.fade(context);
    this.readout.hidden = !focus;
    this.pin();
    if (!focus) {
      this.number.textContent = this.prediction.textContent = "";
      return;
    }
    const { query, key } = focus;
    if (key === null) {
      const why = query < firstQuery() ? "is a key, and looks at nothing" : "has not been read yet";
      this.pair.textContent = `“${visible(store.tokens[query]?.text ?? "")}” (${query}) ${why}`;
      this.number.textContent = this.prediction.textContent = "";
      return;
    }
    this.pair.replaceChildren(this.token(query, "query"), " looks at ", this.token(key, "key"));
    const isLocked = (selection.locked ?? []).some((cell) => cell.query === query && cell.key === key);
    const { text, data, then } = this.cells.read(query, key, isLocked);
    this.number.textContent = text;
    this.number.classList.toggle("hs-full", isLocked);
    Object.assign(this.number.dataset, data);
    this.prediction.replaceChildren(...then);
    if (!this.#layout) return;

    const { margin, cell, high } = this.#layout;
    const above = (/** @type {number} */ row) => margin + (row - firstQuery()) * high;
    const [x, y] = [margin + key * cell, above(query)];
    context.strokeStyle = context.fillStyle = this.#colours.mark;
    for (const other of selection.queries)
      if (keysOf(other)) context.fillRect(margin - 4, above(other), 3, Math.max(high, 2));
    context.globalAlpha = 0.35;
    const top = areRectangles() ? margin : y;
    context.strokeRect(margin, y, keysOf(query) * cell, high);
    context.strokeRect(x, top, cell, above(this.cells.count) - top);
    context.globalAlpha = 1;
    context.lineWidth = 2;
    context.strokeRect(x - 1, y - 1, cell + 2, high + 2);
    context.fillRect(x, margin - 4, Math.max(cell, 2), 3);
    if (isPlain(this.store) && !this.#layout.texts) this.#nameCell(context, this.#layout, { query, key });
  }

  /** The readout of the locked cell while another one is in focus. */
  pin() {
    const { weights, count, view } = this.store;
    const { focus, locked = [] } = this.selection;
    const { query = count, key: column } = locked.at(-1) ?? {};
    const isOther = query !== focus?.query || (column ?? focus.key) !== focus.key;
    this.pinned.hidden = !isOther || query >= count || !keysOf(query);
    if (this.pinned.hidden) return;
    const key = column ?? weights.strongest(query, view.options.hideFirst ? 1 : 0);
    this.lockedPair.replaceChildren("locked: ", this.token(query, "query"), " looks at ", this.token(key, "key"));
    const weight = weights.at(query, key);
    this.lockedNumber.textContent = Number.isNaN(weight) ? "" : full(weight);
  }

  /** Fade the rows that did not exist yet at the selected step. @param {CanvasRenderingContext2D} context */
  fade(context) {
    const { step } = this.selection;
    const n = this.cells.count;
    if (!this.fades || step === null || step >= n || !this.#layout) return;
    const { margin, cell, high } = this.#layout;
    const { rows, columns } = sizeOf(n);
    const shown = Math.max(0, step - firstQuery());
    context.globalAlpha = 0.75;
    context.fillStyle = getComputedStyle(this.element).getPropertyValue("--block-background-fill");
    context.fillRect(margin, margin + shown * high, cell * columns, high * (rows - shown));
    context.globalAlpha = 1;
  }

  /**
   * @param {number} position
   * @param {"query" | "key"} axis
   */
  token(position, axis) {
    const text = make("b", {}, visible(this.store.tokens[position].text));
    return make(
      "span",
      { class: `hs-readout-${axis}` },
      "“",
      text,
      "”",
      make("small", {}, ` ${this.cells.nameOf(position)}, ${axis}`),
    );
  }

  /**
   * @param {MouseEvent} event
   * @returns {Cell | null}
   */
  cellAt(event) {
    const n = this.cells.count;
    if (!this.#layout || !n) return null;
    const box = this.board.getBoundingClientRect();
    const { margin, cell, high } = this.#layout;
    const key = Math.floor((event.clientX - box.left - margin) / cell);
    const query = firstQuery() + Math.floor((event.clientY - box.top - margin) / high);
    return key >= 0 && query >= 0 && query < n && key < keysOf(query) ? { query, key } : null;
  }

  /** @param {MouseEvent} event */
  lock(event) {
    const cell = this.cellAt(event);
    if (cell) this.selection.lock(cell, event.shiftKey);
  }

  /** @param {KeyboardEvent} event */
  move(event) {
    const { store, selection } = this;
    const { focus } = selection;
    if (!focus || focus.key === null) return;
    if (event.key === "Escape") selection.lock(null);
    else if (event.key === "Enter") selection.lock({ ...focus }, event.shiftKey);
    else if (!ARROWS[event.key]) return;
    else {
      const [down, right] = ARROWS[event.key];
      const query = clamp(focus.query + down, firstQuery(), store.count - 1);
      const key = clamp(focus.key + right, 0, keysOf(query) - 1);
      selection.point({ query, key });
      this.announcement.textContent = this.cells.say(query, key);
    }
    event.preventDefault();
  }
}
