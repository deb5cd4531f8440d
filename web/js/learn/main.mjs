// The Learn tab: nine lessons, one at a time, on one sentence.

import { make } from "../look/dom.mjs";
import { Newest } from "./ask.mjs";
import { averages } from "./averages.mjs";
import { bigram } from "./bigram.mjs";
import { causal } from "./causal.mjs";
import { manyHeads } from "./many_heads.mjs";
import { question, sourceLines } from "./parts.mjs";
import { plain } from "./plain.mjs";
import { BOOK, Progress } from "./progress.mjs";
import { real } from "./real.mjs";
import { tokens } from "./tokens.mjs";
import { trainable } from "./trainable.mjs";
import { windows } from "./windows.mjs";

const RUNGS = [tokens, windows, bigram, averages, plain, trainable, causal, manyHeads, real];
const PAUSE = 90; // milliseconds in which a slider may still move

export async function mount(element) {
  const style = make("link", { rel: "stylesheet", href: new URL("learn.css", import.meta.url).href });
  const styled = new Promise((resolve) => (style.onload = style.onerror = resolve));
  document.head.append(style);
  await styled;
  new Lessons(element).open(rungOf(location.hash));
}

/** The rung that an address names, null for none. */
const rungOf = (hash) => {
  const found = /^#learn\/(\d)$/.exec(hash);
  return found && RUNGS[found[1] - 1] ? Number(found[1]) : null;
};
const addressOf = (rung) => `${location.pathname}${location.search}#learn/${rung}`;

class Lessons {
  constructor(element) {
    this.element = element;
    this.progress = new Progress();
    this.newest = new Newest();
    this.changes = {}; // what the visitor has set, by rung
    this.kept = {}; // what a rung wants to find again when it is opened anew, by rung
    this.problem = make("p", { class: "hl-problem", role: "alert" });
    this.note = make("p", { class: "hl-note", role: "status" });
    this.article = make("article", { class: "hl-lesson", "aria-live": "off" });
    this.links = RUNGS.map((rung, i) => this.link(i + 1, make("span", { class: "hl-number" }, i + 1), make("span", {}, rung.name)));
    const list = make("ol", {}, ...this.links.map((link) => make("li", {}, link)));
    this.nav = make("nav", { class: "hl-nav", "aria-label": "Lessons" }, list);
    element.replaceChildren(this.sentenceForm(), make("div", { class: "hl-columns" }, this.nav, make("div", {}, this.problem, this.article)));
    window.addEventListener("hashchange", () => rungOf(location.hash) && this.open(rungOf(location.hash)));
    window.addEventListener("popstate", () => rungOf(location.hash) && this.open(rungOf(location.hash)));
    window.addEventListener("headscope-model", () => {
      delete this.changes[RUNGS.indexOf(real) + 1]; // another model has other heads
      this.lesson?.built.model?.(window.headscopeModel ?? null);
    });
  }

