// The text as flowing tokens, coloured by where the selected tokens look (before them) and by which tokens look at them
// (after them), or by how surprising each token was.

import { hasModifier, make, NextFrame } from "../../lib/dom.mjs";
import { palette } from "../../lib/drawing/palette.mjs";
import { Scale } from "../../lib/drawing/scale.mjs";
import { MAX_SURPRISE, surprise } from "../../lib/numbers.mjs";
import { keysOf } from "../../lib/triangle.mjs";
import { nameWithBytes, sentence, shownText } from "../../lib/words.mjs";
import { moveByKey } from "./keyboard.mjs";
import { Arcs, TokenPlaces } from "./arcs.mjs";
import { TextBlocks } from "./text_blocks.mjs";
import { roleLabel, Turns } from "./turns.mjs";
import { listen, onChange, onResize, whenever } from "../../lib/reactive.mjs";

/** @import { Cell, Token } from "../../types.js" */
/** @import { Ramp } from "../../lib/drawing/palette.mjs" */
/** @import { ShownText } from "../state/shown_text.mjs" */

/** @typedef {(i: number) => [ramp: Ramp, shade: number]} Paint the colour of a token */

const MAX_PLAIN_SHADE = 12; // up to this shade a token keeps the page’s own colours
const NEAR_END = 40; // CSS pixels from the end within which the text follows the writing
const MARKS = ["hs-query", "hs-key", "hs-unread", "hs-later", "hs-chosen"];

/** @type {Record<string, string>} shown by signs of the style sheet, so that the text itself stays unchanged */
const SPACES = { " ": "hs-space", "\n": "hs-line", "\t": "hs-tab" };

/** @param {string} text */
const withVisibleSpaces = (text) =>
  text.split(/([ \n\t])/).map((part) => (SPACES[part] ? make("span", { class: SPACES[part] }, part) : part));

/** The spaces before a word, and the word; without such spaces, the whole text and "". @param {string} text */
const splitWord = (text) => /^([ \n\t]+)([^]+)$/.exec(text)?.slice(1) ?? [text, ""];

