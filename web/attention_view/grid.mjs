// All heads at once: rows are layers, columns are heads, each a thumbnail that grows while the text is written.

import { make } from "./dom.mjs";
import { palette } from "./palette.mjs";
import { headName } from "./words.mjs";

const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

export class Grid {
  constructor(store) {
    this.store = store;
    this.buttons = [];
    this.element = make("div", { class: "hs-grid", role: "group", "aria-label": "All heads: rows are layers, columns heads" });
    this.element.addEventListener("click", (event) => this.openAt(event.target.closest("button")));
    this.element.addEventListener("keydown", (event) => this.move(event));
    store.on("state", () => this.build());
    store.on("thumbnails", () => this.draw());
    store.on("weights", () => this.mark());
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  /** Make the buttons, once for each shape of a model. */
  build() {
    const { n_layer, n_head, run } = this.store.pointer;
    const shape = run ? `${n_layer}x${n_head}` : "";
    if (shape === this.shape) {
      if (this.run !== run) this.draw();
      this.run = run;
      return;
    }
    this.shape = shape;
    this.buttons = [];
    this.element.replaceChildren();
    if (!run) return;
    this.element.style.setProperty("--hs-heads", n_head);
    this.element.append(make("span"));
    for (let head = 0; head < n_head; head++) this.element.append(make("span", { class: "hs-label" }, `H${head}`));
    for (let layer = 0; layer < n_layer; layer++) {
      this.element.append(make("span", { class: "hs-label" }, `L${layer}`));
      for (let head = 0; head < n_head; head++) {
        const name = headName([layer, head]);
        const button = make("button", { type: "button", title: name, "aria-label": `${name}, thumbnail` }, make("canvas"));
        button.dataset.place = `${layer} ${head}`;
        this.buttons.push(button);
        this.element.append(button);
      }
    }
    this.mark();
    this.draw();
  }

  /** Paint every thumbnail from its bytes, no finer than the screen: a browser that shrinks a picture drops lines. */
  draw() {
    const { thumbnails } = this.store;
    const room = (this.buttons[0]?.firstChild.clientWidth ?? 0) * (window.devicePixelRatio || 1);
    const factor = Math.max(1, Math.ceil(thumbnails.side / Math.max(room, 1)));
    const side = Math.ceil(thumbnails.side / factor);
    const { pixels } = palette().looks;
    for (const [head, button] of this.buttons.entries()) {
      const canvas = button.firstChild;
      if (canvas.width !== Math.max(side, 1)) canvas.width = canvas.height = Math.max(side, 1);
      const context = canvas.getContext("2d");
      if (!side || head >= thumbnails.heads) {
        context.clearRect(0, 0, canvas.width, canvas.height);
        continue;
      }
      const image = context.createImageData(side, side);
      const target = new Uint32Array(image.data.buffer);
      const steps = thumbnails.picture(head, factor, side);
      for (let row = 0; row < side; row++) {
        for (let key = 0; key <= row; key++) target[row * side + key] = pixels[steps[row * side + key]];
      }
      context.putImageData(image, 0, 0);
    }
  }

  /** Show which head is open; it is also the one that Tab leads to. */
  mark() {
    const place = this.store.open.join(" ");
    for (const button of this.buttons) {
      const open = button.dataset.place === place;
      button.setAttribute("aria-pressed", open);
      button.tabIndex = open ? 0 : -1;
    }
  }

  openAt(button) {
    if (button) this.store.choose(...button.dataset.place.split(" ").map(Number));
  }

  move(event) {
    const step = MOVES[event.key];
    const button = event.target.closest("button");
    if (!step || !button) return;
    const { n_layer, n_head } = this.store.pointer;
    const [layer, head] = button.dataset.place.split(" ").map(Number);
    const next = [clamp(layer + step[0], n_layer), clamp(head + step[1], n_head)];
    event.preventDefault();
    button.tabIndex = -1;
    const target = this.buttons[next[0] * n_head + next[1]];
    target.tabIndex = 0;
    target.focus();
  }
}

const clamp = (value, count) => Math.min(Math.max(value, 0), count - 1);
