// The tiles of the field: each fills its cell with where the head looks, in the colour of what it does. The heads that
// the sentence names have full ink and a frame.

import { make, NextFrame, setText } from "../../lib/dom.mjs";
import { context2d, sharpContext } from "../../lib/drawing/canvas.mjs";
import { allHeads, groupSentence, headAt, headName, isSamePicture, spokenHead } from "../../lib/heads.mjs";
import { signed } from "../../lib/numbers.mjs";
import { listen, onResize } from "../../lib/reactive.mjs";
import { Roving } from "../../widgets/roving.mjs";
import { fieldLayout, startsGroup } from "./field.mjs";
import { kindWords, matters } from "./gains.mjs";
import { unitOf } from "../../lib/words.mjs";
import { blend, KindPainter } from "./kind_painter.mjs";

/** @import { Overlay } from "../../types.js" */
/** @import { Kind } from "./gains.mjs" */
/** @import { ShownStep } from "./shown_step.mjs" */
/** @import { ShownText } from "../state/shown_text.mjs" */

const PER_FRAME = 12; // tiles that are drawn in one frame while a text grows
const SHORT = { copies: "copies", previous: "prev", first: "first", other: "" };

const LEAST_NUMBER = 0.5; // of the most ink: tiles with less of it show no number

/**
 * @typedef {object} Tile
 * @property {HTMLButtonElement} button
 * @property {HTMLElement} role
 * @property {HTMLElement} number the name of the head, or the number of an answer
 * @property {string} drawn
 * @property {number} left of its place in the field, in CSS pixels
 * @property {number} top
 */

/** The colour of a number in the field. @param {Overlay} overlay @param {number | null} value */
const kindOfValue = ({ ramp }, value) => (ramp === "change" && (value ?? 0) < 0 ? "less" : "more");

/** How much ink a number has, from 0 to 1: as with weights, the root, or all but a few heads would look alike. */
const inkPart = (/** @type {Overlay} */ { most }, /** @type {number} */ value) =>
  Math.sqrt(Math.min(1, Math.abs(value) / Math.max(most, 1e-12)));

/** What the inks of an answer mean. @param {Overlay} overlay @returns {[kind: string, words: string][]} */
export const overlayKinds = ({ ramp, ends }) =>
  ramp === "change"
    ? [
        ["less", ends[0]],
        ["more", ends[1]],
      ]
    : [["more", ends[1]]];

