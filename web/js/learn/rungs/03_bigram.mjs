// Rung 3: a bigram model that learns while the visitor watches.

import { make } from "../../lib/dom.mjs";
import { fixed, number } from "../../lib/numbers.mjs";
import { countCharacters, visible } from "../../lib/words.mjs";
import { formula, row, sub } from "../../widgets/formula.mjs";
import { content } from "../content/03_bigram.mjs";
import { Drawing } from "../widgets/drawing.mjs";
import { askForLines } from "../server.mjs";
import { choice, slider, canTrain, controls, heading, pageLink, paragraph, code } from "../widgets/elements.mjs";
import { Report } from "./03_bigram_report.mjs";
import { smallButton } from "../../widgets/controls.mjs";
import { fillTable, makeTable } from "../../widgets/table.mjs";

/** @import { Lesson, Prediction, Rung } from "../rung.js" */
/** @import { Data } from "../data.js" */
/** @import { Stop } from "../widgets/steps.mjs" */

const STEPS = [200, 500, 1000, 2000, 5000, 10000];
const TEXT_ID = "hl-lesson-text";
const EXAMPLE =
  "Already trained: the experiment of Andrej Karpathy’s lecture, 10,000 steps on tiny Shakespeare at a learning rate " +
  "of 0.001, from its seed, 1337.";

/** @type {Rung<"untrained-bigram">} */
export const bigram = {
  ...content,
  key: "untrained-bigram",
  options: () => ({}),
  choices: () => ({ settings: { steps: 10_000, learning_rate: 0.001 }, text: "" }), // those of the example
  prediction: predictionFor(65),
  waitsForClick: true,
  own({ example }, { kept, sentence }) {
    const last = kept.events?.at(-1);
    const isTrained = last?.stage === "after" && kept.sentence === sentence;
    /** @type {import("./03_bigram_report.mjs").Rated[]} */
    const rated = (isTrained ? last : example[2]).sentence ?? [];
    const at = rated.findIndex(({ probability: p }) => p !== null && p > 0.02 && p < 0.9);
    if (at < 1) return null;
    const p = rated[at].probability ?? 1;
    return {
      kind: "number",
      ask:
        `In your sentence “${visible(rated[at].text)}” follows “${visible(rated[at - 1].text)}”, to which ` +
        `${isTrained ? "your" : "Karpathy’s"} table gives the probability ${fixed(p)}. How surprising is that, in ` +
        "nats?",
      right: -Math.log(p),
      tolerance: 0.006,
      mistakes: [
        { number: Math.log(p), reply: "Surprise is −ln p, which is not negative." },
        { number: -Math.log2(p), reply: "That is in bits: nats take the natural logarithm." },
        { number: -Math.log10(p), reply: "That is the logarithm to base 10: nats take the natural one." },
        { number: p, reply: "That is the probability, not its surprise." },
      ],
      hint: "Surprise is −ln p, the natural logarithm with a minus sign.",
      second: `e to the power of which number is ${fixed(p)}? Turn its sign.`,
      why: `It is −ln ${fixed(p)}. The loss is the mean of such numbers over a whole text.`,
    };
  },
  build: (lesson) => new BigramLesson(lesson),
};

/** @extends {Drawing<"untrained-bigram">} */
class BigramLesson extends Drawing {
  /** @param {Lesson} lesson */
  constructor(lesson) {
    super(lesson);
    this.kept = lesson.kept; // the text, the settings and the last training, while another rung is open
    this.settings = this.kept.settings;
    this.text = make("textarea", { id: TEXT_ID, rows: 2 });
    this.text.addEventListener("input", () => (this.kept.text = this.text.value));
    this.text.value = this.kept.text;
    this.steps = slider({
      label: "steps",
      values: STEPS,
      value: this.settings.steps,
      format: (value) => number(value),
      change: (value) => (this.settings.steps = value),
    });
    this.rate = choice({
      label: "learning rate",
      options: { 0.001: "0.001", 0.01: "0.01" },
      value: String(this.settings.learning_rate),
      change: (value) => (this.settings.learning_rate = Number(value)),
    });
    this.experiment = new TextExperiment();
    this.report = this.#makeReport();
    this.tooLong = make("p", { class: "hl-problem", role: "alert" });
    this.shorten = smallButton("");
    this.most = Infinity;
    this.shorten.addEventListener("click", () => {
      this.text.value = this.kept.text = [...this.text.value].slice(0, this.most).join("");
      this.#checkLength();
    });
    this.text.addEventListener("input", () => this.#checkLength());
    /** @type {AbortController | null} */
    this.controller = null;
    this.start = smallButton("Train it", () => this.#run(), { class: "hs-primary" });
    this.stop = smallButton("Stop", null, { disabled: true });
    this.stop.addEventListener("click", () => this.controller?.abort());
    this.report.replay();
    this.formula = formula(["loss", "=", "−", " mean of ln ", "p", row("(", sub("x", "t+1"), "|", sub("x", "t"), ")")]);
    this.parts = this.#makeParts();
  }

  #makeReport() {
    return new Report(this.lesson, this.text, {
      before: (event) => {
        this.experiment.show(event);
        this.lesson.rephrase(predictionFor(event.characters.length));
      },
      after: (event) => {
        this.experiment.end(event);
        this.lesson.renew();
      },
    });
  }

  /** Report a text that is too long for the server before it is sent. */
  #checkLength() {
    const length = countCharacters(this.text.value);
    const isTooLong = length > this.most;
    this.tooLong.replaceChildren();
    this.start.disabled = isTooLong;
    if (!isTooLong) return;
    this.shorten.textContent = `Use the first ${number(this.most)}`;
    this.tooLong.append(
      `The text has ${number(length)} characters; a bigram model learns from ${number(this.most)} at most. `,
      this.shorten,
    );
  }

