// For those who have never seen attention: what the page shows, heads to look at, and what they do in this text.

import { isStill, make } from "../../lib/dom.mjs";
import { icon } from "../../lib/icons.mjs";
import { pictureName } from "../../lib/words.mjs";
import { keep, kept } from "../state/kept.mjs";
import { examplesOf } from "./examples.mjs";
import { clearestPlace } from "./patterns.mjs";
import { openPattern, patternSentence, placeSentence, unitOf } from "./sentences.mjs";

/** @import { ModelInfo, Place } from "../../types.js" */
/** @import { Store } from "../state/store.mjs" */
/** @import { Pattern } from "./patterns.mjs" */

const KEPT = "headscope-intro";
const MARGIN = 8; // pixels around what is brought into view
const PATIENCE = 2500; // milliseconds that the first example waits for the roles of the heads

export class Intro {
  /** @type {Set<string>} the examples that were shown; more may come, once roles are known */
  #shown = new Set();
  #wantsStep = false;
  #waitsUntil = 0; // for roles, in milliseconds since the page was opened; 0 where nobody waits
  /** @type {Set<Store>} those it listens to */
  #heard = new Set();
  /** @type {ModelInfo | undefined} */
  #model;
  #run = "";
  /** @type {{ of: string, pattern: Pattern | null, words: string }} what was counted last */
  #counted = { of: "", pattern: null, words: "" };

  /** @param {() => Store} store of the text that is shown */
  constructor(store) {
    this.current = store;
    this.words = make("p", { role: "status" });
    this.words.append(...this.opening());
    this.button = make("button", { type: "button", class: "hs-small hs-primary" }, "Show me");
    this.button.addEventListener("click", () => this.next());
    this.ask = make("button", { type: "button", class: "hs-small hs-quiet" }, "What is this head for?");
    this.ask.title = "Opens Ask, with its scores beside those of all other heads";
    this.ask.addEventListener("click", () => this.store.view.set({ ask: "roles", askWith: "" }));
    const close = make("button", {
      type: "button",
      class: "hs-small hs-close",
      "aria-label": "Close the introduction",
    });
    close.append(icon("close"));
    close.addEventListener("click", () => this.close());
    this.element = make("aside", { class: "hs-intro", "aria-label": "Introduction" });
    this.element.append(this.words, this.button, this.ask, close);
    this.element.hidden = kept(KEPT) === "closed";
  }

  get store() {
    const store = this.current();
    if (!this.#heard.has(store)) {
      this.#heard.add(store);
      store.on("state roles weights focus", () => this.update(store));
    }
    return store;
  }

  close() {
    this.element.hidden = true;
    keep(KEPT, "closed");
  }

  /** The model that is shown, described by the server. @param {ModelInfo | undefined} model */
  describe(model) {
    this.#model = model;
    this.#restart();
    this.update(this.store);
  }

  #restart() {
    this.#waitsUntil = 0;
    this.#shown.clear();
    this.#wantsStep = false;
    this.button.textContent = "Show me";
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
    if (this.#wantsStep && this.#isReady) this.#chooseStep();
    this.words.replaceChildren(...this.#sentences());
    this.button.style.visibility = examplesOf(store).length && !store.isGrowing ? "" : "hidden"; // its place is kept
    this.ask.hidden = !this.#isHead;
  }

  /** Whether the open picture is that of a head, not a mean or rollout. */
  get #isHead() {
    const { open, pointer } = this.current();
    return Boolean(pointer.run) && open[0] < pointer.n_layer && open[1] < pointer.n_head;
  }

