// All questions in groups, in the place of an answer; a typed word finds one.

import { make, setText } from "../../lib/dom.mjs";
import { QUESTIONS_BY_TOPIC } from "./question_list.mjs";
import { topicWords } from "./subject.mjs";

/** @import { ShownText } from "../state/shown_text.mjs" */
/** @import { Question } from "./question.js" */

/** @typedef {{ question: Question, element: HTMLElement, button: HTMLButtonElement, words: string }} Entry */
/** @typedef {{ topic: Topic, element: HTMLElement, heading: HTMLElement, entries: Entry[] }} Group */
/** @typedef {keyof typeof QUESTIONS_BY_TOPIC} Topic */

/**
 * What researchers call the methods behind the questions, where neither title nor hook does.
 * @type {Record<string, string>}
 */
const METHODS = {
  attribution: "direct logit attribution dla",
  "logit-lens": "logit lens early exit",
  ledger: "qk ov",
  roles: "induction copying previous token ov",
  feeding: "composition q k v path residual stream",
  passages: "max activating examples",
  knockout: "ablation ablate knock out zero mean",
  desk: "ablation ablate knock out mute solo scale",
  patch: "activation patching causal tracing path",
  circuit: "path ablation edges acdc",
  many: "activation patching attribution dla ablation dataset",
};

export class QuestionList {
  /** @type {Group[]} */
  #groups = [];
  /** Whether the focus was in the list when a question was chosen. */
  hadFocus = false;

  /** @param {ShownText} store */
  constructor(store) {
    this.store = store;
    this.field = make("input", { type: "search", placeholder: "Find a question", "aria-label": "Find a question" });
    this.none = make("p", { class: "hs-hint", role: "status" });
    const topics = /** @type {Topic[]} */ (Object.keys(QUESTIONS_BY_TOPIC));
    this.#groups = topics.map((topic) => {
      const heading = make("h3", {});
      const entries = QUESTIONS_BY_TOPIC[topic].map((question) => this.#entry(question));
      const element = make("section", {}, heading, make("ul", {}, ...entries.map((entry) => entry.element)));
      return { topic, element, heading, entries };
    });
    this.element = make("div", { class: "hs-questions" }, this.field, ...this.#groups.map(({ element }) => element));
    this.element.append(this.none);
    this.field.addEventListener("input", () => this.#find());
    this.field.addEventListener("keydown", (event) => this.#byKey(event));
  }

  /** @param {Question} question @returns {Entry} */
  #entry(question) {
    const { key, title, hook } = question;
    const open = () => this.store.view.set({ ask: key, askWith: "" });
    const button = make("button", { type: "button", onclick: open }, make("b", {}, title), make("span", {}, hook));
    return {
      question,
      element: make("li", {}, button),
      button,
      words: `${title} ${hook} ${METHODS[key] ?? ""}`.toLowerCase(),
    };
  }

  /** @param {boolean} isShown */
  show(isShown) {
    const { element, store } = this;
    this.hadFocus = !isShown && !element.hidden && element.contains(document.activeElement);
    if (isShown && element.hidden) {
      this.field.value = "";
      this.#find();
    }
    element.hidden = !isShown;
    if (!isShown) return;
    for (const { topic, heading } of this.#groups) setText(heading, topicWords(store, topic));
  }

  /** Show the questions in which every typed word occurs. */
  #find() {
    const typed = this.field.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const { topic, element, entries } of this.#groups) {
      const about = topicWords(this.store, topic).toLowerCase();
      for (const entry of entries) {
        entry.element.hidden = !typed.every((word) => entry.words.includes(word) || about.includes(word));
      }
      element.hidden = entries.every((entry) => entry.element.hidden);
    }
    const first = this.#first;
    setText(this.none, first ? "" : `No question has “${this.field.value.trim()}” in it.`);
    for (const { entries } of this.#groups) {
      for (const entry of entries) entry.button.toggleAttribute("data-first", typed.length > 0 && entry === first);
    }
  }

  get #found() {
    return this.#groups.flatMap(({ entries }) => entries).filter(({ element }) => !element.hidden);
  }

  /** The question that Enter opens: one whose title has what was typed comes before one that only tells of it. */
  get #first() {
    const typed = this.field.value.trim().toLowerCase();
    const found = this.#found;
    const titled = (/** @type {(title: string) => boolean} */ fits) =>
      found.find(({ question }) => fits(question.title.toLowerCase()));
    return titled((title) => title.startsWith(typed)) ?? titled((title) => title.includes(typed)) ?? found.at(0);
  }

  /** Enter opens the question that is marked, Escape takes back what was typed. @param {KeyboardEvent} event */
  #byKey(event) {
    if (event.key === "Enter") this.#first?.button.click();
    else if (event.key === "ArrowDown") this.#found.at(0)?.button.focus();
    else if (event.key === "Escape" && this.field.value) {
      this.field.value = "";
      this.#find();
    } else return;
    event.preventDefault();
  }
}
