// What a visitor meets: the text as one large sentence, threads from its last word to what every head looks at, the
// words that could come next, one switch, and all heads as a field. Details show the instrument instead.

import { hasModifier, make, NextFrame, setText } from "../../lib/dom.mjs";
import { headAt, headIndex, isHead } from "../../lib/heads.mjs";
import { wait } from "../../lib/latest.mjs";
import { listen, onChange, onResize, whenever } from "../../lib/reactive.mjs";
import { isEnd, plainly, readAfter, unitOf } from "../../lib/words.mjs";
import { openText } from "../state/open_text.mjs";
import { stepKeys } from "../panels/keyboard.mjs";
import { readPace, watchedPace } from "../panels/scrubber.mjs";
import { Birth } from "./birth.mjs";
import { Board } from "./board.mjs";
import { Editor } from "./editor.mjs";
import { kindWords, matters, namedWords } from "./gains.mjs";
import { ghostsOf } from "./ghosts.mjs";
import { HeadCard } from "./head_card.mjs";
import { Opening } from "./opening.mjs";
import { Sentence } from "./sentence.mjs";
import { ShownStep } from "./shown_step.mjs";
import { overlayKinds, Tiles } from "./tiles.mjs";
import { Verdict } from "./verdict.mjs";
import { Why } from "./why.mjs";

/** @import { Texts } from "../compare/texts.mjs" */
/** @import { ShownText } from "../state/shown_text.mjs" */
/** @import { Purpose } from "./editor.mjs" */

const FONTS = ['40px "IBM Plex Sans"', 'bold 40px "IBM Plex Sans"']; // in others, lines would break elsewhere
const FONT_TIMEOUT = 600; // milliseconds
const STACKED = matchMedia("(width < 960px)"); // whether the parts stand below each other, as on a phone

export class Stage {
  #hasFont = false;
  #hasBegun = false;
  #drawn = ""; // the step whose threads were drawn
  #openedFor = ""; // the text and the step for which the leading head was opened
  #chosenFor = ""; // the text for which the visitor chose a head
  /** @type {number | null} the head under the pointer */
  #pointed = null;
  #isMeant = false; // whether the switch of the heads that the sentence names is under the pointer, or has the focus
  #cardFrame = new NextFrame(() => this.#drawCardNow());
  about = make("p", { class: "hs-stage-about" });
  /** Above the field: what its ink and its colours say. */
  heading = make("header", { class: "hs-field-heading" });
  /** The place of the line that asks. */
  questions = make("div", { class: "hs-ask-place" });

