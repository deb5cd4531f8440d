// The next word where it would stand, and its ghosts below it: all on one axis, the likeliest first.

import { make, setText } from "../../lib/dom.mjs";
import { share } from "../../lib/numbers.mjs";
import { plainly, readAfter } from "../../lib/words.mjs";
import { inkOf } from "./ghosts.mjs";

/** @import { Ghost } from "./ghosts.mjs" */
/** @import { Store } from "../state/store.mjs" */

/** @typedef {{ element: HTMLElement, inner: HTMLElement, word: HTMLElement, number: HTMLElement, at: number }} Row */

const OTHERS = "any other";
const ORDERED_AFTER = 800; // milliseconds until the rows are read in the order that they have moved to
const FADING = 400;

export class Board {
  /** @type {Map<number | null, Row>} */
  #rows = new Map();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /**
   * @param {Store} store
   * @param {((token: number) => void) | null} choose null where nothing can be written
   */
  constructor(store, choose) {
    this.store = store;
    this.choose = choose;
    this.list = make("ol", { class: "hs-ghosts", "aria-label": "Next words" });
    this.note = make("p", { class: "hs-all-on", "aria-hidden": "true" }, "with all heads on");
    this.element = make("div", { class: "hs-next-words", hidden: true }, this.list, this.note);
  }

  clear() {
    this.#rows.clear();
    this.list.replaceChildren();
    this.element.hidden = true;
  }

  /**
   * @param {Ghost[]} ghosts the first of them takes the place of the next word
   * @param {object} how
   * @param {boolean} how.isOff whether heads are off: marks show the values with all heads
   * @param {number | null} how.written the word that stands in the text
   * @param {number} how.query the step
   * @param {string} how.unit
   */
  draw(ghosts, { isOff, written, query, unit }) {
    const { store } = this;
    this.element.hidden = !ghosts.length;
    this.element.classList.toggle("hs-without", isOff);
    for (const [id, { element }] of this.#rows) {
      if (ghosts.some((ghost) => ghost.id === id)) continue;
      this.#rows.delete(id);
      element.classList.add("hs-leaving");
      setTimeout(() => element.remove(), FADING);
    }
    const before = store.tokens.slice(0, query + 1);
    const fits = query + 2 <= store.pointer.context_length;
    ghosts.forEach(({ id, text, probability, withAll }, at) => {
      const row = this.#rows.get(id) ?? this.#add(id);
      const word = id === null ? `${OTHERS} ${unit}` : plainly(readAfter(text, before));
      row.at = at;
      setText(row.word, word);
      setText(row.number, share(probability).replace("under ", "<"));
      row.element.className = `hs-ghost hs-${inkOf(probability)}${at ? "" : " hs-now"}`;
      row.element.classList.toggle("hs-written-word", id !== null && id === written);
      row.element.style.setProperty("--value", String(probability));
      row.element.style.setProperty("--all", String(withAll));
      if (id === null) return;
      const name = `${word}, ${share(probability)}${isOff ? `; with all heads ${share(withAll)}` : ""}`;
      row.inner.setAttribute("aria-label", id === written ? `${name}, in the text` : name);
      row.inner.title = this.choose && fits ? `Go on with “${word}”` : "";
      /** @type {HTMLButtonElement} */ (row.inner).disabled = !(this.choose && fits);
    });
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#order(), ORDERED_AFTER);
  }

  /** The rows in the order in which they are shown. */
  get rows() {
    return [...this.#rows.values()].sort((a, b) => a.at - b.at);
  }

  #order() {
    const focused = document.activeElement;
    const rows = this.rows.map(({ element }) => element);
    if (rows.every((element, i) => this.list.children[i] === element)) return;
    this.list.append(...rows);
    if (focused instanceof HTMLElement && this.list.contains(focused)) focused.focus({ preventScroll: true });
  }

  /** @param {number | null} id @returns {Row} */
  #add(id) {
    const [word, number] = [make("span", { class: "hs-ghost-word" }), make("span", { class: "hs-ghost-number" })];
    const bar = make("span", { class: "hs-ghost-bar", "aria-hidden": "true" }, make("i"), make("u"));
    const inner =
      id === null
        ? make("div", { class: "hs-ghost-inner" }, word, number, bar)
        : make(
            "button",
            { type: "button", class: "hs-ghost-inner", onclick: () => this.choose?.(id) },
            word,
            number,
            bar,
          );
    const element = make("li", {}, inner);
    const row = { element, inner, word, number, at: 0 };
    this.#rows.set(id, row);
    this.list.append(element);
    return row;
  }
}