  /** A training on a text, or on one that the model writes. @param {string} training_text */
  #request(training_text) {
    const { sentence, model } = this.lesson.about;
    return { ...this.settings, training_text, sentence, model };
  }

  async #run() {
    const { signal } = (this.controller = new AbortController());
    this.start.disabled = true;
    this.stop.disabled = false;
    const own = this.text.value === this.kept.written ? "" : this.text.value;
    Object.assign(this.kept, { events: [], steps: this.settings.steps, sentence: this.lesson.sentence });
    this.report.begin(own ? "Starting…" : "Waiting for the model that writes the text…");
    try {
      const body = this.#request(own);
      for await (const event of askForLines("bigram", body, signal)) {
        if (event.stage !== "writing") this.kept.events.push(event);
        this.report.show(event);
        this.lesson.renew();
      }
    } catch (error) {
      this.report.end(signal.aborted ? this.report.stopped : /** @type {Error} */ (error).message);
    }
    this.start.disabled = false;
    this.stop.disabled = true;
  }

  #makeParts() {
    return {
      table: this.report.elements.table,
      textLabel: make("label", { for: TEXT_ID }, make("b", {}, "Text to learn from")),
      text: this.text,
      tooLong: this.tooLong,
      steps: this.steps.element,
      rate: this.rate.element,
      start: this.start,
      stop: this.stop,
      learning: this.report.elements.learning,
      curve: this.report.elements.curve,
      experiment: this.experiment.elements,
      printed: code(PRINTED.sample),
      trainLink: canTrain()
        ? [
            paragraph(
              "A whole GPT is trained in the same way, with more weights: ",
              pageLink("train", "train your own"),
              ".",
            ),
          ]
        : [],
    };
  }

  /** @param {Data["untrained-bigram"]} found */
  update({ writer, most_characters, example }) {
    this.experiment.showLecture(/** @type {[TextAsData, object, Losses]} */ (example));
    if (!this.kept.events?.length) this.report.showExample(example, EXAMPLE);
    this.most = most_characters;
    this.#checkLength();
    this.text.placeholder = `Paste a text of your own, or leave this empty: ${writer ?? "a model"} will write one.`;
  }

  /** @returns {Stop[]} */
  play() {
    return this.report.stops;
  }

  notebook() {
    return this.#request(this.text.value);
  }

  leave() {
    this.controller?.abort();
  }
}

/** The prediction, for an alphabet of this size. @param {number} size @returns {Prediction} */
function predictionFor(size) {
  return {
    ask:
      `An untrained bigram model, with random numbers in its table, predicts the next of ${size} characters. Is its ` +
      `loss, its mean surprise, above or below ln ${size} = ${fixed(Math.log(size), 2)}, that of giving each of them ` +
      "the same probability?",
    options: ["Below", "Exactly that", "Above"],
    right: 2,
    why:
      "Its table is random, so it favours some characters for no reason, and a confident wrong guess costs more than " +
      "no preference.",
  };
}

// The first half of rung 3: a text as ids, split, and cut into batches; the lecture's numbers next to the visitor's.

/**
 * A text as the server describes it.
 * @typedef {object} TextAsData
 * @property {string[]} characters
 * @property {number} n
 * @property {number} n_train
 * @property {number} n_held_out
 * @property {string} beginning
 * @property {number[]} ids
 * @property {{ inputs: number[][], targets: number[][] }} batch
 * @property {number} uniform
 * @property {number} loss
 * @property {number | null} held_out
 */
/** @typedef {{ loss: number, held_out: number | null }} Losses of the trained table: on the training part, held out */

class TextExperiment {
  constructor() {
    /** @type {TextAsData | null} */
    this.own = null;
    /** @type {Losses | null} */
    this.trained = null;
    /** @type {TextAsData | null} */
    this.lecture = null;
    /** @type {Losses | null} measured here */
    this.lectureTrained = null;
    this.isOwn = false;
    this.table = makeTable({}, { class: "hl-compare", "aria-label": "Karpathy’s experiment and yours" });
    this.beginning = make("div");
    this.examples = make("div");
    this.batch = make("div", { class: "hl-scroll" });
    this.which = this.#makeWhich();
    this.#showTable();
    this.#showParts();
    this.elements = this.#makeElements();
  }

