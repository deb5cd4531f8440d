// The list of next words, in a place of its own: all on one axis, the likeliest first.

import { make, setText } from "../../lib/dom.mjs";
import { share } from "../../lib/numbers.mjs";
import { isEnd, plainly, readAfter } from "../../lib/words.mjs";
import { isLikely } from "./ghosts.mjs";

/** @import { Ghost } from "./ghosts.mjs" */
/** @import { ShownText } from "../state/shown_text.mjs" */

/** @typedef {{ element: HTMLElement, inner: HTMLElement, word: HTMLElement, number: HTMLElement, at: number }} Row */

const OTHERS = "all others";
const ORDERED_AFTER = 800; // milliseconds until the rows are read in the order that they have moved to
const FADING = 400;
const TICK = 0.01; // a word that was less likely than this with all heads has no mark of it

export class Board {
  /** @type {Map<number | null, Row>} */
  #rows = new Map();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /**
   * @param {ShownText} store
   * @param {((token: number) => void) | null} choose null where nothing can be written
   */
  constructor(store, choose) {
    this.store = store;
    this.choose = choose;
    this.list = make("ol", { class: "hs-ghosts", "aria-label": "Next words" });
    this.note = make("p", { class: "hs-all-on", "aria-hidden": "true" }, "with all heads on");
    this.element = make("div", { class: "hs-next-words" }, this.list, this.note);
  }

  clear() {
    this.#rows.clear();
    this.list.replaceChildren();
    this.element.classList.remove("hs-without");
  }

  /**
   * @param {Ghost[]} ghosts
   * @param {object} how
   * @param {boolean} how.isOff whether heads are off: marks show the values with all heads
   * @param {number | null} how.written the word that stands in the text
   * @param {number | null} how.next the word that stands in the place of the next one
   * @param {number} how.query the step
   */
  draw(ghosts, { isOff, written, next, query }) {
    const { store } = this;
    this.element.classList.toggle("hs-without", isOff);
    for (const [id, { element }] of this.#rows) {
      if (ghosts.some((ghost) => ghost.id === id)) continue;
      this.#rows.delete(id);
      element.classList.add("hs-leaving");
      setTimeout(() => element.remove(), FADING);
    }
    const fallen = ghosts.reduce((most, ghost) => (ghost.withAll > most.withAll ? ghost : most), ghosts[0])?.id;
    const before = store.tokens.slice(0, query + 1);
    const fits = query + 2 <= store.pointer.context_length;
    ghosts.forEach(({ id, text, probability, withAll }, at) => {
      const row = this.#rows.get(id) ?? this.#add(id);
      const word = id === null ? OTHERS : plainly(readAfter(text, before));
      row.at = at;
      setText(row.word, word);
      const [is, was] = [probability, withAll].map((value) => share(value).replace("under ", "<"));
      const hasFallen = isOff && id === fallen && at > 0;
      setText(row.number, hasFallen ? `${was} → ${is}` : is);
      row.element.className = `hs-ghost${isLikely(probability) ? " hs-likely" : ""}${id === next ? " hs-now" : ""}`;
      row.element.classList.toggle("hs-ticked", withAll >= TICK);
      row.element.classList.toggle("hs-end-of-text", isEnd(text));
      row.element.style.setProperty("--at", String(at));
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

  #order() {
    const focused = document.activeElement;
    const rows = [...this.#rows.values()].sort((a, b) => a.at - b.at).map(({ element }) => element);
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