export class Tiles {
  /** @type {Tile[]} */
  #tiles = [];
  #shape = "";
  #isLaidOut = false;
  #size = { width: 60, height: 60 }; // of a tile, in CSS pixels
  /** @type {Set<number>} */
  #due = new Set();
  #frame = new NextFrame(() => {
    this.#drawDue(PER_FRAME);
    if (this.#due.size) this.#frame.request();
  });

  /**
   * @param {ShownText} store
   * @param {ShownStep} step
   * @param {(head: number | null) => void} light shows a head while it is pointed at
   */
  constructor(store, step, light) {
    this.store = store;
    this.step = step;
    // One for all tiles, which lie on it: a canvas in each would be as many layers for the browser to put together.
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.element = make("div", { class: "hs-all-heads", role: "group" }, this.canvas);
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
    const resized = () => {
      this.#isLaidOut = false;
      this.draw();
    };
    onResize(resized, this.element);
    listen(window, "resize", resized);
  }

  /** @param {number} head */
  tile(head) {
    return this.#tiles[head]?.button;
  }

  /** Light the tiles of these heads. @param {number[]} heads */
  light(heads) {
    this.element.classList.toggle("hs-has-light", heads.length > 0);
    this.#tiles.forEach(({ button }, i) => button.classList.toggle("hs-lit", heads.includes(i)));
  }

  #build() {
    const { n_layer, n_head, n_kv_head, run } = this.store.pointer;
    const shape = run ? `${n_layer} ${n_head} ${n_kv_head}` : "";
    if (shape === this.#shape) return;
    this.#shape = shape;
    this.#due.clear();
    this.#isLaidOut = false;
    this.#tiles = !run
      ? []
      : allHeads(this.store.pointer).map((head) => {
          const role = make("b");
          const number = make("span", {}, headName(head));
          const name = make("span", { class: "hs-head-tile-name", "aria-hidden": "true" }, role, number);
          const button = make("button", { type: "button", class: "hs-head-tile", tabindex: -1 }, name);
          button.dataset.head = head.join();
          button.classList.toggle("hs-begins-group", startsGroup(head, this.store.pointer));
          return { button, role, number, drawn: "", left: 0, top: 0 };
        });
    this.element.replaceChildren(this.canvas, ...this.#tiles.map(({ button }) => button));
    this.element.setAttribute("aria-label", `All ${this.#tiles.length} heads: a row is a layer, the first at the top`);
    this.roving.update();
  }

  /** Choose the size of the tiles; only when something has changed, since this needs the page's layout. */
  #layOut() {
    const { store, element } = this;
    const { clientWidth } = element;
    if (!this.#tiles.length || !clientWidth) return;
    this.#isLaidOut = true;
    const most = parseFloat(getComputedStyle(element).maxHeight) || clientWidth;
    const { width, height, gap, group, label } = fieldLayout(store.pointer, clientWidth, most);
    element.dataset.label = label;
    element.style.setProperty("--tile", `${width}px`);
    element.style.setProperty("--tile-height", `${height}px`);
    element.style.setProperty("--gap", `${gap}px`);
    element.style.setProperty("--columns", String(store.pointer.n_head));
    element.classList.toggle("hs-grouped", group > 1);
    this.#size = { width, height };
    for (const tile of this.#tiles) {
      [tile.left, tile.top] = [tile.button.offsetLeft, tile.button.offsetTop];
      tile.drawn = "";
    }
    const { left, top } = this.#tiles[this.#tiles.length - 1];
    sharpContext(this.canvas, left + width, top + height);
  }

  draw() {
    this.#build();
    const { store } = this;
    if (!this.#isLaidOut) this.#layOut();
    if (!this.#isLaidOut) return;
    this.#tiles.forEach((_, i) => this.#due.add(i));
    if (store.isGrowing) this.#frame.request();
    else this.#drawDue(this.#tiles.length);
  }

  /** @param {number} most */
  #drawDue(most) {
    const { store, step } = this;
    const { shown } = step;
    const rows = step.query >= 0 ? step.query + 1 : store.readable;
    const { width, height } = this.#size;
    const room = Math.max(width, height) * (window.devicePixelRatio || 1);
    const painter = new KindPainter(store.data.thumbnails, rows, room);
    const context = context2d(this.canvas);
    let isBlending = store.pointer.state === "snapshot";
    const names = kindWords(unitOf(store));
    const overlay = store.answer.shownOverlay;
    this.element.classList.toggle("hs-of-answer", overlay !== null);
    const named = new Set(step.named);
    for (const i of [...this.#due].slice(0, most)) {
      this.#due.delete(i);
      const tile = this.#tiles[i];
      const head = headAt(i, store.pointer);
      const value = overlay?.values[head[0]]?.[head[1]] ?? null;
      const kind = overlay ? kindOfValue(overlay, value) : (step.kinds[i] ?? "other");
      const isCut = step.isCut(head);
      const gain = shown?.gains[i] ?? 0;
      const isAgainst = !isCut && matters(gain) && gain < 0;
      const { button } = tile;
      button.dataset.kind = kind;
      button.classList.toggle("hs-named", !isCut && !overlay && named.has(i));
      button.classList.toggle("hs-against", isAgainst && !overlay);
      button.classList.toggle("hs-cut", isCut && !overlay);
      button.classList.toggle("hs-open-tile", isSamePicture(head, store.open));
      setText(tile.role, overlay ? "" : isCut ? "off" : isAgainst ? "against" : SHORT[/** @type {Kind} */ (kind)]);
      const adds = shown?.adds?.[i];
      const part = overlay && value !== null ? inkPart(overlay, value) : 0;
      button.style.setProperty("--part", part.toFixed(3));
      const number = overlay && part >= LEAST_NUMBER ? overlay.short(value ?? 0) : headName(head);
      if (tile.number.textContent !== number) tile.number.replaceChildren(number); // in place of the other, not moved
      button.classList.toggle("hs-numbered", overlay !== null && part >= LEAST_NUMBER);
      const said = overlay
        ? [spokenHead(head), value === null ? "" : `${overlay.title}: ${overlay.long(value)}`]
        : [
            `${spokenHead(head)}: ${names[/** @type {Kind} */ (kind)]}`,
            isCut ? "switched off" : adds === undefined ? "" : `adds ${signed(adds, 1)}`,
            groupSentence(head, store.pointer),
          ];
      button.setAttribute("aria-label", said.filter(Boolean).join(", "));
      button.setAttribute("aria-pressed", String(isSamePicture(head, store.open)));
      const { side, factor } = store.data.thumbnails;
      const drawn = [store.pointer.run, side, factor, rows, painter.theme, kind].join();
      if (tile.drawn === drawn && !store.isGrowing) continue;
      if (isBlending) blend(this.canvas);
      isBlending = false;
      tile.drawn = drawn;
      painter.paintAt(context, store.data.index(head), kind, { x: tile.left, y: tile.top, width, height });
    }
  }
}
