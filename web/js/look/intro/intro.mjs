// For people new to attention: what the page shows, which heads to look at, and what they do in this text.

import { isStill, make } from "../../lib/dom.mjs";
import { icon } from "../../lib/icons.mjs";
import { pictureName } from "../../lib/words.mjs";
import { DEFAULTS, DESK } from "../ask/mixer.mjs";
import { encodeMask, withScale } from "../ask/head_masks.mjs";
import { writeChoices } from "../ask/choices.mjs";
import { isComplete, openPattern, strongestCell } from "../roles/text_patterns.mjs";
import { examplesOf } from "./examples.mjs";
import { patternSentence, placeSentence, unitOf } from "./sentences.mjs";

/** @import { ModelInfo, PictureId } from "../../types.js" */
/** @import { Store } from "../state/store.mjs" */

const MARGIN = 8; // pixels around the element that is scrolled into view
const PATIENCE = 2500; // milliseconds that the first example waits for the roles of the heads

export class Intro {
  /** @type {PictureId[]} the heads of the tour, once it has begun */
  #examples = [];
  #shown = 0; // how many of them
  #hasEnded = false;
  #saysGoodbye = false; // until another head or text is opened
  #wantsStep = false;
  /** @type {{ query: number, key: number } | null} where the open head shows most clearly what it does */
  #strongest = null;
  #waitsUntil = 0; // for roles, in milliseconds since the page was opened; 0 if not waiting
  /** @type {Set<Store>} those it listens to */
  #heard = new Set();
  /** @type {ModelInfo | undefined} */
  #model;
  #run = "";

  /** @param {() => Store} store of the text that is shown */
  constructor(store) {
    this.current = store;
    this.words = make("p", { role: "status" });
    this.words.append(...this.opening());
    this.button = make("button", { type: "button", class: "hs-small hs-primary" }, "Show me");
    this.button.addEventListener("click", () => this.next());
    this.ask = make("button", { type: "button", class: "hs-small hs-quiet" }, "What is this head for?");
    this.ask.title = "Opens Ask with its scores, compared with all other heads";
    this.ask.addEventListener("click", () => this.store.view.set({ ask: "roles", askWith: "" }));
    this.off = make("button", { type: "button", class: "hs-small hs-primary", hidden: true });
    this.off.title = "Opens Ask with these heads muted";
    this.off.addEventListener("click", () => this.switchOff());
    const close = make("button", {
      type: "button",
      class: "hs-small hs-close",
      "aria-label": "Close the introduction",
    });
    close.append(icon("close"));
    close.addEventListener("click", () => this.close());
    this.element = make("aside", { class: "hs-intro", "aria-label": "Introduction" });
    this.element.append(this.words, this.button, this.off, this.ask, close);
    this.element.hidden = true;
  }

  get store() {
    const store = this.current();
    if (!this.#heard.has(store)) {
      this.#heard.add(store);
      store.on("state roles weights focus", () => this.update(store));
    }
    return store;
  }

  open() {
    this.element.hidden = false;
    this.#restart();
    this.update(this.store);
    this.element.scrollIntoView({ block: "nearest" });
  }

  close() {
    this.element.hidden = true;
  }

  /** The model, as described by the server. @param {ModelInfo | undefined} model */
  describe(model) {
    this.#model = model;
    this.#restart();
    this.update(this.store);
  }

