// The text as a large sentence up to the step that is shown, the threads between its words, and the place where the
// next word would stand. A long text shows its last lines.

import { make, setText, svg } from "../../lib/dom.mjs";
import { share } from "../../lib/numbers.mjs";
import { originOf } from "../../lib/without_heads.mjs";
import { shownText } from "../../lib/words.mjs";
import { roleLabel, Turns } from "../panels/turns.mjs";
import { MATTERS, opacityOf, widthOf } from "./gains.mjs";
import { linesOf, threadPaths } from "./threads.mjs";

/** @import { Store } from "../state/store.mjs" */
/** @import { ShownStep } from "./shown_step.mjs" */
/** @import { Box } from "./threads.mjs" */

const [FOLDED, SHOWN] = [5, 3]; // lines: a text with more of them shows the last ones
const LIKELY = 0.5; // a word with more than this was the likeliest
const LARGE = 2; // lines that a text in the largest letters may have
const [SPACE, DESCENT] = [0.25, 0.275]; // of the size of the letters
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
  isWritten = false; // whether it grew before one's eyes: it then keeps its size and height
  #first = 0; // the first token that is not folded away

  /**
   * @param {Store} store
   * @param {object} actions
   * @param {(token: number) => void} actions.choose a word
   * @param {(token: number | null) => void} actions.point at a word
   * @param {() => void} actions.edit
   */
  constructor(store, { choose, point, edit }) {
    this.store = store;
    this.threads = svg("svg", { class: "hs-threads", "aria-hidden": "true" });
    const unfold = () => {
      this.#isUnfolded = true;
      this.fold();
      this.unfolded();
    };
    this.foldButton = make("button", { type: "button", class: "hs-fold", title: "Show the whole text", hidden: true });
    this.foldButton.setAttribute("aria-label", "Show the whole text");
    this.foldButton.addEventListener("click", unfold);
    this.slot = make("span", { class: "hs-slot", "aria-hidden": "true" });
    this.rest = make("button", { type: "button", class: "hs-rest-of-text", hidden: true });
    this.rest.addEventListener("click", () => store.selection.goto(null));
    this.text = make("p", { class: "hs-sentence-text", tabindex: 0 }, this.foldButton, this.slot);
    this.text.setAttribute("aria-label", "Sentence");
    this.element = make("div", { class: "hs-sentence" }, this.threads, this.text, this.rest);
    const at = (/** @type {Event} */ { target }) => {
      const token = target instanceof Element ? target.closest("[data-i]") : null;
      return token instanceof HTMLElement ? Number(token.dataset.i) : null;
    };
    this.text.addEventListener("click", (event) => {
      const token = at(event);
      if (getSelection()?.toString() || event.target === this.foldButton) return;
      if (token !== null) choose(token);
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
      this.#isUnfolded &&= isGrowing;
      this.isWritten = false;
      this.#run = pointer.run;
    }
    this.isWritten ||= isGrowing;
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
    const more = isGrowing ? 0 : store.length - count - 1;
    this.rest.hidden = more <= 0;
    if (more > 0) setText(this.rest, `${more} more …`);
    this.element.classList.toggle("hs-growing-sentence", isGrowing);
    if (isGrowing) {
      this.#host.dataset.size = "middle";
      this.#unfold();
      this.#laidOut = "";
      this.text.scrollTop = this.text.scrollHeight;
    } else if (this.#laidOut !== this.#layout) this.fold();
  }

  /** Say of each word that was written whether it was drawn or the likeliest. @param {number} count */
  #sayOrigins(count) {
    const { pointer, tokens } = this.store;
    for (let i = pointer.n_prompt; i < count; i++) {
      const { logprob } = tokens[i];
      if (logprob === null || this.#said.has(i)) continue;
      this.#said.add(i);
      const origin = originOf(pointer, i);
      if (origin === "given") continue;
      const word = this.#words[i];
      const part = Math.exp(logprob);
      const isDrawn = origin === "drawn" && part < LIKELY;
      word.classList.toggle("hs-by-chance", isDrawn);
      word.title = isDrawn
        ? `Drawn by chance: it had ${share(part)}`
        : `Chosen as the likeliest: it had ${share(part)}`;
    }
  }

  #laidOut = "";

  /** What decides how the text is laid out. */
  get #layout() {
    return [this.#run, this.#ids.length, this.#isUnfolded, this.element.clientWidth, document.fonts.status].join();
  }

  #unfold() {
    for (const token of this.#tokens.slice(0, this.#first)) token.hidden = false;
    this.foldButton.hidden = true;
    this.#first = 0;
  }

  /** Fold the beginning of a long text away, and choose the size of the letters. */
  fold() {
    const { text } = this;
    this.#unfold();
    this.#host.dataset.size = this.isWritten ? "middle" : "large";
    const lines = () => linesOf(this.#measure(this.#words));
    let all = lines();
    if (!this.isWritten && (all.at(-1) ?? 0) >= LARGE) {
      this.#host.dataset.size = "middle";
      all = lines();
    }
    const last = all.at(-1) ?? 0;
    if (last >= (this.isWritten ? SHOWN : FOLDED) && !this.#isUnfolded) {
      this.foldButton.hidden = false; // it takes room, too
      for (let cut = last - SHOWN; cut < last; cut++) {
        this.#first = all.findIndex((line) => line > cut);
        this.#tokens.forEach((token, i) => (token.hidden = i < this.#first));
        const [shown = 0] = linesOf(this.#measure(this.#words.slice(this.#first))).slice(-1);
        if (shown < SHOWN) break;
      }
    }
    text.scrollTop = 0;
    this.#laidOut = this.#layout;
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
    // What is cut leads to where it looked, as strong as it was.
    const strands = shown.gains.map((own, head) => {
      const gain = isCut[head] ? whole.gains[head] : own;
      const key = (isCut[head] ? whole : shown).keys[head];
      return { head, key, gain, width: widthOf(gain, most), matters: gain >= MATTERS };
    });
    const boxes = this.boxes();
    const paths = threadPaths(boxes, query, strands, { width: this.text.clientWidth, gutter, street });
    const order = [...strands.keys()].sort((a, b) => strands[a].gain - strands[b].gain);
    const ranks = new Map([...order].reverse().map((head, rank) => [head, rank]));
    this.threads.classList.toggle("hs-drawing", isDrawn);
    this.threads.replaceChildren(
      ...order.flatMap((head) => {
        const { gain, width, matters } = strands[head];
        const path = svg("path", {
          d: paths[head],
          "data-head": head,
          "data-kind": step.kinds[head] ?? "other",
        });
        if (!isCut[head]) path.setAttribute("pathLength", "1");
        path.classList.toggle("hs-thread-strong", matters && !isCut[head]);
        path.classList.toggle("hs-cut", isCut[head]);
        path.style.setProperty("--width", `${width.toFixed(2)}px`);
        path.style.setProperty("--ink", opacityOf(gain).toFixed(2));
        path.style.setProperty(
          "--delay",
          matters ? `${0.5 + 0.08 * (ranks.get(head) ?? 0)}s` : `${0.3 * ((head * 0.37) % 1)}s`,
        );
        if (!matters) return [path];
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

  /** Where the next word would stand, in CSS pixels from the sentence's corner. */
  get slotBox() {
    const frame = this.element.getBoundingClientRect();
    const { left, bottom } = this.slot.getBoundingClientRect();
    const { display, fontSize } = getComputedStyle(this.slot);
    const em = parseFloat(fontSize);
    const [space, below] =
      display === "block" ? [0, 0] : [this.slot.classList.contains("hs-after-space") ? SPACE : 0, DESCENT];
    return { left: left - frame.left + space * em, baseline: bottom - frame.top - below * em };
  }
}
