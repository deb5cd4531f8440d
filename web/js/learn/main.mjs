// The Learn tab: the rungs of the ladder, one at a time and all on the same sentence, and a last page.

import { loadStyle, make } from "../lib/dom.mjs";
import { LatestRequest } from "../lib/latest.mjs";
import { clamp } from "../lib/numbers.mjs";
import { chosenModel, modelChosen } from "../lib/page_events.mjs";
import { lastPage } from "./last_page.mjs";
import { OpenLesson } from "./open_lesson.mjs";
import { BOOK_SENTENCE, Progress } from "./progress.mjs";
import { averageOfThePast } from "./rungs/04_average_of_the_past.mjs";
import { bigram } from "./rungs/03_bigram.mjs";
import { induction } from "./rungs/11_induction.mjs";
import { causalMasking } from "./rungs/07_causal_masking.mjs";
import { manyHeads } from "./rungs/08_many_heads.mjs";
import { restOfABlock } from "./rungs/09_rest_of_a_block.mjs";
import { selfAttention } from "./rungs/05_self_attention.mjs";
import { slidingWindow } from "./rungs/02_sliding_window.mjs";
import { textToTokens } from "./rungs/01_text_to_tokens.mjs";
import { trainableWeights } from "./rungs/06_trainable_weights.mjs";
import { wholeModel } from "./rungs/10_whole_model.mjs";
import { VisitorSettings } from "./settings.mjs";
import { teachersPage } from "./teach/teachers_page.mjs";
import { worksheet } from "./teach/worksheet.mjs";
import { makeClassLink, readClassLink } from "./widgets/class_link.mjs";
import { Diagram } from "./widgets/diagram.mjs";
import { canTrain } from "./widgets/elements.mjs";
import { smallButton } from "../widgets/controls.mjs";

/** @import { Rung } from "./rung.js" */

/**
 * Gradio calls this when the tab is first opened.
 * @param {HTMLElement} element the element to fill
 */
export async function mount(element) {
  await loadStyle(new URL("../learn.css", import.meta.url));
  printInLight();
  new Lessons(element).follow();
}

/** Paper is white: what is printed has the colours of the light page. */
function printInLight() {
  let isDark = false;
  window.addEventListener("beforeprint", () => {
    isDark = document.body.classList.contains("dark");
    document.body.classList.remove("dark");
  });
  window.addEventListener("afterprint", () => document.body.classList.toggle("dark", isDark));
}

/** @type {Rung<any>[]} */
export const RUNGS = [
  textToTokens,
  slidingWindow,
  bigram,
  averageOfThePast,
  selfAttention,
  trainableWeights,
  causalMasking,
  manyHeads,
  restOfABlock,
  wholeModel,
  induction,
];
const LAST_PAGE = RUNGS.length + 1;

const BOOK = "From chapter 3 of Sebastian Raschka’s “Build a Large Language Model (From Scratch)”";
const PRESETS = { "Raschka’s sentence": BOOK_SENTENCE, "Hello shiny sun": "Hello shiny sun!" };

/** The rung in the page's address, null if there is none; the last page counts as one more rung. */
function rungInHash() {
  const rung = readClassLink(location.hash)?.rung ?? 0;
  return rung >= 1 && rung <= LAST_PAGE ? rung : null;
}

const FOR_TEACHERS = "teachers"; // the address of their page, after “#learn/”

/** @param {number | string} page */
const addressOf = (page) => `${location.pathname}${location.search}#learn/${page}`;

export class Lessons {
  /** @type {OpenLesson | null} */
  #lesson = null;
  settings = new VisitorSettings(RUNGS);
  /** The model that the settings are for, null before one is known. */
  #modelOfSettings = chosenModel();

