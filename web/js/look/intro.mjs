// One line for those who have never seen attention: what the page shows, and a first example to look at.

import { make } from "../lib/dom.mjs";
import { icon } from "../lib/icons.mjs";
import { METRICS } from "../lib/metrics.mjs";
import { exact } from "../lib/numbers.mjs";
import { pictureName, visible } from "../lib/words.mjs";
import { CLEAR } from "./ask/roles/head_roles.mjs";
import { keep, kept } from "./state/kept.mjs";

/** @import { ModelInfo, Place } from "../types.js" */
/** @import { Store } from "./state/store.mjs" */

const KEPT = "headscope-intro";
const FOCUSED = 2; // bits of entropy: as if spread over four tokens
const MOST_EXAMPLES = 4;
/** @type {Record<string, string>} */
const SPOKEN = { " ": "a space", "\n": "a line break" };

/** @param {string} text of a token */
const spoken = (text) => SPOKEN[text] ?? `“${visible(text)}”`;

/** @param {string} text of a token */
const isWord = (text) => /^\s?[\p{L}]+$/u.test(text);

/**
 * Heads whose attention is easily put into words: those with a clear role in this text, then the most focused ones.
 * @param {Store} store
 * @returns {Place[]}
 */
function examplesOf(store) {
  if (!store.rows) return [];
  const { suggested_heads } = store.pointer;
  const clear = suggested_heads.filter(({ score }) => score >= CLEAR).map(({ head }) => head);
  const entropy = METRICS.entropy.place;
  const focused = store.heads
    .filter((head) => store.metric(head, entropy) < FOCUSED)
    .sort((a, b) => store.metric(a, entropy) - store.metric(b, entropy));
  const places = new Map([...clear, ...focused].map((place) => [place.join(), place]));
  return places.size ? [...places.values()].slice(0, MOST_EXAMPLES) : suggested_heads.map(({ head }) => head);
}

export class Intro {
  #shown = -1; // which of the suggested heads
  #wantsStep = false;
  /** @type {Set<Store>} those it listens to */
  #heard = new Set();
  /** @type {ModelInfo | undefined} */
  #model;

  /** @param {() => Store} store of the text that is shown */
  constructor(store) {
    this.current = store;
    this.words = make("p", { role: "status" });
    this.words.append(...this.opening());
    this.button = make("button", { type: "button", class: "hs-small hs-primary" }, "Show me");
    this.button.addEventListener("click", () => this.next());
    const close = make("button", {
      type: "button",
      class: "hs-small hs-close",
      "aria-label": "Close the introduction",
    });
    close.append(icon("close"));
    close.addEventListener("click", () => this.close());
    this.element = make("aside", { class: "hs-intro", "aria-label": "Introduction" }, this.words, this.button, close);
    this.element.hidden = kept(KEPT) === "closed";
  }

  get store() {
    const store = this.current();
    if (!this.#heard.has(store)) {
      this.#heard.add(store);
      store.on("state", () => this.update(store));
      store.on("weights focus", () => this.update(store));
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
    this.#shown = -1;
    this.button.textContent = "Show me";
    this.update(this.store);
  }

  /** What a token of this model is called. */
  get unit() {
    const { tokens } = this.current();
    return tokens.length && tokens.every(({ text }) => text.length === 1) ? "letter" : "token";
  }

  /** @param {Store} store */
  update(store) {
    if (store !== this.current() || this.element.hidden) return;
    if (this.#wantsStep) this.#chooseStep();
    this.words.replaceChildren(...(this.#shown < 0 ? this.opening() : this.narration()));
    this.button.style.visibility = examplesOf(store).length ? "" : "hidden"; // its place is kept
  }

  /** @returns {(string | Node)[]} */
  opening() {
    const { unit } = this;
    const [source] = (this.#model?.about ?? "").split(/[:(]/);
    const trained = source && source.length < 60 ? ` trained on ${source.trim().replace(/^A /, "a ")},` : "";
    const piece = unit === "letter" ? "letter" : "token (a word or a piece)";
    return [
      `This is a small GPT${trained} writing one ${piece} at a time. Each tile is one `,
      make("b", {}, "attention head"),
      `: it shows which earlier ${unit}s the model looks back at. `,
    ];
  }

  /** What the open head does at the selected token. @returns {(string | Node)[]} */
  narration() {
    const { store, unit } = this;
    const { focus, tokens, weights } = store;
    const [layer, head] = store.open;
    if (layer >= store.pointer.n_layer || head >= store.pointer.n_head) return this.opening(); // a mean, or rollout
    const name = pictureName(store.open, store.pointer);
    if (!focus || focus.key === null) return [`Opening ${name} ...`];
    const { query, key } = focus;
    const back = query - key;
    const where = back ? `, ${back} ${unit}${back > 1 ? "s" : ""} back` : ", itself";
    const written = tokens[query + 1];
    return [
      written ? "Before the model wrote " : "To go on",
      ...(written ? [make("b", {}, spoken(written.text))] : []),
      `, head ${name} looked from ${spoken(tokens[query].text)} at `,
      make("b", {}, spoken(tokens[key].text)),
      `${where}, with ${exact(weights.at(query, key))} of its attention. `,
      `Tap another ${unit} or tile.`,
    ];
  }

  /** Open the next of the suggested heads, at a step where it is easily seen. */
  next() {
    const { store } = this;
    const examples = examplesOf(store);
    if (!examples.length) return;
    this.#shown = (this.#shown + 1) % examples.length;
    this.button.textContent = examples.length > 1 ? "Another head" : "Show me";
    this.#wantsStep = true;
    store.view.set({ heads: "whole" });
    store.view.choose(examples[this.#shown]);
    this.update(store);
    this.#point();
  }

  /** Once the weights are there: select the word in the middle of the text at which this head looks back most. */
  #chooseStep() {
    const { store } = this;
    const { count, tokens, weights } = store;
    if (!count) return;
    this.#wantsStep = false;
    let [best, most] = [0, -1];
    for (let query = Math.max(store.firstStep, Math.floor(count / 4)); query < Math.floor(0.9 * count); query++) {
      const key = weights.strongest(query, 0);
      const isClear = key < query && [query, key, query + 1].every((at) => isWord(tokens[at]?.text ?? ""));
      const score = weights.at(query, key) + (isClear ? 1 : 0);
      if (score > most) [best, most] = [query, score];
    }
    if (most >= 0) store.select(best + 1);
  }

  /** Draw the eye to the open tile. */
  #point() {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const tile = document.querySelector(".hs-grid [aria-pressed=true]");
    tile?.animate({ scale: [1, 1.25, 1], offset: [0, 0.4, 1] }, { duration: 600, easing: "ease-in-out" });
  }
}
