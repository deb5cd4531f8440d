// Nine lessons, one at a time, on one sentence.

import { make } from "../lib/dom.mjs";
import { LatestRequest } from "../lib/server/latest.mjs";
import { clamp } from "../lib/numbers.mjs";
import { OpenLesson } from "./open_lesson.mjs";
import { BOOK_SENTENCE, Progress } from "./progress.mjs";
import { averageOfThePast } from "./rungs/average_of_the_past.mjs";
import { bigram } from "./rungs/bigram.mjs";
import { causalMasking } from "./rungs/causal_masking.mjs";
import { loadedHead } from "./rungs/loaded_head.mjs";
import { manyHeads } from "./rungs/many_heads.mjs";
import { selfAttention } from "./rungs/self_attention.mjs";
import { slidingWindow } from "./rungs/sliding_window.mjs";
import { textToTokens } from "./rungs/text_to_tokens.mjs";
import { trainableWeights } from "./rungs/trainable_weights.mjs";

/** @import { Rung, Settings } from "./rung.js" */

/** @type {Rung[]} */
const RUNGS = [
  textToTokens,
  slidingWindow,
  bigram,
  averageOfThePast,
  selfAttention,
  trainableWeights,
  causalMasking,
  manyHeads,
  loadedHead,
];

/** The rung that the page's address names, null for none. */
export function rungInHash() {
  const found = /^#learn\/(\d+)$/.exec(location.hash);
  return found && RUNGS[Number(found[1]) - 1] ? Number(found[1]) : null;
}

/** @param {number} rung */
const addressOf = (rung) => `${location.pathname}${location.search}#learn/${rung}`;

/** The name of the model that is chosen at the top of the page; Gradio keeps it there. @returns {string | null} */
const chosenModel = () => /** @type {any} */ (window).headscopeModel ?? null;

export class Lessons {
  /** @type {OpenLesson | null} */
  #lesson = null;
  /** @type {Record<number, Settings>} what the visitor has set, by rung */
  #changes = {};
  /** @type {Record<number, Record<string, any>>} what a rung wants to find again, by rung */
  #kept = {};

  /** @param {HTMLElement} element */
  constructor(element) {
    this.element = element;
    this.progress = new Progress();
    this.request = new LatestRequest();
    this.problem = make("p", { class: "hl-problem", role: "alert" });
    this.note = make("p", { class: "hl-note", role: "status" });
    this.article = make("article", { class: "hl-lesson", "aria-live": "off" });
    this.links = RUNGS.map(({ name }, i) =>
      this.link(i + 1, make("span", { class: "hl-number" }, i + 1), make("span", {}, name)),
    );
    const list = make("ol", {}, ...this.links.map((link) => make("li", {}, link)));
    const nav = make("nav", { class: "hl-nav", "aria-label": "Lessons" }, list);
    const columns = make("div", { class: "hl-columns" }, nav, make("div", {}, this.problem, this.article));
    element.replaceChildren(this.#sentenceForm(), columns);
    const follow = () => rungInHash() && this.open(rungInHash());
    window.addEventListener("hashchange", follow);
    window.addEventListener("popstate", follow);
    window.addEventListener("headscope-model", () => {
      delete this.#changes[RUNGS.indexOf(loadedHead) + 1]; // another model has other heads
      this.#lesson?.built.changeModel?.(chosenModel());
    });
  }

  #sentenceForm() {
    const attributes = { type: "text", id: "hl-sentence", autocomplete: "off", spellcheck: "false" };
    this.input = make("input", { ...attributes, value: this.progress.sentence });
    const use = make("button", { type: "submit", class: "hs-small hl-primary" }, "Use it");
    const reset = () => this.changeSentence(BOOK_SENTENCE);
    this.book = make("button", { type: "button", class: "hs-small", onclick: reset }, "The book's sentence");
    const label = make("label", { for: "hl-sentence" }, "Your sentence");
    const form = make("form", { class: "hl-sentence" }, label, this.input, use, this.book);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.changeSentence(this.input?.value ?? "");
    });
    return form;
  }

  /** Use another sentence on all rungs. @param {string} sentence */
  changeSentence(sentence) {
    if (this.input) this.input.value = sentence;
    this.progress.set({ sentence });
    this.open(this.progress.rung, true);
  }

  /**
   * @param {number} rung
   * @param {...(Node | string)} content
   */
  link(rung, ...content) {
    const link = make("a", { href: addressOf(rung) }, ...content);
    link.addEventListener("click", (event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey) return;
      event.preventDefault();
      this.go(rung);
    });
    return link;
  }

  /** @param {number} rung */
  go(rung) {
    history.pushState(history.state, "", addressOf(rung));
    this.open(rung);
    this.article.querySelector("h2")?.focus({ preventScroll: true });
    this.element.scrollIntoView({ block: "start" });
  }

  /** A link to the rung before or after. @param {number} rung @param {(title: string) => string} format */
  linkTo(rung, format) {
    return this.link(rung, format(`${rung}. ${RUNGS[rung - 1].name}`));
  }

  /** For the end of the ladder: a button that resets everything. */
  startOver() {
    const forget = () => {
      this.progress.forget();
      this.#changes = {};
      this.#kept = {};
      if (this.input) this.input.value = this.progress.sentence;
      this.go(1);
    };
    return make("button", { type: "button", class: "hs-small", onclick: forget }, "Start over, forget my answers");
  }

  get count() {
    return RUNGS.length;
  }

  /** Whether this lesson is still the open one. @param {OpenLesson} lesson */
  isOpen(lesson) {
    return this.#lesson === lesson;
  }

  /** @param {number} rung @param {Settings} changes */
  remember(rung, changes) {
    this.#changes[rung] = { ...this.#changes[rung], ...changes };
  }

  /**
   * Show a rung; null for the one that was open last.
   * @param {number | null} wanted
   * @param {boolean} [again] even if it is open already
   */
  open(wanted, again = false) {
    const rung = wanted ?? clamp(this.progress.rung, 1, RUNGS.length);
    if (!again && this.#lesson?.rung === rung) return;
    this.#lesson?.built.leave?.();
    this.progress.see(rung);
    if (this.book) this.book.hidden = this.progress.sentence === BOOK_SENTENCE;
    this.links.forEach((link, i) => {
      link.toggleAttribute("aria-current", false);
      if (i + 1 === rung) link.setAttribute("aria-current", "step");
      link.classList.toggle("hl-seen", this.progress.seen.includes(i + 1));
    });
    this.links[rung - 1].scrollIntoView({ block: "nearest", inline: "center" });
    const first = RUNGS[rung - 1].options(this.progress.sentence === BOOK_SENTENCE, chosenModel());
    const options = { ...first, ...this.#changes[rung] };
    const kept = (this.#kept[rung] ??= {});
    const lesson = new OpenLesson(this, { rung, content: RUNGS[rung - 1], options, kept });
    this.#lesson = lesson;
    this.article.replaceChildren(...lesson.elements);
    this.article.dataset.rung = String(rung);
    lesson.load();
  }
}
