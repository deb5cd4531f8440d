// The open head: its matrix, and what it does for the next word. It opens from its tile.

import { isStill, make, setChildren, setText } from "../../lib/dom.mjs";
import { isHead, isSamePicture, spokenHead } from "../../lib/heads.mjs";
import { share, signed } from "../../lib/numbers.mjs";
import { tile as tileOf } from "../../lib/drawing/thumbnails.mjs";
import { capitalised, pictureName, plainly, shownText, spoken, spokenInWord, unitOf } from "../../lib/words.mjs";
import { action, smallButton } from "../../widgets/controls.mjs";
import { roleSentence } from "../roles/role_words.mjs";
import { kindWords } from "./gains.mjs";
import { blend, KindPainter } from "./kind_painter.mjs";

/** @import { PictureId } from "../../types.js" */
/** @import { ShownStep } from "./shown_step.mjs" */
/** @import { ShownText } from "../state/shown_text.mjs" */

const SWIPE = 40; // CSS pixels that a finger moves to turn to another head
const LABEL = 14; // CSS pixels of a row beside which a word fits
const OPENING = 280; // milliseconds in which the matrix grows from its tile

export class HeadCard {
  /** @type {{ query: number, key: number } | null} the cell under the pointer */
  #pointed = null;
  #drawn = "";
  #side = 344; // of the matrix, in CSS pixels

  /**
   * @param {ShownText} store
   * @param {ShownStep} step
   * @param {(by: number) => void} turn to another head that matters
   */
  constructor(store, step, turn) {
    this.store = store;
    this.step = step;
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.row = make("i", { "aria-hidden": "true" });
    this.cell = make("i", { "aria-hidden": "true" });
    this.labels = make("div", { class: "hs-card-labels", "aria-hidden": "true" });
    const axes = make("div", { class: "hs-card-axes", "aria-hidden": "true" }, make("span", {}, "to →"), "from ↓");
    this.matrix = make("div", { class: "hs-card-matrix" }, this.canvas, this.row, this.cell, this.labels, axes);
    this.name = make("h3", {});
    this.role = make("span", { class: "hs-card-role" });
    const rest = make("span", { class: "hs-on-wide" }, " does a head do that");
    this.how = make("a", { href: "#learn/11", class: "hs-card-how", hidden: true }, "How", rest, "?");
    this.adds = make("p", {
      title: "With all other scores as they are, 1 more makes the odds of a word 2.7 times as high",
    });
    this.looks = make("p", {});
    this.off = action("", () => this.#turnOff());
    const title = make("div", { class: "hs-card-title" }, this.name, this.role, this.how);
    const words = make("div", { class: "hs-card-words" }, title, this.adds, this.looks);
    if (!store.view.isLookOnly) words.append(this.off);
    this.element = make("section", { class: "hs-card", "aria-label": "Open head" }, this.matrix, words);
    const turns = [
      smallButton("‹ Head", () => turn(-1), { "aria-label": "Previous head" }),
      smallButton("Head ›", () => turn(1), { "aria-label": "Next head" }),
    ];
    this.element.append(make("div", { class: "hs-turn-heads" }, ...turns));
    let start = { clientX: 0, clientY: 0 };
    this.element.addEventListener("touchstart", ({ touches }) => (start = touches[0]), { passive: true });
    this.element.addEventListener("touchend", ({ changedTouches: [end] }) => {
      const [by, down] = [end.clientX - start.clientX, end.clientY - start.clientY];
      if (Math.abs(by) >= SWIPE && Math.abs(by) > Math.abs(down)) turn(-Math.sign(by)); // a slanting scroll is none
    });
    this.matrix.addEventListener("pointermove", (event) => this.#point(event));
    this.matrix.addEventListener("pointerleave", () => this.#point(null));
  }

  /** Turn this head off, or on again. */
  #turnOff() {
    const { step, picture } = this;
    const others = (step.cut?.heads ?? []).filter((head) => !isSamePicture(head, picture));
    void step.turnOff(step.isCut(picture) ? others : [...others, picture]);
  }

  /** @param {PointerEvent | null} event */
  #point(event) {
    const { left, top, width } = this.canvas.getBoundingClientRect();
    const n = this.#rows;
    const at = (/** @type {number} */ offset) => Math.max(0, Math.min(n - 1, Math.floor((offset / width) * n)));
    const cell = event && { query: at(event.clientY - top), key: at(event.clientX - left) };
    this.#pointed = cell && cell.key <= cell.query ? cell : null;
    this.#describe();
  }

  get #rows() {
    const { query } = this.step;
    return query >= 0 ? query + 1 : this.store.readable;
  }