export class TextView {
  /** @type {HTMLSpanElement[]} */
  #spans = [];
  /** @type {HTMLElement[]} the part of each span that is coloured: a word without the space before it */
  #words = [];
  /** @type {string[]} the marks and the colour of each span, so that only spans that change are touched */
  #looks = [];
  #run = ""; // whose tokens the spans hold
  #follows = true; // whether the end of the text stays in view; its reader may scroll away from it
  #named = 1; // tokens that have titles; the first one is not predicted
  /** @type {number | null} the step that was last scrolled into view */
  #step = null;
  /** @type {Cell[]} */
  #locked = [];
  #lastLine = 0; // where the last line is that was scrolled into view
  // At its start the text is laid out; measured as soon as it grows, all of the page would be laid out twice.
  #nextFrame = new NextFrame(() => {
    this.#follow();
    this.drawArcs();
    if (this.arcs && this.store.isGrowing) {
      this.blocks.extend(this.#spans, this.#words, this.places.measured(this.#words));
    }
  });

  /**
   * @param {ShownText} store
   * @param {object} options
   * @param {boolean} [options.canSurprise] whether it can be coloured by surprise
   * @param {boolean} [options.hasArcs] whether arcs are drawn over it
   * @param {string} [options.label]
   * @param {() => boolean} [options.isShown] while it is not, it is not coloured
   */
  constructor(store, { canSurprise = false, hasArcs = false, label = "Text", isShown = () => true }) {
    this.store = store;
    this.isShown = isShown;
    this.canSurprise = canSurprise;
    this.element = make("div", { class: "hs-text", tabindex: 0, role: "group", "aria-label": label });
    this.earlier = make("span", { class: "hs-earlier", title: "No longer in the context" });
    this.places = new TokenPlaces(this.element);
    this.blocks = new TextBlocks(this.element);
    this.arcs = hasArcs ? new Arcs(store, this.places) : null;
    this.fixed = [...(this.arcs ? [this.arcs.element] : []), this.earlier]; // in front of the tokens
    this.element.append(...this.fixed);
    this.announcement = make("p", { class: "hs-hidden", "aria-live": "polite" });
    this.#listen();
    this.#showChanges();
    if (this.arcs) this.#watchLayout();
  }

  #listen() {
    const { store } = this;
    this.element.addEventListener("pointerover", (event) => this.point(event.target));
    // A finger covers several tokens: the one nearest to it is meant.
    for (const kind of /** @type {const} */ (["pointerdown", "pointermove"])) {
      this.element.addEventListener(kind, (event) => {
        if (event.pointerType === "touch") store.selection.point(this.#cellNear(event));
      });
    }
    this.element.addEventListener("scroll", () => {
      this.#follows = this.isAtEnd;
      this.places.top = this.element.scrollTop;
      this.#showEdges();
      this.arcs?.draw(this.#words);
    });
    this.element.addEventListener("pointerleave", () => store.selection.point(null));
    this.element.addEventListener("click", (event) => this.choose(event));
    // With Shift, the browser would select the text up to there.
    this.element.addEventListener("mousedown", (event) => {
      if (!event.shiftKey) return;
      event.preventDefault();
      this.element.focus({ preventScroll: true });
    });
    this.element.addEventListener("keydown", (event) => this.move(event));
    this.element.addEventListener("blur", () => store.selection.point(null));
  }

  #showChanges() {
    const { store } = this;
    whenever(
      () => [...store.progress, store.count, store.open, store.view.options, store.selection.selected],
      () => this.draw(),
    );
    whenever(
      () => store.selectedHeads.shown,
      () => this.drawArcs(),
    );
  }

  /** Draw arcs where the tokens are. */
  #watchLayout() {
    const { store } = this;
    const remeasure = () => {
      this.blocks.dissolve(this.#spans);
      this.places.forget();
      redraw();
    };
    const redraw = () => {
      this.#showEdges();
      if (store.isGrowing) this.#nextFrame.request();
      else this.arcs?.draw(this.#words);
    };
    onResize(() => (this.places.resized() ? remeasure() : redraw()), this.element);
    listen(document.fonts, "loadingdone", remeasure);
    onChange(
      () => [store.view.options.details],
      () => requestAnimationFrame(remeasure), // when the page has the other styles
    );
  }

  /** Show what has changed: tokens, their colours, and the selected step. */
  draw() {
    this.fit();
    this.#nameTokens();
    this.fill();
    this.colour();
    const { step, locked } = this.store.selection;
    if (step !== this.#step || locked !== this.#locked) this.scrollToStep();
    [this.#step, this.#locked] = [step, locked];
  }

  /** Drop the spans of a run that is no longer shown. */
  fit() {
    const { element, store } = this;
    const earlier = this.canSurprise ? store.pointer.earlier : ""; // not needed in an open head's view
    if (this.earlier.textContent !== earlier) {
      this.earlier.textContent = earlier;
      this.places.forget();
    }
    const { run } = store.pointer;
    if (run === this.#run && store.tokens.length >= this.#spans.length) return;
    this.#run = run;
    this.blocks.dissolve(this.#spans);
    element.replaceChildren(...this.fixed);
    this.places.forget();
    this.#spans = [];
    this.#words = [];
    this.#looks = [];
    this.#named = 1;
    this.#lastLine = 0;
    if (earlier && this.#follows) element.scrollTop = element.scrollHeight;
    else this.#follows = true;
  }

  /** Lines that are cut off fade, and the note about the end is visible only there. */
  #showEdges() {
    const { scrollTop, scrollHeight, clientHeight, classList } = this.element;
    classList.toggle("hs-more-above", scrollTop > 2);
    classList.toggle("hs-more-below", scrollHeight - scrollTop - clientHeight > NEAR_END / 2);
  }

  get isAtEnd() {
    const { scrollHeight, scrollTop, clientHeight } = this.element;
    return scrollHeight - scrollTop - clientHeight < NEAR_END;
  }

  fill() {
    const { element, store } = this;
    element.classList.toggle("hs-growing", store.isGrowing);
    if (!store.isGrowing) this.blocks.dissolve(this.#spans);
    const first = this.#spans.length;
    const turns = new Turns(store.pointer);
    for (let i = first; i < store.tokens.length; i++) {
      const { id } = store.tokens[i];
      const text = shownText(store.tokens[i]);
      if (!store.tokens[i].bytes) this.#showBytes(i);
      const span = make("span", {
        class: i < store.pointer.n_prompt ? "hs-token hs-prompted" : "hs-token",
        "data-i": i,
      });
      if (store.pointer.special.includes(id)) span.classList.add("hs-special");
      span.classList.toggle("hs-part", text === "" && store.tokens[i].bytes !== undefined);
      if (turns.isMarker(i)) span.classList.add("hs-marker");
      const role = turns.roleAt(i);
      // A token of one character needs no elements inside; beside a label, its word is an element of its own.
      if (SPACES[text] && !role) span.classList.add(SPACES[text]);
      const [start, word] = role ? ["", text] : splitWord(text);
      if (role) span.append(roleLabel(role, i === 0));
      span.append(...(text.length > 1 ? withVisibleSpaces(start) : word ? [] : [text]));
      if (word) span.append(make("span", { class: "hs-word" }, ...withVisibleSpaces(word)));
      span.classList.toggle("hs-spaced", word !== "");
      if (this.canSurprise) span.title = describe(store.tokens[i]);
      this.#spans.push(span);
      this.#words.push(/** @type {HTMLElement} */ (word ? span.lastChild : span));
      element.append(span);
    }
    if (!this.#spans[1]?.title) this.#nameTokens(); // a new run's first tokens come without a state event
    if (first === this.#spans.length) return;
    this.places.forget(this.#startOfWord(first));
    if (!store.isGrowing) {
      this.#showEdges();
      this.#follow();
    } else this.#nextFrame.request();
  }

  /** What was begun before a whole character is never completed: show its bytes. @param {number} end */
  #showBytes(end) {
    for (let i = end - 1; this.#spans[i]?.classList.contains("hs-part"); i--) {
      this.#spans[i].classList.remove("hs-part");
      this.#spans[i].textContent = this.store.tokens[i].text;
    }
  }

  /** Keep the end in view. */
  #follow() {
    const { element } = this;
    if (!this.#follows || element.closest("[hidden]")) return;
    const last = this.arcs ? this.places.measured(this.#words).at(-1) : undefined;
    if (last && last.top === this.#lastLine) return;
    this.#lastLine = last?.top ?? 0;
    element.scrollTop = element.scrollHeight;
  }

  /** The log-probabilities of the prompt are known once it has been read. */
  #nameTokens() {
    if (!this.canSurprise) return;
    for (const span of this.#spans.slice(this.#named)) {
      span.title ||= describe(this.store.tokens[this.#named]);
      if (!span.title) return;
      this.#named++;
    }
  }

  /** Where the word begins that a token continues: it may wrap to the next line as a whole. @param {number} position */
  #startOfWord(position) {
    let start = position;
    while (start > 0 && !/^\s/.test(this.store.tokens[start].text)) start--;
    return start;
  }

  drawArcs() {
    if (!this.#nextFrame.isDue && this.arcs && this.element.isConnected && !this.element.closest("[hidden]"))
      this.arcs.draw(this.#words);
  }

  /** Scroll to the selected step and, if there is room, to the key it looks at most, without moving the page. */
  scrollToStep() {
    const { element, store } = this;
    const span = this.#spans[store.selection.step ?? -1];
    if (!span) return;
    const [box, room] = [span.getBoundingClientRect(), element.getBoundingClientRect()];
    // As the last line, since the keys are above it.
    if (box.top >= room.top && box.bottom <= room.bottom) return;
    const { lineHeight } = this;
    const last = element.scrollTop + box.bottom - room.bottom;
    element.scrollTop = Math.ceil(last / lineHeight) * lineHeight; // no half line at the top
    this.scrollToKey();
  }

  /** Scroll back towards the key with the largest weight, as far as the selected step stays in view. */
  scrollToKey() {
    const { element } = this;
    const { focus, step: selected } = this.store.selection;
    const [span, step] = [focus?.key, selected].map((at) => this.#spans[at ?? -1]);
    if (!span || !step) return;
    const [key, end, room] = [span, step, element].map((each) => each.getBoundingClientRect());
    if (key.top >= room.top) return;
    const { lineHeight } = this;
    const [wanted, free] = [Math.ceil((room.top - key.top) / lineHeight), (room.bottom - end.bottom) / lineHeight];
    element.scrollTop -= lineHeight * Math.floor(Math.min(wanted, free));
  }

  /**
   * Scroll by whole lines, so that a token is in a line of the view if the text is long enough.
   * @param {number} position
   * @param {number} line from 0
   * @returns {number} the line that it is in
   */
  scrollTo(position, line) {
    const { element, lineHeight } = this;
    const top = this.#spans[position]?.getBoundingClientRect().top ?? 0;
    const inText = Math.floor((top - element.getBoundingClientRect().top + element.scrollTop) / lineHeight);
    const most = Math.floor((element.scrollHeight - element.clientHeight) / lineHeight);
    const above = Math.max(0, Math.min(inText - line, most));
    element.scrollTop = above * lineHeight;
    return inText - above;
  }

  /** In CSS pixels. */
  get lineHeight() {
    return parseFloat(getComputedStyle(this.element).lineHeight) || 1;
  }

  colour() {
    if (!this.element.isConnected || !this.isShown()) return;
    const { store } = this;
    const { count } = store;
    const { focus, queries } = store.selection;
    const locked = new Set(queries);
    const bySurprise = this.canSurprise && store.view.options.surprise;
    const paint = bySurprise ? this.paintBySurprise() : this.paintByAttention(queries);
    const end = store.selection.step ?? Infinity;
    for (const [i, span] of this.#spans.entries()) {
      const [ramp, shade] = paint(i);
      const isColoured = shade > MAX_PLAIN_SHADE;
      const colour = isColoured ? ramp.css[shade] : "";
      const isMarked = [locked.has(i), focus?.key === i, i >= count, i > end, i === end];
      const look = `${isMarked} ${colour}`;
      if (look === this.#looks[i]) continue; // like most tokens, from one hover to the next
      this.#looks[i] = look;
      MARKS.forEach((name, mark) => span.classList.toggle(name, isMarked[mark]));
      const word = this.#words[i];
      word.classList.toggle("hs-coloured", isColoured);
      word.style.setProperty("--hs-shade", colour);
      word.style.setProperty("--hs-ink", isColoured ? ramp.ink[shade] : "");
    }
    this.drawArcs();
  }

  /**
   * By attention: the strongest colour, if several tokens are locked.
   * @param {number[]} queries
   * @returns {Paint}
   */
  paintByAttention(queries) {
    const { store } = this;
    const { count, weights, selection } = store;
    const { looks, seen } = palette();
    const scale = Scale.of(store);
    // At its step a token has not been looked at yet: what came later shows only for tokens under the pointer or
    // locked.
    const isStep = !selection.hover && !selection.locked.length;
    const largest = new Map(queries.map((query) => [query, scale.largest(weights.row(query), 0, keysOf(query))]));
    return (i) => {
      if (i >= count) return [looks, 0];
      let [ramp, strongest] = [looks, 0];
      for (const query of queries) {
        const isKey = i < keysOf(query); // else it is a later query, which looks at this one
        if (isStep && !isKey) continue;
        const weight = isKey ? weights.at(query, i) : weights.at(i, query);
        // If the first token is hidden, so are the weights of the tokens that look at it.
        const most = isKey ? largest.get(query) : scale.perRow ? scale.largest(weights.row(i), 0, keysOf(i)) : 1;
        const shade = scale.shade(weight, isKey ? i : query, most ?? 1);
        if (shade > strongest) [ramp, strongest] = [isKey ? looks : seen, shade];
      }
      return [ramp, strongest];
    };
  }

  /** @returns {Paint} */
  paintBySurprise() {
    const ramp = palette().surprise;
    return (i) => {
      const bits = surprise(this.store.tokens[i]);
      return [ramp, bits === null ? 0 : Math.min(255, Math.round((255 * bits) / MAX_SURPRISE))];
    };
  }

  /**
   * Arrow keys, Home and End step through the writing; with Shift they only move over the tokens. Enter locks the token
   * in focus, with Shift in addition to those already locked.
   * @param {KeyboardEvent} event
   */
  move(event) {
    if (!this.stepByKey(event)) {
      moveByKey(this.store, event, { back: "ArrowLeft", forward: "ArrowRight" }, this.announcement);
    }
  }

  /** Step through the writing, if the key is one of those that do. @param {KeyboardEvent} event */
  stepByKey(event) {
    const { store } = this;
    /** @type {Record<string, number>} */
    const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
    const by = steps[event.key];
    if (by === undefined || event.shiftKey || hasModifier(event)) return false;
    event.preventDefault();
    store.selection.point(null);
    store.selection.stepBy(by);
    const { tokens, weights } = store;
    const { focus } = store.selection;
    if (focus && focus.key !== null) {
      this.announcement.textContent = sentence(tokens, focus.query, focus.key, weights.at(focus.query, focus.key));
    }
    return true;
  }

  /**
   * The position of the token at an element.
   * @param {EventTarget | null} target
   */
  position(target) {
    const span = /** @type {HTMLElement | null} */ (target instanceof Element ? target.closest(".hs-token") : null);
    return span ? Number(span.dataset.i) : null;
  }

  /** @param {EventTarget | null} target */
  point(target) {
    const query = this.position(target);
    if (query !== null) this.store.selection.point({ query });
  }

  /** The token nearest to a pointer, as a cell. @param {MouseEvent} event */
  #cellNear({ clientX, clientY }) {
    const query = this.places.nearest(this.#words, clientX, clientY);
    return query === null ? null : { query };
  }

  /** @param {number} position @returns {HTMLElement | undefined} */
  span(position) {
    return this.#spans[position];
  }

  /**
   * A click shows the step at which a token was written; Shift locks it.
   * @param {MouseEvent} event
   */
  choose(event) {
    const isTouch = event instanceof PointerEvent && event.pointerType === "touch";
    const position = isTouch ? (this.#cellNear(event)?.query ?? null) : this.position(event.target);
    if (position === null) return;
    const { store } = this;
    if (event.shiftKey) store.selection.lock({ query: position }, true);
    else store.selection.select(position);
  }
}

/** A token with its probability; "" if it was not predicted. @param {Token} token */
function describe(token) {
  const bits = surprise(token);
  if (bits === null) return "";
  return `${nameWithBytes(token)}: probability ${(2 ** -bits).toFixed(4)}, ${bits.toFixed(2)} bits`;
}
