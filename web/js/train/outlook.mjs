// The right side before a training starts: where its writing, its curve and its heads will be.

import { make } from "../lib/dom.mjs";
import { sampleText } from "./sample_text.mjs";
import { TimeChart } from "./time_chart.mjs";

/** @import { Size } from "./types.js" */

const LEARNS_FROM = 0.9; // of a text
const SMOOTHING = 0.1; // so that no pair is impossible

export class Outlook {
  /** @type {Size | null} */
  #size = null;

  constructor() {
    this.chart = new TimeChart("Empty: the chance of the right character, and the two lines to beat");
    this.heads = make("h3", {});
    this.tiles = make("div", { class: "ht-tiles", "aria-hidden": "true" });
    this.element = make(
      "section",
      { class: "hs-panel ht-outlook", "aria-label": "What you will watch" },
      make("h3", {}, "What it writes"),
      make("p", { class: "ht-nothing" }, "Nothing yet. The first lines will be noise."),
      make("h3", {}, "The chance it gives to the right next letter, in text that it has not read"),
      this.chart.element,
      this.heads,
      this.tiles,
    );
    new ResizeObserver(() => this.#draw()).observe(this.chart.element);
  }

  /** @param {Size | undefined} size that the button trains */
  show(size) {
    if (!size) return;
    this.#size = size;
    const { n_layer, n_head } = size;
    this.heads.textContent =
      `Its ${n_layer * n_head} attention heads: blank at first; ` +
      "mostly, one of them learns to look at the previous letter";
    this.tiles.style.setProperty("--ht-columns", String(n_head));
    this.tiles.replaceChildren(...Array.from({ length: n_layer * n_head }, () => make("i", { class: "ht-blank" })));
    this.#draw();
  }

  #draw() {
    if (!this.#size) return;
    const { guessing, pairs } = sampleChances();
    const about = (/** @type {number} */ value) => `about ${Math.round(100 * value)}%`;
    const levels = [
      { name: `guessing: ${about(guessing)}`, css: "ht-uniform", value: guessing },
      { name: `letter pairs: ${about(pairs)}`, css: "ht-bigram", value: pairs },
    ];
    this.chart.draw([], levels, {
      last: this.#size.seconds,
      low: 0,
      high: 0.5,
      say: ({ value }) => `${Math.round(100 * value)}%`,
    });
  }
}

/** @type {ReturnType<typeof chances> | null} */
let ofSample = null;
const sampleChances = () => (ofSample ??= chances(sampleText()));

/**
 * What is to beat on the last tenth of a text, as geometric means of the chances of the right characters: those of
 * guessing, and of the counts of letter pairs in the first nine tenths, with a tenth added to each, as
 * model/train/losses.py computes them.
 * @param {string} text
 */
export function chances(text) {
  const characters = [...text];
  const n = Math.floor(LEARNS_FROM * characters.length);
  const size = new Set(characters).size;
  /** @type {Map<string, number>} of characters and of pairs */
  const counts = new Map();
  const count = (/** @type {string} */ key) => counts.set(key, (counts.get(key) ?? 0) + 1);
  for (let i = 0; i < n - 1; i++) {
    count(characters[i]);
    count(characters[i] + characters[i + 1]);
  }
  const of = (/** @type {string} */ key) => counts.get(key) ?? 0;
  let loss = 0;
  for (let i = n; i < characters.length - 1; i++) {
    const [one, next] = [characters[i], characters[i + 1]];
    loss -= Math.log((of(one + next) + SMOOTHING) / (of(one) + SMOOTHING * size));
  }
  return { guessing: 1 / size, pairs: Math.exp(-loss / (characters.length - 1 - n)) };
}