  /** @param {HTMLElement} element */
  constructor(element) {
    this.element = element;
    this.progress = new Progress();
    this.request = new LatestRequest();
    this.problem = make("p", { class: "hl-problem", role: "alert" });
    this.note = make("p", { class: "hl-note", role: "status" });
    this.article = make("article", { class: "hl-lesson", "aria-live": "off" });
    this.links = RUNGS.map(({ name, minutes, core: isCore }, i) => {
      const time = make("small", {}, `${isCore ? "● " : ""}${minutes} min`);
      return this.link(i + 1, make("span", { class: "hl-number" }, i + 1), make("span", {}, name), time);
    });
    this.links.push(this.link(LAST_PAGE, make("span", { class: "hl-number" }, "★"), make("span", {}, "What you know")));
    const train = make(
      "a",
      { href: "#train" },
      make("span", { class: "hl-number" }, "→"),
      make("span", {}, "Train your own"),
    );
    const items = canTrain() ? [...this.links, train] : this.links;
    const list = make("ol", {}, ...items.map((link) => make("li", {}, link)));
    const minutes = RUNGS.reduce((sum, each) => sum + (each.core ? each.minutes : 0), 0);
    const core = make(
      "p",
      { class: "hl-count" },
      `● If you have little time: lessons 4–8, 10 and 11, ${minutes} min with exercises`,
    );
    this.teachers = make("a", { href: addressOf(FOR_TEACHERS), class: "hl-for-teachers" }, "For teachers");
    const nav = make("nav", { class: "hl-nav", "aria-label": "Lessons" }, core, list, this.teachers);
    this.diagram = new Diagram((rung) => this.go(rung));
    const margin = make("div", { class: "hl-margin" }, nav, this.diagram.element);
    const columns = make("div", { class: "hl-columns" }, margin, make("div", {}, this.problem, this.article));
    this.form = this.#sentenceForm();
    element.replaceChildren(this.form, columns);
    const follow = () => location.hash.startsWith("#learn/") && this.follow();
    window.addEventListener("hashchange", follow);
    window.addEventListener("popstate", follow);
    window.addEventListener(modelChosen, () => {
      const [lesson, before] = [this.#lesson, this.#modelOfSettings];
      this.#modelOfSettings = this.model;
      if (before !== null && before !== this.model) this.settings.forgetModel();
      if (lesson?.content.followsModel) Object.assign(lesson.options, this.settings.options(lesson.rung));
      lesson?.load();
    });
  }

  #sentenceForm() {
    const attributes = { type: "text", id: "hl-sentence", autocomplete: "off", spellcheck: "false" };
    this.input = make("input", { ...attributes, value: this.progress.sentence });
    const use = make("button", { type: "submit", class: "hs-small hs-primary" }, "Use it");
    this.presets = Object.entries(PRESETS).map(([name, sentence]) => {
      const onclick = () => this.changeSentence(sentence);
      const title = sentence === BOOK_SENTENCE ? BOOK : "A second sentence, short enough to work out by hand";
      return { sentence, button: smallButton(name, onclick, { title }) };
    });
    const buttons = this.presets.map(({ button }) => button);
    const label = make("label", { for: "hl-sentence" }, "Your sentence");
    const most = make("small", { id: "hl-most" }, "up to 10 words"); // as many as the pictures show
    this.input.setAttribute("aria-describedby", most.id);
    const form = make("form", { class: "hl-sentence" }, label, this.input, most, use, ...buttons);
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
    this.settings.forgetSentence();
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
    history.pushState(null, "", addressOf(rung));
    this.open(rung);
    this.article.querySelector("h2")?.focus({ preventScroll: true });
    this.element.scrollIntoView({ block: "start" });
  }

  /** A link to the rung before or after. @param {number} rung @param {(title: string) => string} format */
  linkTo(rung, format) {
    return this.link(rung, format(rung === LAST_PAGE ? "What you know" : `${rung}. ${RUNGS[rung - 1].name}`));
  }

  /** A button for the last page that resets everything. */
  startOver() {
    const forget = () => {
      this.progress.forget();
      this.settings.forget();
      if (this.input) this.input.value = this.progress.sentence;
      this.go(1);
    };
    return smallButton("Start over and forget my answers", forget);
  }

