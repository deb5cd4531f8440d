// What a visitor meets: the text as one large sentence, threads from its last word to what every head looks at, the
// words that could come next, one switch, and all heads as a field. Details show the instrument instead.

import { hasModifier, isStill, make, setFlag, setText } from "../../lib/dom.mjs";
import { headAt } from "../../lib/heads.mjs";
import { wait } from "../../lib/latest.mjs";
import { mostProbable } from "../../lib/sampling.mjs";
import { changeWords, likeliestWords, originOf, restWords, theseHeads } from "../../lib/without_heads.mjs";
import { spoken, unitOf } from "../../lib/words.mjs";
import { openText } from "../address.mjs";
import { stepKeys } from "../keyboard.mjs";
import { readStored, writeStored } from "../state/storage.mjs";
import { Birth } from "./birth.mjs";
import { Board } from "./board.mjs";
import { Editor } from "./editor.mjs";
import { gainWords, KINDS, MATTERS } from "./gains.mjs";
import { ghostsOf } from "./ghosts.mjs";
import { HeadCard } from "./head_card.mjs";
import { Sentence } from "./sentence.mjs";
import { ShownStep } from "./shown_step.mjs";
import { Tiles } from "./tiles.mjs";
import { onChange, whenever } from "../../lib/reactive.mjs";

/** @import { Texts } from "../compare/texts.mjs" */
/** @import { Mixer } from "../ask/mixer.mjs" */
/** @import { Part } from "../../lib/without_heads.mjs" */
/** @import { Store } from "../state/store.mjs" */

const STORED = "headscope-played"; // storage key: whether an opening has played before
const [TOKEN, PAUSE] = [75, 150]; // milliseconds for a token of an opening that writes itself, and for a mark
const FONTS = ['40px "IBM Plex Sans"', 'bold 40px "IBM Plex Sans"']; // in others, lines would break elsewhere
const FONT_TIMEOUT = 600; // milliseconds
const THREADS = 1700; // milliseconds in which threads draw themselves

export class Stage {
  #isPlaying = false;
  #played = false; // while the threads of a text that has just written itself are drawn
  #hasFont = false;
  #drawn = ""; // the step whose threads were drawn
  #openedFor = ""; // the text for which the leading head was opened
  /** @type {number | null} the head under the pointer */
  #pointed = null;