  /** Whether all weights of the open head are there. The last token of a text that fills the context has no row. */
  get #isReady() {
    const { count, readable, pointer, isGrowing } = this.current();
    return count > 1 && count === Math.min(readable, pointer.rows) && !isGrowing;
  }

  /** @returns {(string | Node)[]} */
  #sentences() {
    const { store } = this;
    const { state } = store.pointer;
    const isOwn = !["loading", "none", "opening"].includes(state);
    if (store.isGrowing) {
      return [`With every ${unitOf(store)} that is written, each tile gains a row: where its head looked to write it.`];
    }
    if (this.#waitsUntil) return ["Measuring what each head does ..."];
    if (!this.#isHead || (!this.#shown.size && !isOwn)) return this.opening();
    if (!this.#isReady) return [`Opening ${pictureName(store.open, store.pointer)} ...`];
    const { words } = this.#count();
    return !this.#shown.size ? [words] : [words, " ", ...placeSentence(store)];
  }

  /** What the open head does in this text, counted once. */
  #count() {
    const { store } = this;
    const of = [store.pointer.run, store.pointer.state, store.open, store.count, Boolean(store.roles)].join();
    if (of !== this.#counted.of) {
      const pattern = openPattern(store);
      this.#counted = { of, pattern, words: patternSentence(store, pattern) };
    }
    return this.#counted;
  }

  /** @returns {(string | Node)[]} */
  opening() {
    const unit = unitOf(this.current());
    const [source] = (this.#model?.about ?? "").split(/[:(]/);
    const trained = source && source.length < 60 ? ` trained on ${source.trim().replace(/^A /, "a ")},` : "";
    const piece = unit === "letter" ? "letter" : "token (a word or a piece)";
    return [
      `This is a small GPT${trained} writing one ${piece} at a time. Each tile is one `,
      make("b", {}, "attention head"),
      `: it shows which earlier ${unit}s the model looks back at. `,
    ];
  }

  /** Open the next of the examples, at a step where it is easily seen. What surprises most is known with the roles. */
  next() {
    const { store } = this;
    if (!store.roles && !this.#shown.size && !this.#waitsUntil) {
      const until = (this.#waitsUntil = performance.now() + PATIENCE);
      setTimeout(() => this.#waitsUntil === until && this.next(), PATIENCE);
      this.update(store);
      return;
    }
    this.#waitsUntil = 0;
    const examples = examplesOf(store);
    if (!examples.length) return;
    if (examples.every((example) => this.#shown.has(example.join()))) this.#shown.clear();
    const example = /** @type {Place} */ (examples.find((place) => !this.#shown.has(place.join())));
    this.#shown.add(example.join());
    this.button.replaceChildren("Next head ", make("small", {}, `${this.#shown.size} of ${examples.length}`));
    this.#wantsStep = true;
    store.view.set({ heads: "whole" });
    store.view.choose(example);
    this.update(store);
    this.#point();
  }

  /** Select a place in the middle of the text at which the open head shows what it does. */
  #chooseStep() {
    const { store } = this;
    this.#wantsStep = false;
    const { count, tokens, weights, firstStep } = store;
    const { pattern } = this.#count();
    const query =
      clearestPlace(weights, tokens, count, pattern, firstStep) ??
      clearestPlace(weights, tokens, count, null, firstStep);
    if (query === null) return;
    store.select(query + 1);
    this.element.classList.add("hs-held");
    requestAnimationFrame(() => {
      store.emit("looks-back"); // when the tokens are marked
      this.#bringIntoView();
    });
  }

  /** On a small screen: scroll down to the open tile, as far as the two tokens stay in view. */
  #bringIntoView() {
    const tile = document.querySelector(".hs-grid [aria-pressed=true]");
    if (getComputedStyle(this.element).position !== "sticky" || !tile) return;
    const room = [...document.querySelectorAll(".hs-writing :is(.hs-chosen, .hs-key, .hs-query)")].map(
      (token) => token.getBoundingClientRect().top - this.element.offsetHeight - MARGIN,
    );
    const down = tile.getBoundingClientRect().bottom + MARGIN - innerHeight;
    scrollBy({ top: Math.min(Math.max(down, 0), ...room), behavior: isStill() ? "instant" : "smooth" });
  }

  /** Draw the eye to the open tile. */
  #point() {
    if (isStill()) return;
    const tile = document.querySelector(".hs-grid [aria-pressed=true]");
    tile?.animate({ scale: [1, 1.25, 1], offset: [0, 0.4, 1] }, { duration: 600, easing: "ease-in-out" });
  }
}
