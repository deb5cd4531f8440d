// Rung 3: a bigram model that learns while the visitor watches.

import { make } from "../../lib/dom.mjs";
import { counted, fixed, number } from "../../lib/numbers.mjs";
import { visible } from "../../lib/words.mjs";
import { askForLines } from "../server.mjs";
import { chart } from "../widgets/chart.mjs";
import { Chips } from "../widgets/chips.mjs";
import { choice, slider } from "../widgets/controls.mjs";
import { code, controls, paragraph, rowOf, term } from "../widgets/elements.mjs";
import { formula, row, sub } from "../../widgets/formula.mjs";
import { HeatTable } from "../../widgets/heat_table.mjs";

/** @import { Lesson, Rung } from "../rung.js" */

/**
 * The state of a training.
 * @typedef {object} Training
 * @property {number[]} points losses so far
 * @property {number} every steps between two of them
 * @property {number} steps in all
 * @property {number} loss before the training
 * @property {number} uniform loss of giving all characters the same probability
 * @property {number} floor the lowest possible loss
 * @property {string[]} characters of the text
 */

const STEPS = [200, 500, 1000, 2000, 5000, 10000];
const TEXT_ID = "hl-lesson-text";

/** @type {Rung} */
export const bigram = {
  name: "The bigram model",
  options: () => ({}),
  question: {
    ask:
      "An untrained bigram model predicts the next of 65 characters. Is its loss above or below that of giving each " +
      "of them the same probability, ln 65 = 4.17?",
    options: ["Below", "Exactly that", "Above"],
    right: 2,
    why:
      "Its table is random, so it is sure of things for no reason, and being sure and wrong costs more than not " +
      "knowing.",
  },
  build(lesson) {
    const { kept } = lesson; // the text, the settings and the last training survive a look at another rung
    const settings = (kept.settings ??= { steps: 2000, learning_rate: 0.01 });
    const text = make("textarea", { id: TEXT_ID, rows: 5 });
    text.addEventListener("input", () => (kept.text = text.value));
    text.value = kept.text ?? "";
    const steps = slider({
      label: "steps",
      values: STEPS,
      value: settings.steps,
      format: (value) => number(value),
      change: (value) => (settings.steps = value),
    });
    const rate = choice({
      label: "learning rate",
      options: { 0.001: "0.001", 0.01: "0.01" },
      value: String(settings.learning_rate),
      change: (value) => (settings.learning_rate = Number(value)),
    });
    const report = new Report(lesson, text);

    /** @type {AbortController | null} */
    let controller = null;
    const run = async () => {
      const { signal } = (controller = new AbortController());
      start.disabled = true;
      stop.disabled = false;
      const own = text.value === kept.written ? "" : text.value;
      Object.assign(kept, { events: [], steps: settings.steps, sentence: lesson.sentence });
      report.begin(own ? "Beginning ..." : "Waiting for the writer ...");
      try {
        const body = { ...settings, lesson: own, sentence: lesson.sentence };
        for await (const event of askForLines("bigram", body, signal)) {
          if (event.stage !== "writing") kept.events.push(event);
          report.show(event);
        }
      } catch (error) {
        report.end(signal.aborted ? report.stopped : /** @type {Error} */ (error).message);
      }
      start.disabled = false;
      stop.disabled = true;
    };
    const start = make("button", { type: "button", class: "hs-small hl-primary", onclick: run }, "Train it");
    const stop = make("button", { type: "button", class: "hs-small", disabled: true }, "Stop");
    stop.addEventListener("click", () => controller?.abort());

    report.replay();
    return {
      text: [
        paragraph(
          "The smallest language model: a table with a row for each character, and in it the ",
          term("logits"),
          " of what comes next. It looks at one character and no further back. Trained on a text, its row for “q” ",
          "learns that “u” follows.",
        ),
        paragraph(
          "Its ",
          term("loss"),
          " is how surprised it is on average by the next character, in nats. The floor needs no training: counting ",
          "how often each pair occurs gives the best possible table, and its loss.",
        ),
      ],
      formula: formula(["loss", "=", "−", " mean of ln ", "p", row("(", sub("x", "t+1"), "|", sub("x", "t"), ")")]),
      picture: [
        make("label", { for: TEXT_ID }, make("b", {}, "Text to learn from")),
        text,
        controls(steps.element, rate.element, start, stop),
        ...report.elements,
        paragraph(
          "Each step takes a batch of 32 windows of 8 characters from random places of the text; then ",
          code("AdamW"),
          " changes the table.",
        ),
      ],
      update({ writer }) {
        text.placeholder = `Leave this empty, and ${writer ?? "a model"} writes a text on the spot. Or paste your own.`;
      },
      leave: () => controller?.abort(),
    };
  },
};

/** Shows a training from the events that the server sends. */
class Report {
  #replaying = false;
  /** @type {Training} */
  #training = { points: [], every: 1, steps: 1, loss: 0, uniform: 0, floor: 0, characters: [] };

