// The line under the sentence: what is selected, three questions about it, and the way to all others.

import { shortTitle } from "../../calls/question_titles.mjs";
import { hasModifier, make, setChildren, setFlag } from "../../lib/dom.mjs";
import { headName } from "../../lib/heads.mjs";
import { onChange, whenever } from "../../lib/reactive.mjs";
import { Roving } from "../../widgets/roving.mjs";
import { QUESTIONS_BY_TOPIC } from "./question_list.mjs";
import { nextWord, openHead, shownNextWord, whyNext } from "./subject.mjs";

/** @import { ShownText } from "../state/shown_text.mjs" */
/** @import { ShownStep } from "../stage/shown_step.mjs" */

/** @typedef {"word" | "head" | "text"} Subject */

const SUBJECTS = /** @type {const} */ (["word", "head", "text"]);
const OFFERED = 3; // questions

export class AskLine {
  /** @type {Subject} */
  #subject = "word";

  /**
   * @param {ShownText} store
   * @param {ShownStep} step
   * @param {() => void} compare ask for another text to compare with
   */
  constructor(store, step, compare) {
    this.store = store;
    this.step = step;
    this.compare = {
      key: "",
      title: "Compare texts",
      hook: "Read a second text beside this one.",
      ask: compare,
    };
    const button = (/** @type {string} */ kind, /** @type {() => void} */ act) =>
      make("button", { type: "button", class: kind, onclick: act });
    this.subjects = SUBJECTS.map((subject) => button("hs-subject", () => this.#choose(subject)));
    for (const subject of this.subjects) subject.setAttribute("role", "radio");
    this.offered = Array.from({ length: OFFERED }, (_, at) => button("hs-offered", () => this.#open(at)));
    this.more = button("hs-more-questions", () => this.#toggle("list"));
    this.more.append("More ", make("kbd", { "aria-hidden": "true" }, "/"));
    this.more.setAttribute("aria-label", "More questions");
    const about = make("div", { role: "radiogroup", "aria-label": "What to ask about" }, ...this.subjects);
    const offered = make("div", { class: "hs-offered-questions" }, ...this.offered);
    const questions = make("div", { role: "group", "aria-label": "Questions" }, offered, this.more);
    this.element = make("section", { class: "hs-ask-line", "aria-label": "Questions about what is selected" });
    this.element.append(make("span", { class: "hs-ask-about", "aria-hidden": "true" }, "Ask about"), about, questions);
    this.roving = new Roving(this.element, () => [...this.subjects, ...this.offered, this.more]);
    this.roving.update(this.offered[0]);
    onChange(
      () => [store.clicks],
      () => this.#choose("head"),
    );
    onChange(
      () => [store.selection.picks],
      () => this.#choose("word"),
    );
    whenever(
      () => [step.known, store.open, store.pointer, store.isGrowing, store.view.options],
      () => this.draw(),
    );
  }

  get #questions() {
    const questions = QUESTIONS_BY_TOPIC[this.#subject].slice(0, OFFERED);
    return this.#subject === "text" ? [...questions.slice(0, -1), this.compare] : questions;
  }

  /** @param {Subject} subject */
  #choose(subject) {
    this.#subject = subject;
    this.draw();
  }

  /** @param {number} at */
  #open(at) {
    const question = this.#questions[at];
    if (question === this.compare) this.compare.ask();
    else this.#toggle(question.key);
  }

  /** @param {string} ask */
  #toggle(ask) {
    const { view } = this.store;
    if (view.options.ask === ask) view.closeAsk();
    else view.set({ ask, askWith: "" });
  }

  draw() {
    const { store, step } = this;
    if (store.isGrowing && this.subjects[0].textContent) return; // its words would move with every token
    const { ask } = store.view.options;
    SUBJECTS.forEach((subject, at) => {
      setChildren(this.subjects[at], this.#name(subject));
      if (subject === "word") this.subjects[at].setAttribute("aria-label", nextWord(store, step));
      setFlag(this.subjects[at], "aria-checked", subject === this.#subject);
    });
    this.#questions.forEach((question, at) => {
      const button = this.offered[at];
      const isWhy = question.key === "attribution";
      setChildren(button, ...(isWhy ? whyNext(store, step, shownNextWord(store, step)) : [shortTitle(question.title)]));
      if (isWhy) button.setAttribute("aria-label", whyNext(store, step, nextWord(store, step)).join(""));
      else button.removeAttribute("aria-label");
      button.title = `${question.title} ${question.hook}`;
      setFlag(button, "aria-expanded", ask !== "" && ask === question.key);
    });
    setFlag(this.more, "aria-expanded", ask === "list");
  }

  /** @param {Subject} subject */
  #name(subject) {
    const { store } = this;
    if (subject === "word") return shownNextWord(store, this.step);
    if (subject === "text") return "the text";
    return openHead(store) ? `head ${headName(store.open)}` : "a mean";
  }

  /** 1 to 3 open a question, "/" all of them. Whether the key was one of these. @param {KeyboardEvent} event */
  byKey(event) {
    if (hasModifier(event) || !this.element.checkVisibility()) return false;
    const button = event.key === "/" ? this.more : this.offered[Number(event.key) - 1];
    if (!button || this.store.isGrowing) return false;
    event.preventDefault();
    button.focus({ preventScroll: true });
    button.click();
    return true;
  }
}
