// The tiles of the field: each fills its cell with where the head looks, in the colour of what it does. Heads that
// matter for the next word have full ink.

import { make, NextFrame, setText } from "../../lib/dom.mjs";
import { allHeads, groupSentence, headAt, isSamePicture } from "../../lib/heads.mjs";
import { signed } from "../../lib/numbers.mjs";
import { listen, onResize } from "../../lib/reactive.mjs";
import { Roving } from "../../widgets/roving.mjs";
import { fieldLayout, spokenHead, startsGroup, tileName } from "./field.mjs";
import { kindWords, matters } from "./gains.mjs";
import { unitOf } from "../../lib/words.mjs";
import { blend, KindPainter } from "./kind_painter.mjs";

/** @import { ShownStep } from "./shown_step.mjs" */
/** @import { ShownText } from "../state/shown_text.mjs" */

const PER_FRAME = 12; // tiles that are drawn in one frame while a text grows
const SHORT = { copies: "copies", previous: "prev", first: "first", other: "" };

/** @typedef {{ button: HTMLButtonElement, canvas: HTMLCanvasElement, role: HTMLElement, drawn: string }} Tile */

export class Tiles {
  /** @type {Tile[]} */
  #tiles = [];
  #shape = "";
  #isLaidOut = false;
  #room = 60;
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
    this.#tiles.forEach(({ button }, i) => button.classList.toggle("hs-lit", heads.includes(i)));
  }

  #build() {
    const { n_layer, n_head, n_kv_head, run } = this.store.pointer;
    const shape = run ? `${n_layer} ${n_head} ${n_kv_head}` : "";
    if (shape === this.#shape) return;
    this.#shape = shape;
    this.#isLaidOut = false;
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
    this.#room = Math.max(width, height) * (window.devicePixelRatio || 1);
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
    const painter = new KindPainter(store.data.thumbnails, rows, this.#room);
    const names = kindWords(unitOf(store));
    for (const i of [...this.#due].slice(0, most)) {
      this.#due.delete(i);
      const tile = this.#tiles[i];
      const head = headAt(i, store.pointer);
      const kind = step.kinds[i] ?? "other";
      const isCut = step.isCut(head);
      const gain = shown?.gains[i] ?? 0;
      const isStrong = !isCut && matters(gain);
      const { button } = tile;
      button.dataset.kind = kind;
      button.classList.toggle("hs-matters", isStrong);
      button.classList.toggle("hs-against", isStrong && gain < 0);
      button.classList.toggle("hs-cut", isCut);
      button.classList.toggle("hs-open-tile", isSamePicture(head, store.open));
      setText(tile.role, isCut ? "off" : !isStrong ? "" : gain < 0 ? "against" : SHORT[kind]);
      const adds = shown?.adds?.[i];
      const said = [
        `${spokenHead(head)}: ${names[kind]}`,
        isCut ? "switched off" : adds === undefined ? "" : `adds ${signed(adds, 1)}`,
        groupSentence(head, store.pointer),
      ];
      button.setAttribute("aria-label", said.filter(Boolean).join(", "));
      button.setAttribute("aria-pressed", String(isSamePicture(head, store.open)));
      const { side, factor } = store.data.thumbnails;
      const drawn = [store.pointer.run, side, factor, rows, painter.theme, kind, this.#room].join();
      if (tile.drawn === drawn && !store.isGrowing) continue;
      if (store.pointer.state === "snapshot") blend(tile.canvas);
      tile.drawn = drawn;
      painter.paint(tile.canvas, store.data.index(head), kind);
    }
  }
}
