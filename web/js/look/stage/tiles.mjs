// The tiles of the field: each fills its cell with where the head looks, in the colour of what it does. Heads that
// matter for the next word have full ink.

import { make, NextFrame, setText } from "../../lib/dom.mjs";
import { context2d, packedPixels } from "../../lib/drawing/canvas.mjs";
import { allHeads, groupSentence, headAt, isSamePicture } from "../../lib/heads.mjs";
import { signed } from "../../lib/numbers.mjs";
import { tile as tileOf } from "../../lib/thumbnails.mjs";
import { keysOf } from "../../lib/triangle.mjs";
import { Roving } from "../../widgets/roving.mjs";
import { fieldLayout, spokenHead, startsGroup, tileName } from "./field.mjs";
import { KINDS, MATTERS } from "./gains.mjs";

/** @import { Thumbnails } from "../../lib/thumbnails.mjs" */
/** @import { Kind } from "./gains.mjs" */
/** @import { ShownStep } from "./shown_step.mjs" */
/** @import { Store } from "../state/store.mjs" */

const PER_FRAME = 12; // tiles that are drawn in one frame while a text grows
const SHORT = { copies: "copies", previous: "prev", first: "first", other: "" };

/** @typedef {{ button: HTMLButtonElement, canvas: HTMLCanvasElement, role: HTMLElement, drawn: string }} Tile */

/**
 * Paint where a head looks in the first rows of a text.
 * @param {HTMLCanvasElement} canvas
 * @param {Thumbnails} thumbnails
 * @param {object} how
 * @param {number} how.picture its number
 * @param {number} how.rows tokens
 * @param {number} how.room pixels of a side
 * @param {[number, number, number]} how.colour
 */
export function paintHead(canvas, thumbnails, { picture, rows, room, colour: [red, green, blue] }) {
  if (!thumbnails.side || rows < 1) return;
  const factor = Math.max(1, Math.ceil((thumbnails.side - 1) / Math.max(room - 1, 1)));
  const whole = tileOf(thumbnails.side - 1, factor) + 1;
  const side = Math.min(whole, tileOf(rows - 1, thumbnails.factor * factor) + 1);
  const bytes = thumbnails.pooled(picture, factor, whole);
  if (canvas.width !== side) canvas.width = canvas.height = side;
  const image = new ImageData(side, side);
  const pixels = packedPixels(image);
  const ink = (blue << 16) | (green << 8) | red;
  for (let row = 0; row < side; row++) {
    for (let key = 0, end = keysOf(row, side); key < end; key++) {
      const value = bytes[row * whole + key] / 255; // the square root of the weight
      const alpha = value < 0.06 ? 0 : Math.min(255, Math.round(255 * (value ** 1.25 + 0.02)));
      pixels[row * side + key] = ((alpha << 24) | ink) >>> 0;
    }
  }
  context2d(canvas).putImageData(image, 0, 0);
}

/**
 * The colours of what heads do, as the style sheet has them.
 * @param {HTMLElement} element
 * @returns {Record<Kind, [number, number, number]>}
 */