  #restart() {
    this.#waitsUntil = 0;
    this.#examples = [];
    this.#shown = 0;
    this.#hasEnded = this.#saysGoodbye = this.#wantsStep = false;
    this.#strongest = null;
    this.button.textContent = "Show me";
    this.element.classList.remove("hs-held");
  }

  /** End the tour. @param {boolean} saysGoodbye whether to show the closing words rather than the open head's */
  #end(saysGoodbye) {
    this.#hasEnded = true;
    this.#saysGoodbye = saysGoodbye;
    this.#wantsStep = false;
    this.#strongest = null;
    this.element.classList.remove("hs-held");
  }

  /** @param {Store} store */
  update(store) {
    if (store !== this.current() || this.element.hidden) return;
    if (this.#run !== store.pointer.run) {
      this.#run = store.pointer.run;
      this.#restart();
    }
    if (this.#waitsUntil && store.roles) {
      this.next();
      return;
    }
    if (this.#shown && store.open.join() !== this.#examples[this.#shown - 1].join()) this.#end(false);
    if (this.#wantsStep && isComplete(store)) this.#chooseStep();
    this.words.replaceChildren(...this.#sentences());
    this.button.hidden = this.#hasEnded;
    this.button.style.visibility = store.rows > 0 && !store.isGrowing ? "" : "hidden"; // its place is kept
    this.ask.hidden = !this.#isHead || this.#saysGoodbye;
    this.off.hidden = !this.#saysGoodbye;
    this.off.textContent = `Switch ${this.#examples.length > 1 ? "them" : "it"} off`;
  }

  /** Whether the open picture is that of a head, not a mean or rollout. */
  get #isHead() {
    const { open, pointer } = this.current();
    return Boolean(pointer.run) && open[0] < pointer.n_layer && open[1] < pointer.n_head;
  }

  /** @returns {(string | Node)[]} */
  #sentences() {
    const { store } = this;
    const { state } = store.pointer;
    const isOwn = !["loading", "none", "opening"].includes(state);
    if (store.isGrowing) {
      return [`With every ${unitOf(store)} written, each tile gains a row: where its head looked while writing it.`];
    }
    if (this.#waitsUntil) return ["Measuring what each head does…"];
    if (this.#saysGoodbye) {
      const these = this.#examples.length > 1 ? "these heads" : "this head";
      const unit = unitOf(store);
      const why = `Heads fetch what the next ${unit} depends on; the rest of the model works out the ${unit}.`;
      return [
        `That was the tour. ${why} What would it write without ${these}? Or press `,
        make("b", {}, "Write"),
        " to watch them all at work.",
      ];
    }
    if (!this.#isHead || (!this.#shown && !isOwn)) return this.opening();
    if (!isComplete(store)) return [`Opening ${pictureName(store.open, store.pointer)}…`];
    const words = patternSentence(store, this.#shown === 1);
    return !this.#shown ? [words] : [words, " ", ...placeSentence(store, this.#strongest)];
  }

  /** @returns {(string | Node)[]} */
  opening() {
    const unit = unitOf(this.current());
    const [source] = (this.#model?.about ?? "").split(/[:(]/);
    const trained = source && source.length < 60 ? ` trained on ${source.trim().replace(/^A /, "a ")},` : "";
    const piece = unit === "letter" ? "letter (a token)" : "token (a word or a piece of one)";
    return [
      `This is a small GPT${trained} writing one ${piece} at a time. Each tile is one `,
      make("b", {}, "attention head"),
      `: it shows which earlier ${unit}s the model looks back at.`,
    ];
  }

  /** Open the next example at its clearest place; end after the last one. Some examples need the roles of the heads. */
  next() {
    const { store } = this;
    if (this.#shown && this.#shown === this.#examples.length) {
      this.#end(true);
      this.update(store);
      return;
    }
    if (!store.roles && !this.#shown && !this.#waitsUntil) {
      const until = (this.#waitsUntil = performance.now() + PATIENCE);
      setTimeout(() => this.#waitsUntil === until && this.next(), PATIENCE);
      this.update(store);
      return;
    }
    this.#waitsUntil = 0;
    if (!this.#shown) this.#examples = examplesOf(store);
    const all = this.#examples.length;
    if (!all) return;
    this.#shown++;
    const isLast = this.#shown === all;
    this.button.replaceChildren(isLast ? "Done " : "Next head ", make("small", {}, `${this.#shown} of ${all}`));
    this.#wantsStep = true;
    this.#strongest = null;
    store.view.set({ heads: "whole" });
    store.view.choose(this.#examples[this.#shown - 1]);
    this.update(store);
    this.#point();
  }

  /** Open the mixing desk with the heads of the tour muted. */
  switchOff() {
    const { pointer, view } = this.store;
    const mask = encodeMask(withScale(pointer.head_mask, pointer, this.#examples, 0));
    this.#end(false);
    view.set({ ask: DESK, askWith: writeChoices({ ...DEFAULTS, mask }, DEFAULTS) });
    this.update(this.store);
  }

  /** Select the step at which the open head shows most clearly what it does. */
  #chooseStep() {
    const { store } = this;
    this.#wantsStep = false;
    const { count, weights, firstStep } = store;
    const strongest = strongestCell(weights, openPattern(store), firstStep - 1, count - 1);
    if (!strongest) return;
    this.#strongest = strongest;
    store.select(strongest.query + 1);
    this.element.classList.add("hs-held");
    requestAnimationFrame(() => {
      store.emit("looks-back"); // after the tokens have been marked
      this.#bringIntoView();
    });
  }

  /** On a small screen, scroll down towards the open tile as far as both tokens stay in view. */
  #bringIntoView() {
    const tile = document.querySelector(".hs-grid [aria-pressed=true]");
    if (getComputedStyle(this.element).position !== "sticky" || !tile) return;
    const room = [...document.querySelectorAll(".hs-writing :is(.hs-chosen, .hs-key, .hs-query)")].map(
      (token) => token.getBoundingClientRect().top - this.element.offsetHeight - MARGIN,
    );
    const down = tile.getBoundingClientRect().bottom + MARGIN - innerHeight;
    scrollBy({ top: Math.min(Math.max(down, 0), ...room), behavior: isStill() ? "instant" : "smooth" });
  }

  /** Draw attention to the open tile. */
  #point() {
    if (isStill()) return;
    const tile = document.querySelector(".hs-grid [aria-pressed=true]");
    tile?.animate({ scale: [1, 1.25, 1], offset: [0, 0.4, 1] }, { duration: 600, easing: "ease-in-out" });
  }
}
