// Rung 3: a bigram model that learns while the visitor watches.

import { make } from "../../../lib/dom.mjs";
import { fixed, number } from "../../../lib/numbers.mjs";
import { askForLines } from "../../server.mjs";
import { choice, slider } from "../../widgets/controls.mjs";
import { defined } from "../../widgets/definitions.mjs";
import { canTrain, controls, heading, pageLink, paragraph, term } from "../../widgets/elements.mjs";
import { formula, row, sub } from "../../../widgets/formula.mjs";
import { Report } from "./report.mjs";
import { textAsData } from "./text_as_data.mjs";

/** @import { Question, Rung } from "../../rung.js" */

const STEPS = [200, 500, 1000, 2000, 5000, 10000];
const TEXT_ID = "hl-lesson-text";
const EXAMPLE =
  "Already trained: the experiment of Andrej Karpathy's lecture “Let's build GPT”, 10,000 steps on tiny Shakespeare " +
  "(40,000 lines of Shakespeare's plays) with a learning rate of 0.001. " +
  "Train one on a text of your own, and it takes the place of this one.";

/** @type {Rung} */
export const bigram = {
  name: "The bigram model",
  learned: "The smallest language model is a table of pairs; loss is surprise, and a held-out part keeps it honest.",
  options: () => ({}),
  question: questionFor(65),
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
    const experiment = textAsData();
    const report = new Report(lesson, text, {
      before(event) {
        experiment.show(event);
        lesson.rephrase(questionFor(event.characters.length));
      },
      after: (event) => experiment.end(event),
    });
    const tooLong = make("p", { class: "hl-problem", role: "alert" });
    const shorten = make("button", { type: "button", class: "hs-small" }, "");
    let most = Infinity;
    /** Say before anything is sent that a text is too long for the server. */
    function checkLength() {
      const { length } = text.value;
      const isTooLong = length > most;
      tooLong.replaceChildren();
      start.disabled = isTooLong;
      if (!isTooLong) return;
      shorten.textContent = `Use the first ${number(most)}`;
      tooLong.append(
        `The text has ${number(length)} characters; a bigram model learns from ${number(most)} at most. `,
        shorten,
      );
    }
    shorten.addEventListener("click", () => {
      text.value = kept.text = text.value.slice(0, most);
      checkLength();
    });
    text.addEventListener("input", checkLength);

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
          "How well can the next character be guessed from this one alone? The answer is what attention has to beat. ",
          "The smallest language model is a table with a row for each character, and in it the ",
          defined("logits"),
          " of what comes next. Trained on a text, its row for “q” learns that “u” follows.",
        ),
        paragraph(
          "Its ",
          term("loss"),
          " is how surprised it is on average by the next character, in ",
          defined("nats"),
          ". The floor needs no training: counting ",
          "how often each pair occurs gives the best possible table, and its loss.",
        ),
      ],
      formula: formula(["loss", "=", "−", " mean of ln ", "p", row("(", sub("x", "t+1"), "|", sub("x", "t"), ")")]),
      picture: [
        make("label", { for: TEXT_ID }, make("b", {}, "Text to learn from")),
        text,
        tooLong,
        controls(steps.element, rate.element, start, stop),
        ...report.elements,
        ...experiment.elements,
        heading("How it is trained"),
        paragraph(
          "Each step takes a batch of 32 windows of 8 characters from random places of the first nine tenths; then ",
          defined("AdamW"),
          " changes the table. The last tenth is never trained on: the loss there says what the model knows, " +
            "and not what ",
          "it remembers.",
        ),
        ...(canTrain()
          ? [
              paragraph(
                "A whole GPT is trained in the same way, only with more weights: ",
                pageLink("train", "train your own"),
                " in a minute.",
              ),
            ]
          : []),
      ],
      update({ writer, most_characters, example }) {
        experiment.showLecture(example[0]);
        if (!kept.events?.length) report.showExample(example, EXAMPLE);
        most = most_characters;
        checkLength();
        text.placeholder = `Leave this empty, and ${writer ?? "a model"} writes a text on the spot. Or paste your own.`;
      },
      leave: () => controller?.abort(),
    };
  },
};

/** The prediction, with the size of the alphabet at hand. @param {number} size @returns {Question} */
function questionFor(size) {
  return {
    ask:
      `An untrained bigram model predicts the next of ${size} characters. Is its loss above or below that of giving ` +
      `each of them the same probability, ln ${size} = ${fixed(Math.log(size), 2)}?`,
    options: ["Below", "Exactly that", "Above"],
    right: 2,
    why:
      "Its table is random, so it is sure of things for no reason, and being sure and wrong costs more than not " +
      "knowing.",
  };
}