  /**
   * @param {ShownText} store
   * @param {Texts | null} texts null where there is no model
   * @param {HTMLElement | null} link copies the text's address; null where there is none
   */
  constructor(store, texts, link) {
    this.store = store;
    this.texts = texts;
    this.step = new ShownStep(store);
    this.sentence = new Sentence(store, {
      choose: (token) => this.#choose(token),
      point: (token) => this.#pointAtWord(token),
      edit: () => this.edit("change"),
      next: () => texts && this.#next(),
    });
    this.sentence.unfolded = () => this.draw();
    this.board = new Board(store, texts && ((token) => this.#branch(token)));
    this.birth = new Birth(store, this.step);
    this.verdict = new Verdict(
      store,
      this.step,
      () => this.birth.words,
      this.sentence,
      {
        edit: () => this.edit("replace"),
        compare: () => this.edit("compare"),
        next: () => this.#next(),
        goOn: () => {
          this.#toSentence();
          texts?.writing.goOn();
        },
        stop: () => texts?.writing.stop(),
        replay: () => {
          this.#toSentence();
          void this.opening.play();
        },
        mean: (isMeant) => this.#mean(isMeant),
      },
      link,
    );
    this.editor = new Editor(
      store,
      texts,
      () => this.sentence.length,
      () => this.draw(),
    );
    this.tiles = new Tiles(store, this.step, (head) => this.#point(head));
    this.card = new HeadCard(store, this.step, (by) => this.#turn(by));
    this.why = new Why(store, this.step, (head) => this.#point(head));
    const said = make("div", { class: "hs-said" }, this.verdict.element, this.editor.side, this.board.element);
    this.top = make("div", { class: "hs-stage-top" }, this.sentence.element, this.editor.element, said);
    const field = make("section", { "aria-label": "All heads" }, this.tiles.element);
    this.body = make("div", { class: "hs-stage-body" }, this.heading, field, this.card.element, this.why.element);
    const birth = texts ? [this.birth.element] : [];
    const parts = [this.about, this.top, this.questions, ...birth, this.body];
    this.element = make("section", { class: "hs-stage hs-simple", "aria-label": "Stage" }, ...parts);
    this.opening = new Opening(this.element, this.sentence);
    this.#listen();
    this.#awaitFont();
    this.#follow();
  }

  #listen() {
    const { store } = this;
    this.sentence.threads.addEventListener("pointerover", (event) => this.#point(reached(event)));
    this.sentence.threads.addEventListener("pointerleave", () => this.#point(null));
    this.sentence.threads.addEventListener("click", (event) => this.#openReached(event));
    stepKeys({ element: this.sentence.text, stepByKey: (event) => this.#stepByKey(event) });
    listen(window, "keydown", (event) => !hasModifier(event) && this.#hurry());
    listen(window, "pointerdown", () => this.#hurry());
    onResize(() => store.isGrowing || this.draw(true), this.sentence.element);
    listen(document.fonts, "loadingdone", () => this.draw(true));
  }

  /** Nothing is drawn before the sentence's font is there, or has not come in time. */
  #awaitFont() {
    const fonts = Promise.all(FONTS.map((font) => document.fonts.load(font)));
    void Promise.race([fonts, wait(FONT_TIMEOUT)]).then(() => {
      this.#hasFont = true;
      this.draw();
    });
  }

  /** Open the head whose thread was clicked. @param {Event} event */
  #openReached(event) {
    const head = reached(event);
    if (head !== null) this.store.choosePicture(headAt(head, this.store.pointer));
  }

  /** Above all heads, with what their ink and colours mean. */
  #follow() {
    const { store } = this;
    whenever(
      () => [
        ...store.progress,
        store.selection.selected,
        this.step.known,
        this.opening.part,
        this.birth.isPlaying,
        store.view.options.details,
      ],
      () => this.draw(),
    );
    whenever(
      () => [store.rows, store.open, store.count, store.drawing, store.answer.shownOverlay],
      () => {
        this.tiles.draw();
        this.#drawWords();
        this.#drawCard();
        this.#light();
      },
    );
    whenever(
      () => [store.view.options.ask, store.view.options.details],
      () => {
        const { ask, details } = store.view.options;
        this.body.classList.toggle("hs-answering", ask !== "" && !details);
      },
    );
    onChange(
      () => [store.isGrowing, store.view.options.details],
      () => {
        const pace = this.#isShown ? watchedPace(unitOf(store)) : Number(readPace());
        if (store.isGrowing) store.playback.setSpeed(pace);
      },
    );
    onChange(
      () => [store.clicks],
      () => {
        this.#chosenFor = store.pointer.run;
        this.card.openFrom(this.tiles.tile(this.card.head));
      },
    );
  }

  get #isShown() {
    return !this.store.view.options.details && this.element.isConnected;
  }

  /** Draw everything for the step that is shown. @param {boolean} [isResized] */
  draw(isResized = false) {
    const { store, step, opening } = this;
    const { pointer, isGrowing, tokens } = store;
    this.element.hidden = !pointer.run || !this.#hasFont || (this.element.hidden && !tokens.length);
    if (!this.#hasFont) return;
    if (!this.#isShown || !pointer.run || (pointer.state === "snapshot" && !tokens.length)) return;
    const isEditing = this.editor.isOpen;
    const isWriting = opening.part === "text";
    this.top.classList.toggle("hs-editing", isEditing);
    if (!isEditing) this.sentence.show(step.query >= 0 ? step.query + 1 : tokens.length, isGrowing);
    if (!this.#hasBegun && step.query >= 0) {
      this.#hasBegun = true;
      if (pointer.state === "opening") opening.playOnce();
    }
    const drawn = isWriting ? "" : `${pointer.run} ${step.query} ${step.shown?.isKnown}`;
    const isNew = drawn !== this.#drawn && !isResized;
    if (!isEditing) {
      if (isWriting) this.sentence.threads.replaceChildren();
      else this.sentence.draw(step, isNew && Boolean(step.shown?.isKnown) && opening.part === "threads");
      this.#drawn = drawn;
    }
    this.#drawBoard(isEditing || isWriting);
    this.element.classList.toggle("hs-steps-play", this.birth.isPlaying);
    this.verdict.draw(isWriting || this.birth.isPlaying);
    this.#drawWords();
    this.#openLeading();
    this.tiles.draw();
    this.#drawCard();
    this.#light();
  }

  /** @param {boolean} isBusy whether the sentence is being changed */
  #drawBoard(isBusy) {
    const { step, board, sentence } = this;
    const { shown, whole, query, texts, written } = step;
    const off = step.off?.probabilities ?? null;
    const next = step.isOff ? shown?.target : (written ?? shown?.target);
    if (isBusy || query < 0 || !whole?.probabilities.length || next == null) {
      board.clear();
      sentence.showNext("");
      return;
    }
    const text = texts[next] ?? "";
    const word = plainly(readAfter(text, this.store.tokens.slice(0, query + 1)));
    sentence.showNext(word, /^\s/.test(text), isEnd(text), (off ?? whole.probabilities)[next]);
    const ghosts = ghostsOf(whole.probabilities, off, texts, written);
    board.draw(ghosts, { isOff: off !== null, written, next, query });
  }

  #drawWords() {
    const { store } = this;
    const { n_layer, n_head } = store.pointer;
    const unit = unitOf(store);
    const count = n_layer * n_head;
    const each = count === 1 ? "Its attention head" : `Each of its ${count} attention heads`;
    setText(this.about, `A GPT guesses the next ${unit}. ${each} looks back at earlier ${unit}s.`);
    this.#drawHeading(`All ${count} heads`, unit);
  }

  /** @param {string} title @param {"word" | "letter"} unit */
  #drawHeading(title, unit) {
    const { store, step } = this;
    const { shown } = step;
    const overlay = store.answer.shownOverlay;
    const isOpposed = shown?.gains.some((gain) => gain < 0 && matters(gain));
    const usual = shown?.isKnown ? namedWords(shown.adds !== null, step.named.length, step.isOff) : "";
    const said = overlay
      ? [make("span", { title: overlay.title }, overlay.title)]
      : [
          make("span", {}, usual),
          ...(isOpposed && shown?.isKnown ? [make("span", { class: "hs-dotted" }, " Dotted: works against it.")] : []),
          make("span", { class: "hs-on-wide" }, " A row is a layer."),
        ];
    const kinds = overlay ? overlayKinds(overlay) : Object.entries(kindWords(unit));
    const marks = kinds.map(([kind, words]) => make("span", { "data-kind": kind }, words));
    const caption = make("p", {}, make("h2", {}, title), ...said);
    const heading = make(
      "header",
      { class: this.heading.className },
      caption,
      make("div", { class: "hs-kinds" }, ...marks),
    );
    if (heading.isEqualNode(this.heading)) return;
    this.heading.replaceWith(heading); // as a whole, so that nothing in it moves
    this.heading = heading;
  }

  /** The open head: where the visitor has chosen none for this text, that which matters most for the shown word. */
  #openLeading() {
    const { store, step } = this;
    const { run, state } = store.pointer;
    const { leading } = step;
    const place = `${run} ${step.query}`;
    if (!step.shown?.isKnown || step.isOff || this.#openedFor === place || this.#chosenFor === run) return;
    this.#openedFor = place;
    if (leading >= 0 && state !== "linked" && state !== "snapshot") store.view.choose(headAt(leading, store.pointer));
  }

  /** While the text grows, once a frame. */
  #drawCard() {
    if (this.store.isGrowing) this.#cardFrame.request();
    else this.#drawCardNow();
  }

  #drawCardNow() {
    const { store } = this;
    if (!this.#isShown || !store.rows) return;
    const head = this.#pointed ?? (isHead(store.open, store.pointer) ? headIndex(store.open, store.pointer) : -1);
    this.card.draw(head, head < 0 ? store.open : headAt(head, store.pointer));
  }

  /** The card follows the pointer, and returns to the open head. @param {number | null} head */
  #point(head) {
    if (head === this.#pointed) return;
    this.#pointed = head;
    this.#drawCard();
    this.#light();
  }

  /** Open another of the heads that matter, the next one for this word. @param {number} by */
  #turn(by) {
    const { store, step } = this;
    const gains = step.shown?.gains ?? [];
    const heads = gains.map((_, head) => head).filter((head) => matters(gains[head]) && !step.isCutAt(head));
    heads.sort((a, b) => Math.abs(gains[b]) - Math.abs(gains[a]));
    const at = heads.indexOf(this.card.head);
    const next = heads[(at + by + heads.length) % heads.length];
    this.#chosenFor = store.pointer.run;
    if (next !== undefined) store.view.choose(headAt(next, store.pointer));
    this.#light();
  }

  /** @param {boolean} isMeant */
  #mean(isMeant) {
    this.#isMeant = isMeant;
    this.#light();
  }

  /** On a phone there is no pointer: the thread of a head that the visitor turned to is lit. */
  #light() {
    const { store, step, card } = this;
    const isTurned = STACKED.matches && step.shown?.isKnown && this.#chosenFor === store.pointer.run;
    const lit = this.#pointed ?? (isTurned ? card.head : -1);
    const heads = this.#isMeant ? step.named : lit < 0 ? [] : [lit];
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

  /** Go on with the word that stands next: that of the text, or the likeliest. */
  #next() {
    const { step } = this;
    if (step.query < this.#last && !step.isOff) this.#show(step.query + 1);
    else if (typeof step.shown?.target === "number") this.#branch(step.shown.target);
  }

  /** The step at which the text comes to rest: what its last word was chosen from, or what comes after a given one. */
  get #last() {
    const { length, firstStep } = this.store;
    return length > firstStep ? length - 2 : length - 1;
  }

  /** Show the step after a word; at the end, that at which the text comes to rest. @param {number} query */
  #show(query) {
    const { selection } = this.store;
    if (query >= this.#last) selection.clear();
    else selection.look(Math.max(query, 0));
  }

  /** @param {Purpose} purpose */
  edit(purpose) {
    if (!this.texts || this.store.isGrowing || this.editor.isOpen) return;
    if (purpose === "compare") this.store.view.closeAsk(); // the question was about one text
    this.#toSentence();
    this.editor.open(purpose);
    this.draw();
  }

  /** What was chosen from the bar of a phone happens at the sentence. */
  #toSentence() {
    this.sentence.element.scrollIntoView({ block: "nearest" });
  }

  /** @param {KeyboardEvent} event */
  #stepByKey(event) {
    /** @type {Record<string, number>} */
    const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
    const by = steps[event.key];
    if (by === undefined || event.shiftKey || hasModifier(event) || !this.#isShown) return false;
    event.preventDefault();
    this.#show(this.step.query + by);
    return true;
  }

  /** Whatever plays is at its end at once. */
  #hurry() {
    if (this.store.isGrowing && this.#isShown) this.store.playback.skip();
    this.opening.end();
  }
}

/** The head whose thread is under the pointer. @param {Event} event */
function reached({ target }) {
  const reach = target instanceof Element ? target.getAttribute("data-reach") : null;
  return reach === null ? null : Number(reach);
}