  /** @param {number} head its number @param {PictureId} picture */
  draw(head, picture) {
    const { store, step } = this;
    const kind = step.kinds[head] ?? "other";
    this.element.dataset.kind = kind;
    this.head = head;
    this.picture = picture;
    this.#side = this.canvas.clientWidth || 344; // before anything changes that the browser would have to lay out
    const room = this.#side * (window.devicePixelRatio || 1);
    const painter = new KindPainter(store.data.thumbnails, this.#rows, room);
    const drawn = [store.pointer.run, picture, kind].join();
    if (store.pointer.state === "snapshot" && drawn !== this.#drawn) blend(this.canvas);
    this.#drawn = drawn;
    painter.paint(this.canvas, store.data.index(picture), kind);
    const isOne = isHead(picture, store.pointer);
    setText(this.name, isOne ? capitalised(spokenHead(picture)) : pictureName(picture, store.pointer));
    const measured = isOne ? roleSentence(store, picture) : "";
    setText(this.role, kind === "other" ? "" : kindWords(unitOf(store))[kind]);
    this.role.title = measured;
    this.how.hidden = kind !== "copies" || store.view.isLookOnly;
    const isCut = head >= 0 && step.isCutAt(head);
    this.element.classList.toggle("hs-cut", isCut);
    this.off.hidden = !isOne;
    this.off.disabled = !step.whole?.isKnown;
    setChildren(this.off, "Turn ", make("span", { class: "hs-on-wide" }, "this head "), isCut ? "on" : "off");
    this.#describe();
  }

  head = -1;
  /** @type {PictureId} */
  picture = [0, 0];

  #describe() {
    const { store, step, head } = this;
    const { query: at } = step;
    const n = this.#rows;
    // Of a head that is switched off, what it did.
    const shown = head >= 0 && step.isCutAt(head) ? step.whole : step.shown;
    const place = this.#pointed ?? (shown && head >= 0 ? { query: at, key: shown.keys[head] } : null);
    this.row.hidden = this.cell.hidden = !place || !n;
    if (!place || !n || !store.tokens[place.query]) {
      for (const part of [this.adds, this.looks, this.labels]) part.replaceChildren();
      return;
    }
    const { query, key } = place;
    const { thumbnails } = store.data;
    this.#label(place);
    const [size, row, column] = [n - 1, query, key].map((position) => tileOf(position, thumbnails.factor));
    const part = 100 / (size + 1);
    this.row.style.cssText = `top:${row * part}%;width:${(row + 1) * part}%;height:${part}%`;
    this.cell.style.cssText = `top:${row * part}%;left:${column * part}%;width:${part}%;height:${part}%`;
    const weight =
      !this.#pointed && shown
        ? shown.rows[head][key]
        : isSamePicture(this.picture, store.open) && store.weights.rows > query
          ? store.weights.at(query, key)
          : null;
    const isCut = step.isCutAt(head);
    const tokens = store.tokens.slice(0, Math.max(at, query) + 1);
    const from = `${spokenInWord(tokens, query)} ${isCut ? "looked" : "looks"} at `;
    const much = weight === null ? [] : [": ", make("b", {}, share(weight))];
    setChildren(this.looks, from, make("b", {}, spokenInWord(tokens, key)), ...much);
    const adds = shown?.adds?.[head];
    const word = spoken(step.texts[shown?.target ?? -1] ?? "");
    if (isCut) setChildren(this.adds, "switched off");
    else if (adds === undefined) setChildren(this.adds);
    else {
      const score = make("span", { class: "hs-off-phones" }, "the score of ");
      setChildren(this.adds, "adds ", make("b", {}, signed(adds, 1)), " to ", score, word);
    }
  }

  /**
   * Write each word where its row ends, which is also where its column begins; where rows are too low, only those of
   * a cell.
   * @param {{ query: number, key: number }} place
   */
  #label({ query, key }) {
    const n = this.#rows;
    const pitch = this.#side / n;
    const isNear = (query - key) * pitch < LABEL; // the labels would stand on each other
    const rows = pitch >= LABEL ? [...Array(n).keys()] : isNear ? [query] : [key, query];
    const { tokens } = this.store;
    this.labels.replaceChildren(
      ...rows.map((i) => {
        const name = i === query ? "hs-label-from" : i === key ? "hs-label-to" : "";
        const label = make("span", { class: name }, plainly(shownText(tokens[i])));
        label.style.cssText = `left:${(100 * (i + 1)) / n}%;top:${(100 * (i + 0.5)) / n}%`;
        return label;
      }),
    );
  }

  /** Let the matrix grow from its tile. @param {HTMLElement | undefined} tile */
  openFrom(tile) {
    if (!tile || isStill()) return;
    const [from, to] = [tile.getBoundingClientRect(), this.matrix.getBoundingClientRect()];
    if (!to.width || !from.width) return;
    const scale = from.width / to.width;
    const moved = `translate(${from.left - to.left}px, ${from.top - to.top}px) scale(${scale})`;
    this.matrix.animate(
      { transform: [moved, "none"], transformOrigin: ["0 0", "0 0"] },
      { duration: OPENING, easing: "cubic-bezier(.2,0,0,1)" },
    );
  }
}