  get count() {
    return RUNGS.length;
  }

  /** The name of the model chosen at the top of the page, which Gradio sets. @returns {string | null} */
  get model() {
    return chosenModel();
  }

  /** Whether this lesson is still the open one. @param {OpenLesson} lesson */
  isOpen(lesson) {
    return this.#lesson === lesson;
  }

  /** Take over what a link for a class fixes; the address is then that of the rung. */
  #followClassLink() {
    const fixed = readClassLink(location.hash);
    if (fixed?.sentence === undefined) return false;
    history.replaceState(history.state, "", addressOf(fixed.rung));
    this.progress.set({ sentence: fixed.sentence });
    if (this.input) this.input.value = fixed.sentence;
    if (RUNGS[fixed.rung - 1]) this.settings.follow(fixed.rung, fixed);
    return true;
  }

  /** @param {OpenLesson} lesson */
  linkForClass({ rung, sentence, options }) {
    const { isCut, ...linked } = this.settings.link(rung, options);
    return { link: makeClassLink({ rung, sentence, ...linked, model: this.model }, location.href), isCut };
  }

  /** Show what the address names. */
  follow() {
    if (location.hash !== `#learn/${FOR_TEACHERS}`) this.open(rungInHash());
    else if (this.article.dataset.rung !== FOR_TEACHERS) this.#showPage(FOR_TEACHERS, teachersPage(this, RUNGS));
  }

  /** Show the worksheet of the open rung. @param {OpenLesson} lesson */
  openWorksheet({ rung, content, sentence, data }) {
    const back = () => this.open(rung);
    this.#showPage(`worksheet-${rung}`, worksheet(content, { rung, sentence, data, back }));
    this.element.scrollIntoView({ block: "start" });
  }

  /** Show what is no rung. @param {number | string} page @param {Node[]} elements */
  #showPage(page, elements) {
    this.#lesson?.leave();
    this.#lesson = null;
    this.request.abort();
    this.#mark(page);
    for (const said of [this.problem, this.note]) said.textContent = "";
    this.article.replaceChildren(...elements);
    this.article.setAttribute("aria-busy", "false");
  }

  /** Mark the link to the page that is shown. @param {number | string} page */
  #mark(page) {
    this.article.dataset.rung = String(page);
    this.form.hidden = page === FOR_TEACHERS;
    [...this.links, this.teachers].forEach((link, i) => {
      link.toggleAttribute("aria-current", false);
      if (link === (page === FOR_TEACHERS ? this.teachers : this.links[Number(page) - 1]))
        link.setAttribute("aria-current", "step");
      link.classList.toggle("hl-seen", this.progress.seen.includes(i + 1));
    });
  }

  /**
   * Show a rung, or with null the one that was open last.
   * @param {number | null} wanted
   * @param {boolean} [again] even if it is open already
   */
  open(wanted, again = false) {
    const rung = wanted ?? clamp(this.progress.rung, 1, LAST_PAGE);
    const isFixed = this.#followClassLink();
    if (!again && !isFixed && this.article.dataset.rung === String(rung)) return;
    this.#lesson?.leave();
    this.#lesson = null;
    this.progress.see(rung);
    for (const { sentence, button } of this.presets ?? []) button.hidden = this.progress.sentence === sentence;
    this.#mark(rung);
    this.diagram.open(rung, this.progress.seen);
    this.links[rung - 1].scrollIntoView({ block: "nearest", inline: "center" });
    if (rung === LAST_PAGE) {
      this.#showPage(rung, lastPage(this, RUNGS));
      return;
    }
    const options = this.settings.options(rung);
    const kept = this.settings.kept(rung);
    const lesson = new OpenLesson(this, { rung, content: RUNGS[rung - 1], options, kept });
    this.#lesson = lesson;
    this.article.replaceChildren(...lesson.elements);
    lesson.load();
  }
}
