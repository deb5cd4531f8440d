// "Show me": what attention is, in five steps over the text that is shown. Everything else dims, an arc draws itself,
// the row flies into its tile, the heads that do the same are switched off, and the text is written twice until the two
// diverge. Afterwards everything is as it was.

import { hasModifier, isStill, make, PHONE, setFlag } from "../lib/dom.mjs";
import { palette } from "../lib/drawing/palette.mjs";
import { Scale } from "../lib/drawing/scale.mjs";
import { isHead, isSamePicture } from "../lib/heads.mjs";
import { icon } from "../lib/icons.mjs";
import { METRICS } from "../lib/metrics.mjs";
import { changeWords } from "../lib/without_heads.mjs";
import { plainly, shownText, textOf, unitOf } from "../lib/words.mjs";
import { showOpening } from "./address.mjs";
import { effectOf, inBold } from "./answers/effect.mjs";
import { turningPoint } from "./answers/turning_point.mjs";
import { traceArcs } from "./panels/arcs.mjs";
import { describeFocus } from "./panels/focus_sentence.mjs";
import { MIN_LOOK, withoutAlike } from "./roles/heads_alike.mjs";
import { isComplete, patternOf, strongestCell } from "./roles/text_patterns.mjs";
import { PREPARED } from "./state/prepared.mjs";
import { readStored, writeStored } from "./state/storage.mjs";
import { smallButton } from "../widgets/controls.mjs";

/** @import { PictureId, Token } from "../types.js" */
/** @import { Texts } from "./compare/texts.mjs" */
/** @import { Store } from "./state/store.mjs" */

/** In the page's `data-tour`, by which the style sheet dims what the step is not about. */
const STEPS = /** @type {const} */ (["look", "arc", "tile", "off", "diverge"]);
const [ARC, TILE, OFF, DIVERGE] = [1, 2, 3, 4];

const STORED = "headscope-tour";
const READING = 4500; // milliseconds that a step stays while the tour plays automatically
const MOVING = 900; // milliseconds in which the arc draws itself, and a row flies into its tile
const MARGIN = 8; // CSS pixels between what a step describes and the edge of the window
const MAX_MOVING = 160; // cells of a row, the strongest
const TEXT = ".hs-written .hs-text";
const OPEN_TILE = ".hs-heads .hs-grid [aria-pressed=true]";

export class Tour {
  #at = -1; // the step; -1 until the text is ready for the first one
  #turn = 0; // counts the steps; what an await brings for an earlier count is dropped
  /** @type {ReturnType<typeof withoutAlike> | null} */
  #removal = null;
  #hasDiverged = false;
  #isWatching = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  /** @type {Element | null} */
  #focused = null;
  #run = "";
  #sought = ""; // the run in which the place to begin at was looked for
  #isSeeking = false;
  /** @type {Element[]} what the current step has added to the page */
  #added = [];

