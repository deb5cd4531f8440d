// The text as a large sentence up to the step that is shown, the threads between its words, and the next word in its
// place. The sentence keeps its height and the size of its letters while its text goes on; a long text shows its last
// lines.

import { isStill, make, setText, svg } from "../../lib/dom.mjs";
import { share } from "../../lib/numbers.mjs";
import { originOf } from "../../lib/without_heads.mjs";
import { shownText } from "../../lib/words.mjs";
import { roleLabel, Turns } from "../panels/turns.mjs";
import { matters, opacityOf, widthOf } from "./gains.mjs";
import { threadPaths } from "./threads.mjs";

/** @import { ShownText } from "../state/shown_text.mjs" */
/** @import { ShownStep } from "./shown_step.mjs" */
/** @import { Box } from "./threads.mjs" */

const [FOLDED, SHOWN] = [5, 3]; // lines: a text with more of them shows the last ones
const LIKELY = 0.5; // a word with more than this was the likeliest
const LARGE = 2; // lines that a text in the largest letters may have
const DROPPING = { duration: 500, easing: "cubic-bezier(0.3, 0, 0.1, 1)" };
const LETTERS = 1.02; // of the size of the letters: the height that a thread must not cross

export class Sentence {
  /** @type {HTMLElement[]} */
  #tokens = [];
  /** @type {HTMLElement[]} */
  #words = [];
  /** @type {number[]} the ids of the tokens that are shown */
  #ids = [];
  /** @type {Set<number>} words of which it is said how they came into the text */
  #said = new Set();
  #run = "";
  #isUnfolded = false;
  #first = 0; // the first token that is not folded away
  /** @type {number[]} the ids of the text for which the size of the letters and the height were chosen */
  #sizedFor = [];
  #place = ""; // in which they were chosen
  #folded = "";

