// The open rung: its elements, and the server's answer to its settings.

import { make } from "../lib/dom.mjs";
import { smallButton } from "../widgets/controls.mjs";
import { ask } from "./server.mjs";
import { fold } from "./widgets/elements.mjs";
import { deeperFold, written } from "./widgets/content.mjs";
import { exercises, ownExercise } from "./widgets/exercises.mjs";
import { prediction } from "./widgets/prediction.mjs";
import { Steps } from "./widgets/steps.mjs";
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
    const { parts, explanation, formula } = this.built;
    Object.assign(parts, { formula });
    this.steps = new Steps(content, parts, {
      explanation,
      kept,
      after: (title) => this.#afterStep(title),
      stops: () => (this.data ? (this.built.play?.() ?? []) : []),
    });
    const deeper = [deeperFold(kept, content.deeper, parts), ...written(content.after ?? [], parts)];
    this.deeper = make("div", { class: "hl-picture" }, ...deeper);
    this.pictures = [this.steps.figure, this.deeper];
    if (explanation) explainWhereUsed(this.pictures, explanation);
    for (const picture of this.pictures) picture.hidden = !content.waitsForClick;
    this.toWorksheet = smallButton("Worksheet to print", () => lessons.openWorksheet(this), { disabled: true });
    this.elements = this.#makeElements();
  }

  /** The prediction and the exercises that belong to a step. @param {string} title */
  #afterStep(title) {
    const { content, rung } = this;
    const { progress } = this.lessons;
    const first = title === content.steps[0].title ? [this.prediction] : [];
    return [...first, ...exercises(content.exercises, title, { rung, progress })];
  }

  #makeElements() {
    const { rung, content, built, lessons, kept, steps } = this;
    const { progress } = lessons;
    const before = rung > 1 ? lessons.linkTo(rung - 1, (title) => `← ${title}`) : make("span");
    const does = content.notebookDoes ?? "prints the numbers of this page";
    const about = content.followsModel
      ? "torch, safetensors and tokenizers, and fetches its model"
      : `torch alone, and ${does}`;
    const needs = `With your sentence, three tasks and solutions. It needs ${about}.`;
    const after = lessons.linkTo(rung + 1, (title) => `${title} →`);
    const more = exercises(content.exercises, undefined, { rung, progress });
    const next = make("p", { class: "hl-next" }, content.next);
    return [
      make("p", { class: "hl-of" }, `Rung ${rung} of ${lessons.count}`),
      make("h2", { tabindex: -1 }, content.name),
      lessons.note,
      make(
        "div",
        { class: "hl-scrolly" },
        make("div", { class: "hl-text" }, ...steps.sections, this.own, next),
        steps.figure,
      ),
      this.deeper,
      ...(more.length ? [exercisesFold(kept, more)] : []),
      sourceLines(content.key),
      make(
        "div",
        { class: "hl-take" },
        notebookButton(content.key, () => built.notebook?.() ?? this.body, needs),
        classLinkButton(() => lessons.linkForClass(this)),
        this.toWorksheet,
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
    this.steps.leave();
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

  /** @param {boolean} isShown whether the server has numbers for the pictures */
  #show(isShown) {
    for (const picture of this.pictures) picture.hidden = !isShown;
  }

  /** The numbers have changed without `set` or `share`. */
  renew() {
    if (!this.data) return; // a training is shown again while the rung is built
    this.steps.update();
    this.poseOwn();
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
      this.#show(true);
      this.built.update(data);
      this.data = data;
      this.toWorksheet.disabled = false;
      this.steps.update();
      this.poseOwn();
    } catch (error) {
      if (!lessons.isOpen(this)) return;
      lessons.problem.textContent = /** @type {Error} */ (error).message;
      lessons.note.textContent = "";
      this.#show(false);
    }
    lessons.article.setAttribute("aria-busy", "false");
  }
}

/** @param {Record<string, any>} kept @param {Node[]} more */
function exercisesFold(kept, more) {
  const element = fold(kept, "further", "More exercises", ...more);
  element.classList.add("hl-exercises-fold"); // printed even if it is shut
  return element;
}

/**
 * Keep the explanation of a number in the picture that is used.
 * @param {HTMLElement[]} pictures
 * @param {Node} explanation
 */
function explainWhereUsed(pictures, explanation) {
  for (const picture of pictures) {
    for (const event of ["pointerdown", "pointermove", "focusin"]) {
      picture.addEventListener(event, () => explanation.parentNode !== picture && picture.append(explanation), true);
    }
  }
}