  #makeWhich() {
    return choice({
      label: "show",
      options: { lecture: "Karpathy’s text", own: "your text" },
      value: /** @type {"lecture" | "own"} */ ("lecture"),
      change: (key) => {
        this.isOwn = key === "own";
        this.#showParts();
      },
    });
  }

  #showTable() {
    const cell = (/** @type {number | null | undefined} */ value) => (value == null ? "–" : fixed(value));
    const whole = (/** @type {number | undefined} */ value) => (value === undefined ? "–" : number(value));
    /** @type {[string, string, string][]} */
    const rows = [
      ["characters", whole(this.lecture?.n), whole(this.own?.n)],
      ["alphabet", whole(this.lecture?.characters.length), whole(this.own?.characters.length)],
      ["for training, nine tenths", whole(this.lecture?.n_train), whole(this.own?.n_train)],
      ["held out, one tenth", whole(this.lecture?.n_held_out), whole(this.own?.n_held_out)],
      ["all characters equally likely: ln of the alphabet size", cell(this.lecture?.uniform), cell(this.own?.uniform)],
      ["untrained", `${fixed(PRINTED.untrained)} (printed, of one batch)`, cell(this.own?.loss)],
      ["trained, the last of 10,000 batches", `${fixed(PRINTED.trained, 3)} (printed)`, "–"],
      ["trained, on the training part", `${cell(this.lectureTrained?.loss)} (measured here)`, cell(this.trained?.loss)],
      [
        "trained, on the held-out tenth",
        `${cell(this.lectureTrained?.held_out)} (measured here)`,
        cell(this.trained?.held_out),
      ],
    ];
    fillTable(this.table, { titles: ["", "Karpathy", "your text"], rows });
  }

  #showParts() {
    this.which.show(this.isOwn ? "own" : "lecture");
    const shownText = (this.isOwn && this.own) || this.lecture;
    if (!shownText) return;
    const text = [...shownText.beginning].slice(0, 9); // a token is a code point
    const ids = shownText.ids.slice(0, 9);
    const { inputs, targets } = shownText.batch;
    this.beginning.replaceChildren(...describe(shownText));
    const items = ids.slice(0, -1).map((_, t) => {
      const input = make("code", {}, `[${ids.slice(0, t + 1).join(", ")}]`);
      const words = ` “${visible(text.slice(0, t + 1).join(""))}” → “${visible(text[t + 1])}”`;
      const target = make("code", {}, ids[t + 1]);
      return make("li", {}, "when the input is ", input, " the target is ", target, make("small", {}, words));
    });
    this.examples.replaceChildren(make("ol", { class: "hl-examples" }, ...items));
    const rows = inputs.flatMap((line, i) => [
      [`inputs ${i}`, ...line],
      [`targets ${i}`, ...targets[i]],
    ]);
    this.batch.replaceChildren(makeTable({ rows }, { class: "hl-window", "aria-label": "A batch" }));
  }

  #makeElements() {
    return [
      heading("The text as data"),
      paragraph(
        "Karpathy’s lecture does this with tiny Shakespeare; its figures are listed next to those of your text. ",
        "Losses of one batch scatter by about 0.1; means over a whole part of the text do not.",
      ),
      make("div", { class: "hl-scroll" }, this.table),
      controls(this.which.element),
      this.beginning,
      paragraph("A window of 8 characters holds 8 examples, one for each position:"),
      this.examples,
      paragraph(
        code("get_batch"),
        " takes 4 such windows of 8 from random places (seed 1337); the targets are shifted by one:",
      ),
      this.batch,
    ];
  }

  /** Set the lecture's text and losses. @param {[before: TextAsData, training: object, after: Losses]} recorded */
  showLecture([before, , after]) {
    this.lecture = before;
    this.lectureTrained = after;
    this.#showTable();
    this.#showParts();
  }

  /** Show the visitor's text before it is trained on. @param {TextAsData} text */
  show(text) {
    this.own = text;
    this.trained = null;
    this.isOwn = true;
    this.#showTable();
    this.#showParts();
  }

  /** @param {Losses} losses */
  end(losses) {
    this.trained = losses;
    this.#showTable();
  }
}

/** The beginning of a text, its alphabet, and its ids. @param {TextAsData} text */
const describe = ({ beginning, characters, ids, n }) => [
  make("h4", {}, `The first ${beginning.length} of its ${number(n)} characters`),
  make("pre", { class: "hl-wrote", tabindex: 0, "aria-label": "The beginning of the text" }, beginning),
  make("h4", {}, `Its ${characters.length} characters, sorted`),
  make("p", { class: "hl-ids" }, characters.map(visible).join(" ")),
  make("h4", {}, "As a tensor of ids"),
  make("p", { class: "hl-ids" }, `tensor([${ids.join(", ")}, …]), shape (${n},), dtype int64`),
];

// What the lecture prints. What is measured of its experiment here is sent by the server.
const PRINTED = {
  untrained: 4.8786,
  trained: 2.495,
  sample: "SKIcLT;AcELMoTbvZv C?nq-QE33:CJqkOKH-q;:la!oiywkHjgChzbQ?u!3bLIgwevmyFJGUGp\n" + "wnYWmnxKWWev-tDqXErVKLgJ",
};