  /**
   * @param {Texts} texts
   */
  constructor(texts) {
    this.texts = texts;
    this.words = make("p", { role: "status" });
    this.count = make("small", {});
    this.back = smallButton("Back", () => this.previous());
    this.watch = smallButton("Play", () => this.toggleWatch());
    this.watch.title = "Plays the steps one after the other";
    this.button = smallButton("", () => this.next(), { class: "hs-primary" });
    const name = "End the introduction";
    const close = smallButton(icon("close"), () => this.end(), { class: "hs-close", "aria-label": name });
    const controls = make("div", { class: "hs-tour-controls" }, this.count, this.back, this.watch, this.button, close);
    this.element = make(
      "aside",
      { class: "hs-tour", "aria-label": "Introduction", hidden: true },
      this.words,
      controls,
    );
    this.veil = make("div", { class: "hs-tour-veil", hidden: true, onclick: () => this.tap() });
    this.veil.addEventListener("mousedown", (event) => event.preventDefault()); // keep the focus where it is
    this.invitation = smallButton("", () => this.open(), { class: "hs-show-me" });
    this.invitation.append("Show me");
    this.invitation.title = "What a head does, in five steps";
    this.invitation.classList.toggle("hs-primary", readStored(STORED) !== "seen");
    texts.workspace.element.querySelector(".hs-scrubber")?.append(this.invitation);
    this.store.on("state tokens weights thumbnails", () => this.#follow());
    const { answer } = texts.workspace;
    answer.on("asked", () => this.#at === DIVERGE && !answer.asked && this.end()); // closed by Back
    window.addEventListener("keydown", (event) => this.#press(event), { capture: true });
    for (const kind of ["scroll", "resize"]) window.addEventListener(kind, () => this.#place(), { passive: true });
  }

  /** Of the text that the tour is about; not one of two that are compared. */
  get store() {
    return this.texts.workspace.store;
  }

  get isOpen() {
    return !this.element.hidden;
  }

  open() {
    if (this.isOpen) this.end();
    this.#focused = document.activeElement;
    this.texts.close();
    this.texts.workspace.answer.close();
    this.store.view.set({ ask: "", askWith: "", heads: "whole" });
    this.store.selection.point(null);
    this.#at = -1;
    this.#removal = null;
    this.element.hidden = this.veil.hidden = false;
    this.#setWatch(false);
    this.#prepare();
    this.button.focus({ preventScroll: true });
  }

  /** Leave everything as it was before. */
  end() {
    if (!this.isOpen) return;
    this.#at = -1;
    this.#leave();
    this.#setWatch(false);
    delete this.#host.dataset.tour;
    const hadFocus = this.element.contains(document.activeElement);
    this.element.hidden = this.veil.hidden = true;
    this.invitation.classList.remove("hs-primary");
    writeStored(STORED, "seen");
    if (!hadFocus) return;
    const places = [this.#focused, ...document.querySelectorAll(".hs-help, .hs-menu-button")];
    const target = places.find((place) => place?.checkVisibility() && place !== document.body);
    /** @type {HTMLElement | undefined} */ (target)?.focus({ preventScroll: true });
  }

  next() {
    this.#setWatch(false);
    this.#goTo(this.#at + 1);
  }

  previous() {
    this.#setWatch(false);
    if (this.#at > 0) this.#goTo(this.#at - 1);
  }

  /** A tap continues; it does not end the last step while its texts are being written. */
  tap() {
    if (this.#at !== DIVERGE || this.#hasDiverged) this.next();
  }

  toggleWatch() {
    this.#setWatch(!this.#isWatching);
    if (this.#at === DIVERGE && this.#isWatching) this.#goTo(0);
    else this.#dwell();
  }

  get #host() {
    return this.element.parentElement ?? document.body;
  }

  /** @param {boolean} isWatching */
  #setWatch(isWatching) {
    this.#isWatching = isWatching;
    clearTimeout(this.#timer);
    this.watch.textContent = isWatching ? "Pause" : "Play";
    setFlag(this.watch, "aria-pressed", isWatching);
  }

  /** Continue after a while if the tour plays automatically. */
  #dwell() {
    clearTimeout(this.#timer);
    if (!this.#isWatching || this.#at < 0) return;
    if (this.#at < DIVERGE) this.#timer = setTimeout(() => this.#goTo(this.#at + 1), READING);
    else if (this.#hasDiverged) this.#setWatch(false);
  }

  /** @param {KeyboardEvent} event */
  #press(event) {
    if (!this.isOpen || hasModifier(event)) return;
    const { activeElement } = document;
    const isHere = activeElement === document.body || this.element.contains(activeElement);
    if (event.key === "Escape") this.end();
    else if (isHere && event.key === "ArrowLeft") this.previous();
    else if (isHere && event.key === "ArrowRight") this.next();
    else if (event.key === " " && (activeElement === document.body || activeElement === this.button)) this.tap();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** The text has changed: begin once it is complete; end if it is another one. */
  #follow() {
    if (!this.isOpen) return;
    const { run } = this.store.pointer;
    if (this.#run === PREPARED) this.#run = run; // the id that the server has assigned
    if (this.#at < 0) this.#prepare();
    else if (run !== this.#run) this.end();
  }

  /** Begin at a place where the open head, or the clearest one, looks back at something. */
  #prepare() {
    const { store } = this;
    this.button.disabled = this.watch.disabled = this.back.disabled = true;
    this.count.textContent = "";
    const missing = missingIn(store);
    if (missing) {
      this.#say(missing);
      return;
    }
    const { run, state } = store.pointer;
    const isUnchosen = store.selection.isAutomatic || store.selection.isEmpty;
    if (state === "opening" && !isUnchosen) showOpening(store);
    if (this.#sought !== run && state !== "opening" && (isUnchosen || state !== "linked")) {
      this.#sought = run;
      void this.#seek(run);
    }
    if (this.#isSeeking) return;
    if (!looksBack(store)) {
      const head = headWithClearestPattern(store);
      if (this.#run !== run && !isSamePicture(head, store.open)) {
        this.#run = run; // chosen once for this text
        store.view.choose(head);
        return;
      }
      const place = strongestCell(store.weights, null, store.firstStep - 1, store.count);
      if (place) store.selection.select(Math.min(place.query + 1, store.length - 1));
    }
    this.#run = run;
    this.button.disabled = this.watch.disabled = false;
    const { activeElement } = document;
    if (activeElement === document.body || activeElement === this.#focused) this.button.focus({ preventScroll: true });
    this.#goTo(0);
  }

  /** In a text of the visitor's own, begin where the heads that look back matter. @param {string} run */
  async #seek(run) {
    const { store } = this;
    this.#isSeeking = true;
    this.#say("One moment …");
    const place = await turningPoint(store, this.texts.workspace.mixer).catch(() => null);
    this.#isSeeking = false;
    if (!this.isOpen || this.#at >= 0) return;
    if (place && run === store.pointer.run) {
      store.view.choose(place.head);
      store.selection.look(place.step - 1);
    }
    this.#prepare();
  }

  /** @param {number} at */
  #goTo(at) {
    if (at >= STEPS.length) {
      this.end();
      return;
    }
    this.#at = at;
    this.#leave();
    this.#host.dataset.tour = STEPS[at];
    this.count.textContent = `${at + 1} of ${STEPS.length}`;
    this.back.disabled = at === 0;
    this.button.textContent = at === DIVERGE ? "Done" : "Next";
    const { store } = this;
    const { query = 0, key = null } = store.selection.focus ?? {};
    if (at < ARC) {
      const from = make("b", {}, plainly(store.tokens[query].text));
      this.#say(`To choose the next ${unitOf(store)}, the model looks back from `, from, ".");
    } else if (at === ARC) this.#say(...describeFocus(store, query, key ?? 0));
    else if (at === TILE) {
      this.#say("Each look is one row in the head’s tile: stronger colour, more attention.");
    } else if (at === OFF) void this.#switchOff(this.#turn);
    else void this.#writeBoth(this.#turn);
    this.#place();
    const lower = at < TILE ? tokenBox(query) : document.querySelector(OPEN_TILE);
    if (at < DIVERGE) this.#bring(tokenBox(key ?? query), lower);
    store.showKey();
    if (at === ARC && !isStill()) traceArcs(document.querySelectorAll(`${TEXT} .hs-arcs path`), MOVING);
    if (at === TILE) this.#fly(query);
  }

  /** End the current step. */
  #leave() {
    this.#turn++;
    for (const element of this.#added) element.remove();
    this.#added = [];
    const { answer, mixer } = this.texts.workspace;
    mixer.try(undefined);
    answer.close();
  }

  /** @param {...(string | Node)} words */
  #say(...words) {
    this.words.replaceChildren(...words);
    this.#place();
    this.#dwell();
  }

  /** @param {number} turn */
  async #switchOff(turn) {
    const { store, texts } = this;
    const query = store.selection.focus?.query ?? 0;
    this.#say("What if these heads were switched off?");
    const removal = await (this.#removal ??= withoutAlike(store));
    if (turn !== this.#turn || !removal) return;
    const { mixer } = texts.workspace;
    mixer.try(removal.mask);
    const effect = await effectOf(store, mixer, removal.mask, query);
    if (turn === this.#turn) this.#say(...inBold(changeWords(effect, removal.heads.length, unitOf(store))));
  }

  /** Write the text twice from the token that looks back, and say where the two diverge. @param {number} turn */
  async #writeBoth(turn) {
    const { answer } = this.texts.workspace;
    this.#hasDiverged = false;
    const removal = await (this.#removal ??= withoutAlike(this.store));
    if (turn !== this.#turn || !removal) return;
    const them = removal.heads.length === 1 ? "this head" : "these heads";
    this.#say(`Now the same beginning is continued twice: with ${them}, and without.`);
    const written = answer.without(Promise.resolve(removal));
    this.#bring(answer.element, answer.element);
    const hasDiverged = await written;
    if (turn !== this.#turn) return;
    if (!hasDiverged) {
      this.end();
      return;
    }
    this.#hasDiverged = true;
    const { divergesAt: at, areSame, stores } = answer.two;
    if (areSame) {
      this.#say("Both are the same: here, these heads made no difference.");
      return;
    }
    // After a word that both have written, the continuations differ, if only by a punctuation mark.
    const pairs = [wordAt, wordFrom, signAt].map((name) => stores.map(({ tokens }) => name(tokens, at)));
    const different = pairs.find(([one, other]) => one !== other) ?? pairs[0];
    const [withThem, without] = different.map((word) => make("b", {}, word));
    this.#say("With all heads it wrote ", withThem, `; without ${them}, `, without, ".");
  }

  /** Let the row of a token fly into its tile, and mark it there. @param {number} query */
  #fly(query) {
    const { store } = this;
    const tile = document.querySelector(OPEN_TILE);
    const canvas = tile?.querySelector("canvas");
    if (!tile || !canvas) return;
    const { offsetLeft, offsetTop, offsetWidth, offsetHeight } = canvas;
    const rows = store.view.options.details ? store.readable : (store.selection.step ?? store.readable);
    const [width, height] = [offsetWidth / rows, offsetHeight / rows];
    const mark = make("span", { class: "hs-tour-row", "aria-hidden": "true" });
    const [left, top] = [offsetLeft, offsetTop + query * height];
    mark.style.cssText = `left: ${left}px; top: ${top}px; width: ${(query + 1) * width}px; height: ${height}px`;
    tile.append(mark);
    this.#added.push(mark);
    if (isStill()) return;
    const scale = Scale.of(store);
    const row = store.weights.row(query);
    const largest = scale.largest(row, 0, query + 1);
    const room = document.querySelector(TEXT)?.getBoundingClientRect();
    const to = canvas.getBoundingClientRect();
    const keys = [...row.keys()].sort((one, other) => row[other] - row[one]).slice(0, MAX_MOVING);
    for (const key of keys) {
      const from = tokenBox(key)?.getBoundingClientRect();
      if (!from?.width || !room || from.top < room.top - 1 || from.bottom > room.bottom + 1) continue;
      const cell = make("span", { class: "hs-tour-cell", "aria-hidden": "true" });
      cell.style.cssText = `left: ${from.left}px; top: ${from.top}px; width: ${from.width}px; height: ${from.height}px`;
      cell.style.background = palette().looks.css[scale.shade(row[key], key, largest)];
      const [x, y] = [to.left + key * width - from.left, to.top + query * height - from.top];
      const end = `translate(${x}px, ${y}px) scale(${width / from.width}, ${Math.max(height, 2) / from.height})`;
      const moves = { transform: ["none", end] };
      const delay = (MOVING / 3) * (key / (query + 1));
      const animation = cell.animate(moves, { duration: MOVING, delay, easing: "ease-in-out", fill: "both" });
      animation.onfinish = () => cell.remove();
      this.#host.append(cell);
      this.#added.push(cell);
    }
    mark.animate({ opacity: [0, 1] }, { duration: 200, delay: MOVING, fill: "backwards" });
  }

  /** Where the words are placed on wider screens: over the sentence of the text or, with two texts, below them. */
  #place() {
    if (!this.isOpen || matchMedia(PHONE).matches) return;
    const two = this.#at === DIVERGE ? document.querySelector(".hs-two")?.getBoundingClientRect() : undefined;
    const sentence = document.querySelector(".hs-finding > p")?.getBoundingClientRect();
    const { left = 20, width = 600 } =
      two ?? document.querySelector(TEXT)?.parentElement?.getBoundingClientRect() ?? {};
    const top = two ? two.bottom + MARGIN : (sentence?.top ?? 70);
    const lowest = innerHeight - this.element.offsetHeight - MARGIN;
    this.element.style.setProperty("--left", `${left}px`);
    this.element.style.setProperty("--top", `${Math.max(Math.min(top, lowest), MARGIN)}px`);
    this.element.style.setProperty("--width", `${Math.max(width, 300)}px`);
  }

  /**
   * Scroll the page until one element is above the words and the lower edge, and another below the upper edge if there
   * is room for both.
   * @param {Element | null | undefined} upper
   * @param {Element | null | undefined} lower
   */
  #bring(upper, lower) {
    if (!upper || !lower) return;
    const isSheet = matchMedia(PHONE).matches;
    const floor = isSheet ? this.element.getBoundingClientRect().top : innerHeight;
    const bar = document.querySelector(".hs-topbar");
    const isSticky = bar && getComputedStyle(bar).position === "sticky";
    const ceiling = isSticky ? bar.getBoundingClientRect().bottom : 0;
    const down = lower.getBoundingClientRect().bottom + MARGIN - floor;
    const up = upper.getBoundingClientRect().top - MARGIN - ceiling;
    const by = down > 0 ? down : Math.min(up, 0);
    if (by) scrollBy({ top: by, behavior: "instant" });
    this.#place();
  }
}

/** The part of a token that is coloured. @param {number} position */
const tokenBox = (position) =>
  document.querySelector(`${TEXT} [data-i="${position}"] .hs-word, ${TEXT} [data-i="${position}"]:not(.hs-spaced)`);

/** Why the tour cannot begin yet, or "". @param {Store} store */
function missingIn(store) {
  if (store.isGrowing) return "It begins when the text is written.";
  if (store.length < 2) return "It needs a text of a few words: write one first.";
  return store.rows && isComplete(store) ? "" : "One moment …";
}

/** Whether the open picture is a head that, at the token in focus, looks back at one token. @param {Store} store */
function looksBack({ open, pointer, selection: { focus }, weights }) {
  if (!isHead(open, pointer) || !focus || focus.key === null || focus.key === focus.query) return false;
  return weights.at(focus.query, focus.key) >= MIN_LOOK;
}

/**
 * The head with the clearest pattern in the text, other than resting on the first token; else the most focused one.
 * @param {Store} store
 * @returns {PictureId}
 */
function headWithClearestPattern(store) {
  const clear = store.data.heads.flatMap((head) => {
    const pattern = patternOf(store, head);
    return pattern && pattern.name !== "first_token" ? [{ head, mean: pattern.mean }] : [];
  });
  if (clear.length) return clear.reduce((best, one) => (one.mean > best.mean ? one : best)).head;
  const entropy = (/** @type {PictureId} */ head) => store.data.metric(head, METRICS.entropy.index);
  return store.data.heads.reduce((best, head) => (entropy(head) < entropy(best) ? head : best));
}

/**
 * The word that a token belongs to, without punctuation around it.
 * @param {readonly Token[]} tokens
 * @param {number} at
 */
export function wordAt(tokens, at) {
  const texts = tokens.map(shownText);
  let first = at;
  while (first > 0 && first < texts.length && !/^\s/.test(texts[first]) && !/\s$/.test(texts[first - 1])) first--;
  const [start] = texts.slice(first).join("").trimStart().split(/\s/, 1);
  return start.replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, "") || plainly(texts[at] ?? "");
}

/** @param {readonly Token[]} tokens @param {number} at */
const signAt = (tokens, at) => `“${plainly(tokens[at]?.text ?? "")}”`;

/** The first word at or after a token. @param {readonly Token[]} tokens @param {number} at */
export function wordFrom(tokens, at) {
  return /[\p{L}\p{N}]+/u.exec(textOf(tokens.slice(at)))?.[0] ?? signAt(tokens, at);
}