  sentenceForm() {
    this.input = make("input", { type: "text", id: "hl-sentence", value: this.progress.sentence, autocomplete: "off", spellcheck: "false" });
    const use = make("button", { type: "submit", class: "hs-small hl-primary" }, "Use it");
    this.book = make("button", { type: "button", class: "hs-small", onclick: () => this.say(BOOK) }, "The book's sentence");
    const form = make("form", { class: "hl-sentence" }, make("label", { for: "hl-sentence" }, "Your sentence"), this.input, use, this.book);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.say(this.input.value);
    });
    return form;
  }

  /** Let another sentence flow through all rungs. */
  say(sentence) {
    this.input.value = sentence;
    this.progress.set({ sentence });
    this.open(this.progress.rung, true);
  }

  link(rung, ...content) {
    const link = make("a", { href: addressOf(rung) }, ...content);
    link.addEventListener("click", (event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey) return;
      event.preventDefault();
      this.go(rung);
    });
    return link;
  }

  go(rung) {
    history.pushState(history.state, "", addressOf(rung));
    this.open(rung);
    this.article.querySelector("h2")?.focus({ preventScroll: true });
    this.element.scrollIntoView({ block: "start" });
  }

  /** At the end of the way: the questions may be answered again. */
  startOver() {
    const forget = () => {
      this.progress.forget();
      Object.assign(this, { changes: {}, kept: {} });
      this.input.value = this.progress.sentence;
      this.go(1);
    };
    return make("button", { type: "button", class: "hs-small", onclick: forget }, "Start over, forget my answers");
  }

  /** Show a rung, the last one that was open where none is named. */
  open(rung, anew = false) {
    rung ??= Math.min(Math.max(this.progress.rung, 1), RUNGS.length);
    if (!anew && this.lesson?.rung === rung) return;
    this.lesson?.built.leave?.();
    this.progress.see(rung);
    this.book.hidden = this.progress.sentence === BOOK;
    this.links.forEach((link, i) => {
      link.toggleAttribute("aria-current", false);
      if (i + 1 === rung) link.setAttribute("aria-current", "step");
      link.classList.toggle("hl-seen", this.progress.seen.includes(i + 1));
    });
    this.links[rung - 1].scrollIntoView({ block: "nearest", inline: "center" });
    this.lesson = new Lesson(this, rung);
    this.article.replaceChildren(...this.lesson.elements());
    this.article.dataset.rung = rung;
    this.lesson.load();
  }
}

class Lesson {
  constructor(lessons, rung) {
    Object.assign(this, { lessons, rung, what: RUNGS[rung - 1] });
    this.sentence = lessons.progress.sentence;
    const { options } = this.what;
    const first = typeof options === "function" ? options(this.sentence === BOOK, window.headscopeModel ?? null) : options;
    this.options = { ...first, ...lessons.changes[rung] };
    this.kept = lessons.kept[rung] ??= {};
    this.built = this.what.build(this);
  }

  elements() {
    const { rung, what, built, lessons } = this;
    const { progress } = lessons;
    this.picture = make("div", { class: "hl-picture", hidden: rung !== 3 }, ...built.picture);
    const answer = (chosen) => progress.set({ answers: { ...progress.answers, [rung]: chosen } });
    const steps = make(
      "nav",
      { class: "hl-steps", "aria-label": "Previous and next" },
      rung > 1 ? lessons.link(rung - 1, `← ${rung - 1}. ${RUNGS[rung - 2].name}`) : make("span"),
      rung < RUNGS.length ? lessons.link(rung + 1, `${rung + 1}. ${RUNGS[rung].name} →`) : lessons.startOver(),
    );
    return [
      make("p", { class: "hl-of" }, `Rung ${rung} of ${RUNGS.length}`),
      make("h2", { tabindex: -1 }, what.name),
      make("div", { class: "hl-text" }, ...built.text),
      built.formula,
      question(what.question, progress.answers[rung], answer),
      lessons.note,
      this.picture,
      sourceLines(rung),
      steps,
    ];
  }

  /** Change a control: the server computes the rung anew. */
  set(changes) {
    Object.assign(this.options, changes);
    Object.assign((this.lessons.changes[this.rung] ??= {}), changes);
    return this.load(PAUSE);
  }

  async load(pause = 0) {
    const { lessons } = this;
    lessons.article.setAttribute("aria-busy", "true");
    try {
      const data = await lessons.newest.ask(String(this.rung), { sentence: this.sentence, ...this.options }, pause);
      if (!data || lessons.lesson !== this) return;
      lessons.problem.textContent = "";
      lessons.note.textContent = data.note ?? "";
      this.picture.hidden = false;
      this.built.update(data);
    } catch (error) {
      if (lessons.lesson !== this) return;
      lessons.problem.textContent = error.message;
      lessons.note.textContent = "";
      this.picture.hidden = true;
    }
    lessons.article.setAttribute("aria-busy", "false");
  }
}