  /**
   * @param {Store} store
   * @param {Mixer} mixer
   * @param {Texts | null} texts null where there is no model
   * @param {HTMLElement} menu
   */
  constructor(store, mixer, texts, menu) {
    this.store = store;
    this.texts = texts;
    this.step = new ShownStep(store, mixer);
    const light = (/** @type {number | null} */ head) => this.#point(head);
    this.sentence = new Sentence(store, {
      choose: (token) => this.#choose(token),
      point: (token) => this.#pointAtWord(token),
      edit: () => this.#edit(),
    });
    this.sentence.unfolded = () => this.draw();
    this.board = new Board(store, texts && ((token) => this.#branch(token)));
    this.tiles = new Tiles(store, this.step, light);
    this.card = new HeadCard(store, this.step, (by) => this.#turn(by));
    this.say = make("p", { class: "hs-stage-say", role: "status" });
    this.offWords = make("span", {});
    this.off = make("button", { type: "button", class: "hs-switch", role: "switch" }, make("i", {}), this.offWords);
    this.off.addEventListener("click", () => void this.step.switch(!this.step.isOff));
    const quiet = (/** @type {string} */ words, /** @type {() => void} */ act) =>
      make("button", { type: "button", class: "hs-quiet-action", onclick: act }, words);
    this.write = quiet("Write", () => this.#edit());
    this.write.title = "Change the text, or begin another one";
    this.more = quiet("Go on", () => texts?.writing.goOn());
    this.more.title = "Let the model write on";
    this.stop = quiet("Stop", () => texts?.writing.stop());
    this.more.classList.add("hs-on-wide");
    this.replay = quiet("Replay", () => void this.play());
    this.replay.classList.add("hs-on-wide");
    this.back = quiet("Take it back", () => history.back());
    this.birth = new Birth(store, this.step);
    const withModel = texts ? [this.off, this.stop, this.write, this.more, this.back] : [];
    this.actions = make("div", { class: "hs-stage-actions" }, ...withModel, this.replay, menu);
    this.title = make("h2", {});
    this.explanation = make("p", {});
    const legend = Object.entries(KINDS).map(([kind, words]) => make("span", { "data-kind": kind }, words));
    const caption = make("header", {}, this.title, make("div", { class: "hs-kinds" }, ...legend));
    const field = make(
      "section",
      { class: "hs-all-heads-side", "aria-label": "All heads" },
      caption,
      this.tiles.element,
      this.explanation,
      ...(texts ? [this.birth.element] : []),
    );
    this.verdict = make("div", { class: "hs-verdict" }, this.say);
    const side = make("div", { class: "hs-stage-side" }, this.verdict, this.actions, this.card.element);
    this.editor = new Editor(store, texts, () => this.draw());
    const top = make("div", { class: "hs-stage-top" }, this.sentence.element, this.editor.element, this.board.element);
    this.element = make(
      "section",
      { class: "hs-stage hs-simple", "aria-label": "Stage" },
      top,
      make("div", { class: "hs-stage-body" }, field, side),
    );
    this.side = side;
    this.sentence.threads.addEventListener("pointerover", (event) => this.#point(reached(event)));
    this.sentence.threads.addEventListener("pointerleave", () => this.#point(null));
    this.sentence.threads.addEventListener("click", (event) => {
      const head = reached(event);
      if (head !== null) store.choosePicture(headAt(head, store.pointer));
    });
    stepKeys({ element: this.sentence.text, stepByKey: (event) => this.#stepByKey(event) });
    window.addEventListener("keydown", (event) => !hasModifier(event) && this.#hurry());
    this.element.addEventListener("pointerdown", () => this.#hurry());
    new ResizeObserver(() => store.isGrowing || this.draw(true)).observe(this.sentence.element);
    document.fonts.addEventListener("loadingdone", () => this.draw(true));
    void Promise.race([Promise.all(FONTS.map((font) => document.fonts.load(font))), wait(FONT_TIMEOUT)]).then(() => {
      this.#hasFont = true;
      this.draw();
    });
    this.#follow();
  }

  #follow() {
    const { store } = this;
    whenever(
      () => [...store.progress, store.selection.selected, this.step.changes, store.view.options.details],
      () => this.draw(),
    );
    whenever(
      () => [store.rows, store.open, store.count, store.drawing],
      () => {
        this.tiles.draw();
        this.#drawCard();
        this.#light();
      },
    );
    onChange(
      () => [store.clicks],
      () => this.card.openFrom(this.tiles.tile(this.card.head)),
    );
  }

  get #isShown() {
    return !this.store.view.options.details && this.element.isConnected;
  }

  /** Draw everything for the step that is shown. @param {boolean} [isResized] */
  draw(isResized = false) {
    const { store, step } = this;
    const { pointer, isGrowing, tokens } = store;
    this.element.hidden = !pointer.run || !this.#hasFont || (this.element.hidden && !tokens.length);
    if (!this.#hasFont) return;
    if (!this.#isShown || !pointer.run || (pointer.state === "snapshot" && !tokens.length)) return;
    const isEditing = this.editor.isOpen;
    this.element.classList.toggle("hs-editing", isEditing);
    this.element.classList.toggle("hs-writing-now", isGrowing);
    if (!isEditing) this.sentence.show(step.query >= 0 ? step.query + 1 : tokens.length, isGrowing);
    if (!this.#hasBegun && step.query >= 0) this.#begin();
    const drawn = `${pointer.run} ${step.query} ${step.shown?.isKnown}`;
    const isNew = drawn !== this.#drawn && !isResized;
    if (!isEditing && !this.#isPlaying) {
      this.sentence.draw(step, isNew && Boolean(step.shown?.isKnown) && !isStill() && this.#played);
      this.#drawn = drawn;
    }
    this.#drawBoard(isEditing);
    this.#drawWords();
    this.#drawActions(isEditing);
    this.#openLeading();
    this.tiles.draw();
    this.#drawCard();
    this.#light();
  }

  /** @param {boolean} isEditing */
  #drawBoard(isEditing) {
    const { step, store } = this;
    const { shown, whole, query } = step;
    if (!shown || !whole || !whole.probabilities.length || isEditing || this.#isPlaying) {
      if (query < 0 || isEditing) this.board.clear();
      return;
    }
    const off = step.off?.probabilities ?? null;
    this.sentence.slot.classList.toggle("hs-after-space", /^\s/.test(step.texts[shown.target ?? -1] ?? ""));
    const ghosts = ghostsOf(whole.probabilities, off, step.texts, step.written);
    const first = off ? null : step.written;
    const at = ghosts.findIndex(({ id }) => id === first);
    if (first !== null && at > 0) ghosts.unshift(...ghosts.splice(at, 1));
    this.board.draw(ghosts, { isOff: off !== null, written: step.written, query, unit: unitOf(store) });
    this.#placeBoard();
  }

  /** Whether the screen is narrow: what stands beside the field on others stands above it. */
  get #isStacked() {
    return getComputedStyle(this.side).display === "contents";
  }

  /** The first word stands in the sentence; the others hang below it, beside the field. */
  #placeBoard() {
    const { board, sentence, side, verdict } = this;
    const { slotBox } = sentence;
    const style = getComputedStyle(board.element);
    const size = (/** @type {string} */ name) => parseFloat(style.getPropertyValue(name)) || 0;
    const [axis, pitch] = [size("--axis") + size("--number"), size("--pitch")];
    const frame = sentence.element.getBoundingClientRect();
    const room = this.#isStacked ? frame : side.getBoundingClientRect();
    const [start, end] = [room.left - frame.left, room.right - frame.left - axis];
    const isPhone = this.#isStacked;
    const left = isPhone ? 0 : Math.max(start, Math.min(slotBox.left, end));
    const below = verdict.getBoundingClientRect().top - frame.top;
    board.rows.forEach(({ element, at }) => {
      const x = at ? left : slotBox.left;
      const y = at ? below + (at - 1) * pitch : slotBox.baseline - (pitch - 12);
      const isNew = !element.style.transform; // it appears where it belongs, and moves from there
      if (isNew) element.style.transition = "none";
      element.style.transform = `translate(${x.toFixed(1)}px, ${y.toFixed(1)}px)`;
      if (!isNew) return;
      void element.offsetWidth;
      element.style.transition = "";
    });
    board.note.style.transform = `translate(${left}px, ${below + (board.rows.length - 1) * pitch}px)`;
    const gap = 40;
    const isRight = end - left >= left - start;
    verdict.style.paddingLeft = isPhone ? "" : isRight ? `${left - start + axis + gap}px` : "";
    verdict.style.paddingRight = isPhone || isRight ? "" : `${room.right - frame.left - left + gap}px`;
  }

  #drawWords() {
    const { store, step } = this;
    const { n_layer, n_head } = store.pointer;
    const unit = unitOf(store);
    setText(this.title, `All ${n_layer * n_head} heads`);
    const { whole, shown, group, effect } = step;
    const target = step.texts[shown?.target ?? -1];
    const word = target === undefined ? `the next ${unit}` : spoken(target);
    const how = shown?.isKnown ? gainWords(shown.adds !== null, word) : "";
    setText(this.explanation, `${how} A line of tiles is a layer.`.trim());
    if (store.isGrowing) setText(this.say, "");
    else if (effect && group) {
      const n = group.heads.length;
      this.say.replaceChildren(...inBold([...changeWords(effect, n, unit), " ", ...likeliestWords(effect, n, unit)]));
    } else if (whole?.isKnown && target !== undefined && !step.isOff) {
      const heads = group?.heads.map(([layer, head]) => layer * n_head + head) ?? [];
      const adds = whole.adds && heads.map((head) => /** @type {number[]} */ (whole.adds)[head]);
      const words = restWords({ n: heads.length, copied: group?.copied ?? null, adds, all: whole.adds }, target, unit);
      this.say.replaceChildren(...inBold(words), this.#originWords());
    } else if (!step.isOff) setText(this.say, "");
  }

  /** Where the word that stands in the text is not the likeliest one: which is, and how it came to stand there. */
  #originWords() {
    const { store, step } = this;
    const { whole, query, written, texts } = step;
    const origin = originOf(store.pointer, query + 1);
    const [likeliest] = whole ? mostProbable(whole.logits, 1) : [];
    if (likeliest === undefined || written === null || likeliest === written) return "";
    return ` ${origin === "drawn" ? "It was drawn by chance: " : ""}${spoken(texts[likeliest])} is likelier.`;
  }

  /** @param {boolean} isEditing */
  #drawActions(isEditing) {
    const { store, step } = this;
    const { isGrowing, pointer } = store;
    const n = step.group?.heads.length ?? 0;
    this.off.hidden = isGrowing || isEditing || this.#isPlaying;
    this.off.disabled = !n;
    setFlag(this.off, "aria-checked", !step.isOff);
    setText(this.offWords, n ? `Turn ${theseHeads(n)} ${step.isOff ? "on" : "off"}` : "Turn these heads off");
    this.stop.hidden = !isGrowing;
    this.write.hidden = this.more.hidden = isGrowing || isEditing;
    this.more.disabled = store.length >= pointer.context_length || pointer.chat !== null;
    this.back.hidden = isGrowing || isEditing || !history.state?.isOpenedHere;
    this.replay.hidden = isGrowing || isEditing || !this.back.hidden || isStill();
  }

  /** The open head: where the visitor has not chosen one, that which matters most. */
  #openLeading() {
    const { store, step } = this;
    const { run, state } = store.pointer;
    const { leading } = step;
    if (!step.shown?.isKnown || this.#openedFor === run) return;
    this.#openedFor = run;
    if (leading >= 0 && state !== "linked" && state !== "snapshot") store.view.choose(headAt(leading, store.pointer));
  }

  #drawCard() {
    const { store } = this;
    if (!this.#isShown || !store.rows) return;
    const { n_head, n_layer } = store.pointer;
    const [layer, column] = store.open;
    const isOne = layer < n_layer && column < n_head;
    this.card.draw(isOne ? layer * n_head + column : -1, store.open);
  }

  /** @param {number | null} head */
  #point(head) {
    if (head === this.#pointed) return;
    this.#pointed = head;
    this.#light();
  }

  /** Open another of the heads that matter, the next one for this word. @param {number} by */
  #turn(by) {
    const { store, step } = this;
    const gains = step.shown?.gains ?? [];
    const heads = gains.map((_, head) => head).filter((head) => gains[head] >= MATTERS && !step.isCutAt(head));
    heads.sort((a, b) => gains[b] - gains[a]);
    const at = heads.indexOf(this.card.head);
    const next = heads[(at + by + heads.length) % heads.length];
    if (next !== undefined) store.view.choose(headAt(next, store.pointer));
    this.#light();
  }

  /** On a phone there is no pointer: the open head's thread is lit. */
  #light() {
    const lit = this.#pointed ?? (this.#isStacked && this.step.shown?.isKnown ? this.card.head : -1);
    const heads = lit < 0 ? [] : [lit];
    this.sentence.light(heads);
    this.tiles.light(heads);
  }

  /** Light all heads that look at a word. @param {number | null} token */
  #pointAtWord(token) {
    const { shown } = this.step;
    const heads = token === null || !shown ? [] : shown.keys.flatMap((key, head) => (key === token ? [head] : []));
    this.sentence.light(heads);
    this.tiles.light(heads);
  }

  /** Show the step after a word. @param {number} token */
  #choose(token) {
    if (this.store.isGrowing || token === this.step.query) return;
    this.store.selection.look(token);
  }

  /** Go on with another word. @param {number} token */
  #branch(token) {
    const { store, step } = this;
    const ids = [...store.ids.slice(0, step.query + 1), token];
    openText(store, { ids, n_prompt: ids.length });
  }

  #edit() {
    if (!this.texts || this.store.isGrowing || this.editor.isOpen) return;
    this.editor.open();
    this.draw();
  }

  /** @param {KeyboardEvent} event */
  #stepByKey(event) {
    /** @type {Record<string, number>} */
    const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
    const by = steps[event.key];
    if (by === undefined || event.shiftKey || hasModifier(event) || !this.#isShown) return false;
    event.preventDefault();
    this.store.selection.stepBy(by);
    return true;
  }

  /** Whatever plays is at its end at once. */
  #hurry() {
    if (this.store.isGrowing && this.#isShown) this.store.playback.skip();
    this.#isPlaying = false;
    this.#hurried();
  }

  #hurried = () => {};

  /** Wait, unless the visitor is in a hurry. @param {number} milliseconds */
  #pause(milliseconds) {
    return Promise.race([
      wait(milliseconds),
      new Promise((/** @type {(value: void) => void} */ resolve) => (this.#hurried = resolve)),
    ]);
  }

  /** Let the text write itself, then its threads, then the next word. */
  async play() {
    const { store, sentence, element } = this;
    if (!this.#isShown || element.dataset.play || store.isGrowing || this.editor.isOpen || isStill()) return;
    this.#isPlaying = true;
    this.board.clear();
    sentence.threads.replaceChildren();
    element.dataset.play = "text";
    const words = [...sentence.text.querySelectorAll(".hs-word-token")];
    for (const word of words) word.classList.add("hs-waiting");
    for (const word of words) {
      word.classList.remove("hs-waiting");
      if (this.#isPlaying) await this.#pause(/[.,!?]$/.test(word.textContent ?? "") ? PAUSE : TOKEN);
    }
    element.dataset.play = "threads";
    const isWatched = this.#isPlaying;
    this.#isPlaying = false;
    this.#played = isWatched;
    this.#drawn = "";
    this.draw();
    this.#played = false;
    if (isWatched) {
      this.board.element.classList.add("hs-waiting-board");
      await this.#pause(THREADS);
      this.board.element.classList.remove("hs-waiting-board");
    }
    delete element.dataset.play;
  }

  #hasBegun = false;

  /** On a first visit the opening plays. */
  #begin() {
    this.#hasBegun = true;
    if (readStored(STORED) === "yes" || this.store.pointer.state !== "opening") return;
    writeStored(STORED, "yes");
    void this.play();
  }
}

/** The head whose thread is under the pointer. @param {Event} event */
function reached({ target }) {
  const reach = target instanceof Element ? target.getAttribute("data-reach") : null;
  return reach === null ? null : Number(reach);
}

/** A sentence as it is shown. @param {Part[]} parts */
const inBold = (parts) => parts.map((part) => (typeof part === "string" ? part : make("b", {}, part.strong)));