export function kindColours(element) {
  const style = getComputedStyle(element);
  const parse = (/** @type {Kind} */ kind) => {
    const hex = style.getPropertyValue(`--hs-${kind}`).trim();
    return /** @type {[number, number, number]} */ ([1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  };
  return { copies: parse("copies"), previous: parse("previous"), first: parse("first"), other: parse("other") };
}

export class Tiles {
  /** @type {Tile[]} */
  #tiles = [];
  #shape = "";
  #room = 60;
  /** @type {Set<number>} */
  #due = new Set();
  #frame = new NextFrame(() => {
    this.#drawDue(PER_FRAME);
    if (this.#due.size) this.#frame.request();
  });

  /**
   * @param {Store} store
   * @param {ShownStep} step
   * @param {(head: number | null) => void} light shows a head while it is pointed at
   */
  constructor(store, step, light) {
    this.store = store;
    this.step = step;
    this.element = make("div", { class: "hs-all-heads", role: "group" });
    const at = (/** @type {Event} */ { target }) =>
      this.#tiles.findIndex(({ button }) => target instanceof Node && button.contains(target));
    this.element.addEventListener("pointerover", (event) => {
      const head = at(event);
      if (event.pointerType === "mouse" && head >= 0) light(head);
    });
    this.element.addEventListener("pointerleave", () => light(null));
    this.element.addEventListener("click", (event) => {
      const head = at(event);
      if (head >= 0) store.choosePicture(headAt(head, store.pointer));
    });
    this.roving = new Roving(this.element, () => this.#tiles.map(({ button }) => button), {
      columns: () => store.pointer.n_head,
      choose: light,
    });
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  /** @param {number} head */
  tile(head) {
    return this.#tiles[head]?.button;
  }

  /** Light the tiles of these heads. @param {number[]} heads */
  light(heads) {
    this.#tiles.forEach(({ button }, i) => button.classList.toggle("hs-lit", heads.includes(i)));
  }

  #build() {
    const { n_layer, n_head, n_kv_head, run } = this.store.pointer;
    const shape = run ? `${n_layer} ${n_head} ${n_kv_head}` : "";
    if (shape === this.#shape) return;
    this.#shape = shape;
    this.#tiles = !run
      ? []
      : allHeads(this.store.pointer).map((head) => {
          const [canvas, role] = [make("canvas"), make("b")];
          const name = make("span", { class: "hs-head-tile-name", "aria-hidden": "true" }, role, tileName(head));
          const button = make("button", { type: "button", class: "hs-head-tile", tabindex: -1 }, canvas, name);
          button.dataset.head = head.join();
          button.classList.toggle("hs-begins-group", startsGroup(head, this.store.pointer));
          return { button, canvas, role, drawn: "" };
        });
    this.element.replaceChildren(...this.#tiles.map(({ button }) => button));
    this.element.setAttribute("aria-label", `All ${this.#tiles.length} heads: a row is a layer, the first at the top`);
    this.roving.update();
  }

  draw() {
    this.#build();
    const { store } = this;
    const { clientWidth } = this.element;
    if (!this.#tiles.length || !clientWidth) return;
    const most = parseFloat(getComputedStyle(this.element).maxHeight) || clientWidth;
    const { width, height, gap, group, label } = fieldLayout(store.pointer, clientWidth, most);
    const size = `${width} ${height} ${gap} ${label}`;
    if (this.element.dataset.size !== size) {
      this.element.dataset.size = size;
      this.element.dataset.label = label;
      this.element.style.setProperty("--tile", `${width}px`);
      this.element.style.setProperty("--tile-height", `${height}px`);
      this.element.style.setProperty("--gap", `${gap}px`);
      this.element.style.setProperty("--columns", String(store.pointer.n_head));
      this.element.classList.toggle("hs-grouped", group > 1);
      this.#room = Math.max(width, height) * (window.devicePixelRatio || 1);
    }
    this.#tiles.forEach((_, i) => this.#due.add(i));
    if (store.isGrowing) this.#frame.request();
    else this.#drawDue(this.#tiles.length);
  }

  /** @param {number} most */
  #drawDue(most) {
    const { store, step } = this;
    const colours = kindColours(this.element);
    const { shown } = step;
    const rows = step.query >= 0 ? step.query + 1 : store.readable;
    for (const i of [...this.#due].slice(0, most)) {
      this.#due.delete(i);
      const tile = this.#tiles[i];
      const head = headAt(i, store.pointer);
      const kind = step.kinds[i] ?? "other";
      const isCut = step.isCut(head);
      const matters = !isCut && (shown?.gains[i] ?? 0) >= MATTERS;
      const { button } = tile;
      button.dataset.kind = kind;
      button.classList.toggle("hs-matters", matters);
      button.classList.toggle("hs-cut", isCut);
      button.classList.toggle("hs-open-tile", isSamePicture(head, store.open));
      setText(tile.role, isCut ? "off" : matters ? SHORT[kind] : "");
      const adds = shown?.adds?.[i];
      const said = [
        `${spokenHead(head)}: ${KINDS[kind]}`,
        isCut ? "switched off" : adds === undefined ? "" : `adds ${signed(adds, 1)}`,
        groupSentence(head, store.pointer),
      ];
      button.setAttribute("aria-label", said.filter(Boolean).join(", "));
      button.setAttribute("aria-pressed", String(isSamePicture(head, store.open)));
      const { side, factor } = store.data.thumbnails;
      const drawn = [store.pointer.run, side, factor, rows, colours[kind], this.#room].join();
      if (tile.drawn === drawn && !store.isGrowing) continue;
      tile.drawn = drawn;
      const picture = store.data.index(head);
      paintHead(tile.canvas, store.data.thumbnails, { picture, rows, room: this.#room, colour: colours[kind] });
    }
  }
}