  /**
   * @param {Lesson} lesson
   * @param {HTMLTextAreaElement} text
   */
  constructor(lesson, text) {
    this.lesson = lesson;
    this.text = text;
    this.bar = make("progress", { max: 1, value: 0, "aria-label": "Training" });
    this.status = make("p", { class: "hl-count", role: "status" }, "Not trained yet.");
    this.curve = make("div");
    this.before = make("pre", { class: "hl-wrote", tabindex: 0, "aria-label": "Its writing before training" });
    this.after = make("pre", { class: "hl-wrote", tabindex: 0, "aria-label": "Its writing after training" });
    const untrained = make("div", {}, make("h4", {}, "It writes, untrained"), this.before);
    const trained = make("div", {}, make("h4", {}, "It writes, trained"), this.after);
    this.samples = make("div", { class: "hl-row", hidden: true }, untrained, trained);
    this.follows = new HeatTable({
      name: "What follows what",
      axes: "probability of the column's character after the row's; the most frequent characters",
      digits: 2,
    });
    this.sentence = new Chips();
    this.#hideResults();
    this.elements = [this.bar, this.status, this.curve, this.samples];
    this.elements.push(rowOf(this.follows.element), this.sentence.element);
  }

  /** @param {string} status */
  begin(status) {
    this.bar.value = 0;
    this.status.textContent = status;
  }

  /** @param {string} status */
  end(status) {
    this.status.textContent = status;
  }

  get stopped() {
    const last = this.#training.points.at(-1);
    return last === undefined ? "Stopped." : `Stopped, the last loss was ${fixed(last)}.`;
  }

  /** @param {any} event whose fields depend on its `stage` */
  show(event) {
    if (event.stage === "writing") this.#showWriting(event);
    else if (event.stage === "before") this.#showBefore(event);
    else if (event.stage === "training") this.#showTraining(event);
    else if (event.stage === "after") this.#showAfter(event);
    else this.status.textContent = event.why;
  }

  /** Show the last training once more. */
  replay() {
    const { events } = this.lesson.kept;
    if (!events?.length) return;
    this.#replaying = true;
    for (const event of events) this.show(event);
    this.#replaying = false;
    if (this.#training.points.length) this.#draw();
    if (["before", "training"].includes(events.at(-1).stage)) this.status.textContent = this.stopped;
  }

  #hideResults() {
    this.follows.element.hidden = this.sentence.element.hidden = true;
  }

  /** @param {{ model: string, text: string }} event */
  #showWriting({ model, text }) {
    const { kept } = this.lesson;
    this.status.textContent = `${model} writes the text: ${counted(text.length, "character")} ...`;
    this.text.value = kept.text = kept.written = text; // which is not the visitor's own text
    this.text.scrollTop = this.text.scrollHeight;
  }

  /** @param {Training & { wrote: string }} event */
  #showBefore(event) {
    this.#training = { ...event, points: [], every: 1, steps: this.lesson.kept.steps };
    this.before.textContent = event.wrote;
    this.samples.hidden = false;
    this.#hideResults();
    this.after.textContent = "…";
  }

  /** @param {{ step: number, steps: number, every: number, points: number[] }} event */
  #showTraining({ step, steps, every, points }) {
    const training = this.#training;
    training.points.push(...points);
    Object.assign(training, { every, steps });
    this.bar.value = step / steps;
    const loss = fixed(training.points.at(-1) ?? training.loss);
    const progress = `Step ${number(step)} of ${number(steps)}`;
    this.status.textContent = `${progress}: the loss is ${loss}, untrained it was ${fixed(training.loss)}.`;
    if (!this.#replaying) this.#draw();
  }

  /** @param {any} event */
  #showAfter({ wrote, loss, frequent, follows, sentence, n_sentence }) {
    const { characters, uniform, floor, loss: untrained } = this.#training;
    this.after.textContent = wrote;
    this.status.textContent =
      `Done. Loss on the whole text: ${fixed(untrained)} untrained, ${fixed(loss)} now. Giving all ` +
      `${characters.length} characters the same probability has ${fixed(uniform)}, and no bigram model can get below ` +
      `${fixed(floor)}.`;
    const names = frequent.map(visible);
    this.follows.show({ rows: names, columns: names, values: follows });
    this.#showSentence(sentence, n_sentence);
    this.follows.element.hidden = this.sentence.element.hidden = false;
  }

  /**
   * @param {{ text: string, known: boolean, probability: number | null }[]} tokens
   * @param {number} n
   */
  #showSentence(tokens, n) {
    const chips = tokens.map(({ text, known, probability }) => ({
      text,
      known,
      below: probability === null ? "–" : fixed(probability, 3),
    }));
    const summary =
      "Your sentence as the model sees it: below each character is its probability after the one before it. Outlined " +
      "characters are not in the text it learned from.";
    const isAnother = this.lesson.kept.sentence !== this.lesson.sentence;
    if (!isAnother) this.sentence.show(chips, n, summary);
    else this.sentence.show([], 0, "Your sentence is another one now: train again to see what the model makes of it.");
  }

  #draw() {
    const { points, every, uniform, floor, steps } = this.#training;
    const to = number(steps);
    this.curve.replaceChildren(
      chart({
        label: `Loss over ${to} steps`,
        x: { from: 0, to, count: Math.ceil(steps / every) },
        lines: { "training loss": points },
        levels: { "same probability for all characters": uniform, "counted pairs, the floor": floor },
        xName: "step",
        yName: "loss in nats",
      }),
    );
  }
}
