// The open head: its weights as a picture, and the exact number of the cell that the pointer or the keys stand on.

import { drawAxes, layout } from "./axes.mjs";
import { make, sharpContext } from "./dom.mjs";
import { palette } from "./palette.mjs";
import { Scale } from "./scale.mjs";
import { cells, tile } from "./triangle.mjs";
import { exact, sentence, visible } from "./words.mjs";

const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

export class Matrix {
  constructor(store) {
    this.store = store;
    this.picture = make("canvas", { "aria-hidden": true });
    this.marks = make("canvas", { "aria-hidden": true });
    this.pair = make("p", { class: "hs-pair" });
    this.number = make("p", { class: "hs-number" });
    this.then = make("p", { class: "hs-then" });
    this.readout = make("div", { class: "hs-readout" }, this.pair, this.number, this.then);
    this.spoken = make("p", { class: "hs-hidden", "aria-live": "polite" });
    this.board = make("div", { class: "hs-board", tabindex: 0, role: "application" });
    this.board.append(this.picture, this.marks, this.readout, this.spoken);
    this.board.addEventListener("pointermove", (event) => this.point(event));
    this.board.addEventListener("pointerdown", (event) => this.point(event));
    this.board.addEventListener("pointerleave", () => store.point(null));
    this.board.addEventListener("click", (event) => this.lock(event));
    this.board.addEventListener("keydown", (event) => this.move(event));
    this.board.addEventListener("blur", () => store.point(null));
    this.element = make(
      "div",
      { class: "hs-matrix" },
      make("p", { class: "hs-axis-key" }, "looks at that token (key) →"),
      make("p", { class: "hs-axis-query" }, "this token (query) →"),
      this.board,
    );
    store.on("open weights tokens view", () => this.draw());
    store.on("focus step", () => this.mark());
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  draw() {
    const hint = "Arrow keys move over the cells, Enter locks one, Escape lets go.";
    this.board.setAttribute("aria-label", `Matrix of ${this.store.openName}. ${hint}`);
    const width = Math.floor(this.board.clientWidth);
    this.board.style.height = `${width}px`;
    if (!width) return;
    this.width = width;
    const n = this.store.count;
    this.board.dataset.count = n;
    const context = sharpContext(this.picture, width, width);
    if (n) {
      this.place = layout(context, this.store.tokens, n, width);
      const { margin, cell } = this.place;
      this.board.dataset.margin = margin;
      this.readout.style.top = `${margin + 8}px`; // below the labels of the keys
      context.imageSmoothingEnabled = false;
      context.drawImage(this.paint(n, width - margin), margin, margin, cell * n, cell * n);
      drawAxes(context, this.store.tokens, n, this.place, getComputedStyle(this.element).color);
    }
    this.mark();
  }

  /** The triangle as an image of at most one cell to a pixel: beyond that, the largest of those that share one. */
  paint(n, size) {
    const factor = Math.max(1, Math.ceil((n - 1) / (size * (window.devicePixelRatio || 1))));
    return paintTriangle(this.store.weights.values, n, new Scale(this.store.view.options), palette().looks, factor);
  }

  /** Cross hairs and the number; nothing here waits for the server. */
  mark() {
    if (!this.width) return;
    const context = sharpContext(this.marks, this.width, this.width);
    const { store, place } = this;
    const { focus } = store;
    this.veil(context);
    this.readout.hidden = !focus;
    if (!focus) {
      this.number.textContent = this.then.textContent = "";
      return;
    }
    const { query, key } = focus;
    if (key === null) {
      this.pair.textContent = `“${visible(store.tokens[query]?.text ?? "")}” (${query}) was not read yet`;
      this.number.textContent = this.then.textContent = "";
      return;
    }
    const weight = store.weights.at(query, key);
    this.pair.replaceChildren(this.token(query, "query"), " looks at ", this.token(key, "key"));
    this.number.textContent = exact(weight);
    this.number.dataset.weight = weight;
    this.then.replaceChildren(...this.predicted(query + 1));

    const { margin, cell } = place;
    const [x, y] = [margin + key * cell, margin + query * cell];
    const colours = getComputedStyle(this.element);
    context.strokeStyle = context.fillStyle = colours.getPropertyValue("--hs-mark");
    for (const other of store.queries) context.fillRect(margin - 4, margin + other * cell, 3, Math.max(cell, 2));
    context.globalAlpha = 0.35;
    context.strokeRect(margin, y, (query + 1) * cell, cell);
    context.strokeRect(x, y, cell, (this.store.count - query) * cell);
    context.globalAlpha = 1;
    context.lineWidth = 2;
    context.strokeRect(x - 1, y - 1, cell + 2, cell + 2);
    context.fillRect(x, margin - 4, Math.max(cell, 2), 3);
  }

  /** Cover the rows that were not there yet at the step that is looked at. */
  veil(context) {
    const { store, place } = this;
    const [from, n] = [store.step, store.count];
    if (from === null || from >= n || !place) return;
    const size = place.cell * (n - from);
    context.globalAlpha = 0.75;
    context.fillStyle = getComputedStyle(this.element).getPropertyValue("--block-background-fill");
    context.fillRect(place.margin, place.margin + from * place.cell, place.cell * n, size);
    context.globalAlpha = 1;
  }

  token(position, axis) {
    const text = make("b", {}, visible(this.store.tokens[position].text));
    return make("span", { class: `hs-said-${axis}` }, "“", text, "”", make("small", {}, ` ${position}, ${axis}`));
  }

  /** What was read there led to: a row belongs to its query, and predicts the token after it. */
  predicted(position) {
    const token = this.store.tokens[position];
    if (!token) return [];
    const probability = token.logprob == null ? "" : ` with probability ${exact(Math.exp(token.logprob))}`;
    return ["this row predicts “", make("b", {}, visible(token.text)), `” ${position}${probability}`];
  }

  cellAt(event) {
    const n = this.store.count;
    if (!this.place || !n) return null;
    const box = this.board.getBoundingClientRect();
    const { margin, cell } = this.place;
    const key = Math.floor((event.clientX - box.left - margin) / cell);
    const query = Math.floor((event.clientY - box.top - margin) / cell);
    return key >= 0 && query < n && key <= query ? { query, key } : null;
  }

  point(event) {
    this.store.point(this.cellAt(event));
  }

  lock(event) {
    const cell = this.cellAt(event);
    if (cell) this.store.lock(cell, event.shiftKey);
  }

  move(event) {
    const focus = this.store.focus;
    if (!focus || focus.key === null) return;
    if (event.key === "Escape") this.store.lock(null);
    else if (event.key === "Enter") this.store.lock({ ...focus }, event.shiftKey);
    else if (!MOVES[event.key]) return;
    else {
      const [down, right] = MOVES[event.key];
      const query = Math.min(Math.max(focus.query + down, 0), this.store.count - 1);
      const key = Math.min(Math.max(focus.key + right, 0), query);
      this.store.point({ query, key });
      this.spoken.textContent = sentence(this.store.tokens, query, key, this.store.weights.at(query, key));
    }
    event.preventDefault();
  }
}

/** A lower triangle of n rows as an OffscreenCanvas; with a `factor` the largest of so many cells share a pixel. */
export function paintTriangle(values, n, scale, ramp, factor = 1) {
  const side = tile(n - 1, factor) + 1;
  const image = new ImageData(side, side);
  const target = new Uint32Array(image.data.buffer);
  const steps = new Uint8Array(side * side);
  for (let query = 0; query < n; query++) {
    const from = cells(query);
    const row = tile(query, factor) * side;
    const largest = scale.largest(values, from, query + 1);
    for (let key = 0; key <= query; key++) {
      const place = row + tile(key, factor);
      const found = scale.step(values[from + key], key, largest);
      if (found > steps[place]) steps[place] = found;
    }
  }
  for (let row = 0; row < side; row++) {
    for (let key = 0; key <= row; key++) target[row * side + key] = ramp.pixels[steps[row * side + key]];
  }
  const canvas = new OffscreenCanvas(side, side);
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}
