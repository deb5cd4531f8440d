// The open rung: its elements, and the server's answer to its settings.

import { make } from "../lib/dom.mjs";
import { ask } from "./server.mjs";
import { fold } from "./widgets/elements.mjs";
import { Play } from "./widgets/play.mjs";
import { deeperFold, written } from "./widgets/content.mjs";
import { exercises, ownExercise } from "./widgets/exercises.mjs";
import { prediction } from "./widgets/prediction.mjs";
import { classLinkButton } from "./widgets/class_link.mjs";
import { notebookButton, sourceLines } from "./widgets/source_lines.mjs";

/** @import { Lessons } from "./main.mjs" */
/** @import { Lesson, Prediction, Rung, Settings } from "./rung.js" */

const SLIDER_PAUSE = 90; // milliseconds to wait for a slider that is still moving

/** @implements {Lesson} */
export class OpenLesson {
  /**
   * @param {Lessons} lessons
   * @param {{ rung: number, content: Rung<any>, options: Settings, kept: Record<string, any> }} lesson
   */
  constructor(lessons, { rung, content, options, kept }) {
    this.lessons = lessons;
    this.rung = rung;
    this.content = content;
    this.options = options;
    this.kept = kept;
    this.sentence = lessons.progress.sentence;
    this.prediction = make("div");
    if (content.prediction) this.rephrase(content.prediction);
    /** @type {any} the server's answer */
    this.data = null;
    this.own = make("div", {});
    this.built = content.build(this);
    this.play = new Play(() => (this.data ? (this.built.play?.() ?? []) : []));
    const { parts, explanation } = this.built;
    const deeper = deeperFold(kept, content.deeper, parts);
    const after = [deeper, ...written(content.after ?? [], parts), ...(explanation ? [explanation] : [])];
    const shown = [this.play.element, ...written(content.path, parts), ...after, this.play.flight];
    this.picture = make("div", { class: "hl-picture", hidden: !content.waitsForClick }, ...shown);
    this.elements = this.#makeElements();
  }

  #makeElements() {
    const { rung, content, built, lessons, kept } = this;
    const { progress } = lessons;
    const before = rung > 1 ? lessons.linkTo(rung - 1, (title) => `← ${title}`) : make("span");
    const does = content.notebookDoes ?? "prints the numbers of this page";
    const needs = content.followsModel
      ? "With your sentence and settings. It needs torch, safetensors, tokenizers and the folder of the model."
      : `With your sentence and settings. It needs torch alone, and ${does}.`;
    const after = lessons.linkTo(rung + 1, (title) => `${title} →`);
    return [
      make("p", { class: "hl-of" }, `Rung ${rung} of ${lessons.count}`),
      make("h2", { tabindex: -1 }, content.name),
      make(
        "div",
        { class: "hl-opening" },
        make("div", { class: "hl-text" }, ...written(content.opening, built.parts)),
        built.formula,
      ),
      this.prediction,
      lessons.note,
      this.picture,
      fold(kept, "exercises", "Exercises", this.own, exercises(content.exercises, rung, progress, kept)),
      sourceLines(content.key),
      make(
        "div",
        { class: "hl-take" },
        notebookButton(content.key, () => built.notebook?.() ?? this.body, needs),
        classLinkButton(() => lessons.linkForClass(this)),
      ),
      make("nav", { class: "hl-steps", "aria-label": "Previous and next" }, before, after),
    ];
  }

  /** Ask for the prediction before the picture. @param {Prediction} asked */
  rephrase(asked) {
    const { progress } = this.lessons;
    const { rung } = this;
    const earlier = progress.answerTo(rung, asked);
    this.prediction.replaceChildren(prediction(asked, earlier, (answered) => progress.answer(rung, asked, answered)));
  }

  /** Use another sentence on all rungs. @param {string} sentence */
  read(sentence) {
    this.lessons.changeSentence(sentence);
  }

  poseOwn() {
    const own = this.data && this.content.own(this.data, this);
    this.own.replaceChildren(...(own ? [ownExercise(own, (this.kept.own ??= {}))] : []));
  }

  /** Open another rung. @param {number} rung */
  go(rung) {
    this.lessons.go(rung);
  }

  /** Another rung is opened. */
  leave() {
    this.play.reset();
    this.built.leave?.();
  }

  get diagram() {
    return this.lessons.diagram;
  }

  get shared() {
    return this.lessons.settings.shared;
  }

  /** The fields of every request about the sentence. */
  get about() {
    return { sentence: this.sentence, model: this.lessons.model, ...this.shared };
  }

  get body() {
    return { ...this.about, ...this.options };
  }

  /** Change settings: the server recomputes the rung. @param {Settings} changes */
  set(changes) {
    Object.assign(this.options, changes);
    this.lessons.settings.remember(this.rung, changes);
    return this.load(SLIDER_PAUSE);
  }

  /** Change settings that all rungs share. @param {Settings} changes */
  share(changes) {
    Object.assign(this.shared, changes);
    return this.load(SLIDER_PAUSE);
  }

  async load(pause = 0) {
    const { lessons } = this;
    lessons.article.setAttribute("aria-busy", "true");
    if (!this.data) lessons.note.textContent = "Loading…";
    try {
      const { body } = this;
      const data = await lessons.request.send((signal) => ask(this.content.key, body, signal), pause);
      if (!data || !lessons.isOpen(this)) return;
      lessons.problem.textContent = "";
      lessons.note.textContent = data.note ?? "";
      this.picture.hidden = false;
      this.built.update(data);
      this.data = data;
      this.play.reset();
      this.poseOwn();
    } catch (error) {
      if (!lessons.isOpen(this)) return;
      lessons.problem.textContent = /** @type {Error} */ (error).message;
      lessons.note.textContent = "";
      this.picture.hidden = true;
    }
    lessons.article.setAttribute("aria-busy", "false");
  }
}