  /**
   * @param {ShownText} store
   * @param {object} actions
   * @param {(token: number) => void} actions.choose a word
   * @param {(token: number | null) => void} actions.point at a word
   * @param {() => void} actions.edit
   * @param {() => void} actions.next
   */
  constructor(store, { choose, point, edit, next }) {
    this.store = store;
    this.threads = svg("svg", { class: "hs-threads", "aria-hidden": "true" });
    const unfold = () => {
      this.#isUnfolded = !this.#isUnfolded;
      this.fold();
      this.unfolded();
    };
    this.foldButton = make("button", { type: "button", class: "hs-fold", hidden: true });
    this.foldButton.addEventListener("click", unfold);
    this.next = make("span", { class: "hs-next-in-place" });
    this.slot = make("span", { class: "hs-slot", "aria-hidden": "true" }, this.next);
    this.rest = make("button", { type: "button", class: "hs-rest-of-text", hidden: true }, "Back to the end →");
    this.rest.addEventListener("click", () => store.selection.clear());
    this.text = make("p", { class: "hs-sentence-text", tabindex: 0 }, this.slot);
    this.text.setAttribute("aria-label", "Sentence");
    this.ended = make("span", { class: "hs-ended", role: "status" });
    const more = make("div", { class: "hs-more-of-text" }, this.foldButton, this.rest, this.ended);
    this.element = make("div", { class: "hs-sentence" }, this.threads, more, this.text);
    const at = (/** @type {Event} */ { target }) => {
      const token = target instanceof Element ? target.closest("[data-i]") : null;
      return token instanceof HTMLElement ? Number(token.dataset.i) : null;
    };
    this.text.addEventListener("click", (event) => {
      const token = at(event);
      if (getSelection()?.toString()) return;
      if (token !== null) choose(token);
      else if (event.target === this.next) next();
      else edit();
    });
    this.text.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.target !== this.text) return;
      event.preventDefault();
      edit();
    });
    this.text.addEventListener("pointerover", (event) => event.pointerType === "mouse" && point(at(event)));
    this.text.addEventListener("pointerleave", () => point(null));
  }

  unfolded = () => {};

  /** What has the size of the letters: the next words, too. */
  get #host() {
    return this.element.parentElement ?? this.element;
  }

  /** Whether one of the words was drawn by chance. */
  get hasDrawn() {
    return this.#words.some((word) => word.classList.contains("hs-by-chance"));
  }

  /** How many tokens are shown. */
  get length() {
    return this.#tokens.length;
  }

  /**
   * Show the first tokens of the text.
   * @param {number} count
   * @param {boolean} isGrowing
   */
  show(count, isGrowing) {
    const { store } = this;
    const { pointer, tokens } = store;
    if (pointer.run !== this.#run) {
      this.#isUnfolded = false;
      this.#run = pointer.run;
      this.#forgetOrigins();
    }
    let same = 0;
    while (same < Math.min(count, this.#ids.length) && this.#ids[same] === tokens[same].id) same++;
    for (const token of this.#tokens.splice(same)) token.remove();
    for (const i of this.#said) if (i >= same) this.#said.delete(i);
    this.#words.length = this.#ids.length = same;
    const turns = new Turns(pointer);
    for (let i = same; i < count; i++) {
      const text = shownText(tokens[i]);
      const [, space = "", word = ""] = /^(\s*)([^]*)$/.exec(text) ?? [];
      const role = turns.roleAt(i);
      const letters = make("span", { class: "hs-letters" }, word);
      const token = make(
        "span",
        { "data-i": i, class: "hs-word-token" },
        ...(role ? [roleLabel(role, i === 0)] : [space]),
        letters,
      );
      token.classList.toggle("hs-marker", turns.isMarker(i));
      token.classList.toggle("hs-special", pointer.special.includes(tokens[i].id));
      this.#tokens.push(token);
      this.#words.push(letters);
      this.#ids.push(tokens[i].id);
      this.slot.before(token);
    }
    this.#sayOrigins(count);
    this.slot.hidden = isGrowing;
    this.rest.hidden = isGrowing || store.length - count - 1 <= 0;
    setText(this.ended, isGrowing || !this.rest.hidden ? "" : (pointer.why ?? ""));
    this.#layOut();
    if (isGrowing) this.text.scrollTop = this.text.scrollHeight;
    else this.fold();
  }

  /** The same words may have come into another text in another way. */
  #forgetOrigins() {
    for (const i of this.#said) {
      this.#words[i].classList.remove("hs-by-chance");
      this.#words[i].title = "";
    }
    this.#said.clear();
  }

  /** Say of each word that was written whether it was drawn or the likeliest. @param {number} count */
  #sayOrigins(count) {
    const { pointer, tokens } = this.store;
    for (let i = pointer.n_prompt; i < count; i++) {
      const { logprob } = tokens[i];
      if (logprob === null || this.#said.has(i)) continue;
      this.#said.add(i);
      const origin = originOf(pointer, i);
      if (origin === "given" || !origin) continue;
      const word = this.#words[i];
      const part = Math.exp(logprob);
      const isDrawn = origin === "drawn" && part < LIKELY;
      word.classList.toggle("hs-by-chance", isDrawn);
      word.title = isDrawn
        ? `Drawn by chance: it had ${share(part)}`
        : `Chosen as the likeliest: it had ${share(part)}`;
    }
  }

  /**
   * Choose the size of the letters and how many lines there is room for. A text that goes on, or is shown up to an
   * earlier word, keeps both.
   */
  #layOut() {
    const ids = this.#ids;
    const sized = this.#sizedFor;
    const place = [this.element.clientWidth, document.fonts.status].join();
    const goesOn = sized.length && ids.slice(0, sized.length).every((id, i) => id === sized[i]);
    if (ids.length > sized.length || !goesOn) this.#sizedFor = ids.slice();
    if (goesOn && place === this.#place) return;
    this.#place = place;
    const { style, dataset } = this.#host;
    style.setProperty("--lines", "0");
    const lines = (/** @type {string} */ size) => {
      dataset.size = size;
      return Math.round(this.text.scrollHeight / parseFloat(getComputedStyle(this.text).lineHeight));
    };
    let all = lines("large");
    if (all > LARGE) all = lines("middle");
    style.setProperty("--lines", String(all > FOLDED ? SHOWN : all));
  }

  /** Show the last lines of a text that is too long for its place. */
  fold() {
    const { text } = this;
    const folded = [this.#run, this.#ids.length, this.#isUnfolded, this.#place].join();
    if (folded === this.#folded) return;
    this.#folded = folded;
    text.classList.toggle("hs-unfolded", this.#isUnfolded);
    text.scrollTop = text.scrollHeight;
    const { scrollTop } = text;
    this.foldButton.hidden = !scrollTop && !this.#isUnfolded;
    setText(this.foldButton, this.#isUnfolded ? "Show the last lines" : "… Show the whole text");
    const first = this.#words.findIndex((word) => word.offsetTop + word.offsetHeight > scrollTop);
    this.#first = scrollTop ? Math.max(0, first) : 0;
  }

  /** @param {HTMLElement[]} words @returns {Box[]} */
  #measure(words) {
    const frame = this.element.getBoundingClientRect();
    const em = parseFloat(getComputedStyle(this.text).fontSize);
    return words.map((word) => {
      let widest = null;
      for (const part of word.getClientRects()) if (!widest || part.width > widest.width) widest = part;
      const { left, right, top, bottom } = widest ?? word.getBoundingClientRect();
      const middle = (top + bottom) / 2 - frame.top;
      const half = (LETTERS * em) / 2;
      return { left: left - frame.left, right: right - frame.left, top: middle - half, bottom: middle + half };
    });
  }

  /** The places of all tokens; those that are folded away are where the fold is. @returns {Box[]} */
  boxes() {
    const [fold] = this.#first ? this.#measure([this.foldButton]) : [];
    const shown = this.#measure(this.#words.slice(this.#first));
    return [...Array(this.#first).fill(fold), ...shown];
  }

  /**
   * Draw a thread for each head, the faintest first.
   * @param {ShownStep} step
   * @param {boolean} isDrawn whether they draw themselves
   */
  draw(step, isDrawn) {
    const { shown, whole, query } = step;
    this.element.classList.remove("hs-has-light");
    for (const word of this.#words) {
      word.classList.remove("hs-from", "hs-to");
      delete word.dataset.kind;
    }
    if (!shown || !whole || query >= this.#tokens.length) {
      this.threads.replaceChildren();
      return;
    }
    const style = getComputedStyle(this.text);
    const most = parseFloat(style.getPropertyValue("--thread")) || 4;
    const gutter = parseFloat(style.getPropertyValue("--pad")) || 16;
    const street = parseFloat(style.lineHeight) - LETTERS * parseFloat(style.fontSize);
    const isCut = shown.gains.map((_, i) => step.isCutAt(i));
    const named = new Set(step.named);
    // What is cut leads to where it looked, as strong as it was.
    const strands = shown.gains.map((own, head) => {
      const gain = isCut[head] ? whole.gains[head] : own;
      const key = (isCut[head] ? whole : shown).keys[head];
      // What is folded away has no place of its own: its threads are thin, and run close together.
      const isStrong = named.has(head) && key >= this.#first;
      return { head, key, gain, width: widthOf(isStrong ? gain : 0, most), matters: isStrong };
    });
    const boxes = this.boxes();
    const paths = threadPaths(boxes, query, strands, { width: this.text.clientWidth, gutter, street });
    const order = [...strands.keys()].sort(
      (a, b) => Number(named.has(a)) - Number(named.has(b)) || Math.abs(strands[a].gain) - Math.abs(strands[b].gain),
    );
    const ranks = new Map([...order].reverse().map((head, rank) => [head, rank]));
    this.threads.classList.toggle("hs-drawing", isDrawn);
    this.threads.replaceChildren(
      ...order.flatMap((head) => {
        const { gain, width, matters: isStrong } = strands[head];
        const path = svg("path", {
          d: paths[head],
          "data-head": head,
          "data-kind": step.kinds[head] ?? "other",
        });
        const isAgainst = matters(gain) && gain < 0 && !isCut[head];
        if (!isCut[head] && !isAgainst) path.setAttribute("pathLength", "1"); // it draws itself
        path.classList.toggle("hs-against", isAgainst);
        path.classList.toggle("hs-thread-strong", isStrong && !isCut[head]);
        path.classList.toggle("hs-cut", isCut[head]);
        path.style.setProperty("--width", `${width.toFixed(2)}px`);
        path.style.setProperty("--ink", opacityOf(gain, isStrong).toFixed(2));
        path.style.setProperty(
          "--delay",
          isStrong ? `${0.5 + 0.08 * (ranks.get(head) ?? 0)}s` : `${0.3 * ((head * 0.37) % 1)}s`,
        );
        if (!matters(gain)) return [path];
        return [path, svg("path", { d: paths[head], class: "hs-reach", "data-reach": head })];
      }),
    );
    this.#words[query].classList.add("hs-from");
    const { leading } = step;
    const word = leading < 0 ? undefined : this.#words[shown.keys[leading]];
    if (!word) return;
    word.classList.add("hs-to");
    word.dataset.kind = step.kinds[leading] ?? "other";
  }

  /** Light the threads of these heads and dim the others; none lights all. @param {number[]} heads */
  light(heads) {
    this.element.classList.toggle("hs-has-light", heads.length > 0);
    for (const path of this.threads.querySelectorAll("[data-head]")) {
      path.classList.toggle("hs-lit", heads.includes(Number(path.getAttribute("data-head"))));
    }
  }

  /**
   * Show a word in the place of the next one. It is no part of the text.
   * @param {string} word empty for none
   * @param {boolean} [isAfterSpace]
   * @param {boolean} [isEnd] whether it is no word, but ends the text
   * @param {number} [probability] its ink
   */
  showNext(word, isAfterSpace = false, isEnd = false, probability = 1) {
    const { next } = this;
    next.style.setProperty("--likely", probability.toFixed(3));
    this.slot.classList.toggle("hs-after-space", isAfterSpace || isEnd);
    next.classList.toggle("hs-end-of-text", isEnd);
    if (next.dataset.word === word) return;
    next.dataset.word = word;
    next.style.setProperty("--fit", "1");
    const fit = next.clientWidth / Math.max(next.scrollWidth, 1);
    if (fit < 1) next.style.setProperty("--fit", fit.toFixed(3));
    if (word && !isStill()) next.animate({ opacity: [0, 1], translate: ["0 -0.4em", "0 0"] }, DROPPING);
  }
}
