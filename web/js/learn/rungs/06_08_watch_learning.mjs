// Rungs 6 and 8: heads that learn in the browser while one watches.

import { isStill, make } from "../../lib/dom.mjs";
import { fixed, number } from "../../lib/numbers.mjs";
import { HeatTable } from "../../widgets/heat_table.mjs";
import {
  Heads,
  subjectExample,
  subjectTask,
  TEXT_LENGTH,
  twoJobsTask,
  weightOnOneWord,
  weightOnSubject,
  WORDS,
} from "../train_heads.mjs";
import { Arrows } from "../widgets/arrows.mjs";
import { bars, chart, SMALL } from "../widgets/chart.mjs";
import { rowOf } from "../widgets/elements.mjs";
import { smallButton } from "../../widgets/controls.mjs";

const STEPS = 150;
const twoDecimals = (/** @type {number} */ value) => fixed(value, 2);
const DURATION = 2500; // milliseconds

/**
 * Buttons that train from the start, and from another one.
 * @param {{ seed: number }} settings
 * @param {object} training
 * @param {(seed: number) => void} training.restart
 * @param {() => void} training.step
 * @param {() => void} training.draw
 */
function trainer(settings, { restart, step, draw }) {
  let done = 0;
  let frame = 0;
  const stop = () => cancelAnimationFrame(frame);
  function begin() {
    stop();
    done = 0;
    restart(settings.seed);
    draw();
  }
  function run() {
    begin();
    const start = performance.now();
    const next = () => {
      const due = isStill() ? STEPS : Math.ceil((STEPS * (performance.now() - start + 1)) / DURATION);
      for (; done < Math.min(due, STEPS); done += 1) step();
      draw();
      if (done < STEPS) frame = requestAnimationFrame(next);
    };
    next();
  }
  const train = smallButton(`Learn ${STEPS} steps`, run, { class: "hs-primary" });
  const another = smallButton("Another start");
  another.addEventListener("click", () => {
    settings.seed += 1;
    run();
  });
  return { buttons: [train, another], begin, stop, progress: () => `Seed ${settings.seed}, step ${done} of ${STEPS}` };
}

/**
 * @param {Record<string, number[]>} lines
 * @param {string} yName
 * @param {[below: number, above: number]} ends of the chart, which stay while the lines grow
 * @param {{ title?: string, levels?: Record<string, number> }} [options]
 */
const overSteps = (lines, yName, [below, above], { title, levels } = {}) =>
  chart({
    title,
    below,
    above,
    size: SMALL,
    label: `${title ?? yName}, step by step`,
    x: { from: 0, to: String(STEPS), count: STEPS + 1 },
    lines,
    levels,
    xName: "step",
    yName,
  });

const SENTENCES = [
  { words: ["the", "cat", "near", "the", "dogs", "sleeps"], subject: "cat" },
  { words: ["the", "dogs", "near", "the", "cat", "sleep"], subject: "dogs" },
];
const SHOWN_KEYS = ["cat", "dogs", "the", "near"]; // keys that are drawn as arrows
const [FEW, MANY] = [2, 256]; // numbers in a query
/** @type {Record<string, string>} */
const SCALES = { divided: "divided by √head_dim", plain: "not divided" };
const KINDS = Object.keys(SCALES);

/** A head that learns to find the subject of a verb, and its course so far. */
class SubjectRun {
  /** @type {number[]} lengths of the gradient, as powers of ten */
  gradients = [];

  /** @param {{ head_dim: number, isScaled?: boolean, seed: number }} settings */
  constructor(settings) {
    this.heads = new Heads(subjectTask(), settings);
    /** The mean weight on the subject before the first step and after each. */
    this.weights = [weightOnSubject(this.heads)];
    /** The mean of the largest weight of a word, before the first step. */
    this.largest = weightOnOneWord(this.heads);
  }

  step() {
    this.gradients.push(Math.log10(this.heads.step().gradient));
    this.weights.push(weightOnSubject(this.heads));
  }

  get found() {
    return fixed(this.weights.at(-1) ?? 0, 2);
  }

  /** The weights of a sentence as bars. @param {typeof SENTENCES[number]} sentence */
  bars({ words, subject }) {
    const [weights] = this.heads.weights(subjectExample(words, subject));
    const entries = weights.map((value, i) => ({ label: words[i], value }));
    return bars(`What “${words[words.length - 1]}” looks at`, entries, 1, { format: twoDecimals });
  }
}

/** @param {Record<string, number[]>} lines */
const foundOverSteps = (lines) =>
  overSteps(lines, "mean over all sentences", [0, 1], { title: "Weight on the subject" });

/**
 * Queries, keys and values learn to find the subject of a verb.
 * @param {{ seed: number }} settings the visitor's, which are kept
 */
export function findTheSubject(settings) {
  /** @type {SubjectRun} */
  let run;
  const status = make("p", { class: "hl-count", role: "status" });
  const arrows = new Arrows("Queries q of verbs and keys k of other words");
  const looks = make("div", { class: "hl-pair" });
  const weightChart = make("div", {});
  const training = trainer(settings, {
    restart: (seed) => (run = new SubjectRun({ head_dim: FEW, seed })),
    step: () => run.step(),
    draw,
  });

  function draw() {
    const [{ query, key }] = run.heads.projections();
    const of = (/** @type {Float64Array[]} */ vectors, /** @type {string} */ word) => [...vectors[WORDS.indexOf(word)]];
    arrows.show([
      ...SHOWN_KEYS.map((word) => ({ name: `k ${word}`, values: of(key, word), css: "hl-other" })),
      ...["sleep", "sleeps"].map((word) => ({ name: `q ${word}`, values: of(query, word) })),
    ]);
    arrows.focus("q sleeps");
    looks.replaceChildren(...SENTENCES.map((sentence) => run.bars(sentence)));
    weightChart.replaceChildren(foundOverSteps({ "one head": run.weights }));
    status.textContent = `${training.progress()}: mean weight on the subject ${run.found}.`;
  }

  training.begin();
  return {
    stop: training.stop,
    buttons: training.buttons,
    status,
    picture: [arrows.element, rowOf(looks, weightChart)],
    shares: looks,
  };
}

/**
 * Two heads with many numbers learn the same, one without dividing its scores.
 * @param {{ seed: number }} settings the visitor's, which are kept
 */
export function divideTheScores(settings) {
  /** @type {Record<string, SubjectRun>} */
  let runs;
  const status = make("p", { class: "hl-count", role: "status" });
  const largest = make("div", {});
  const weightChart = make("div", {});
  const gradientChart = make("div", {});
  const training = trainer(settings, {
    restart(seed) {
      const start = (/** @type {boolean} */ isScaled) => new SubjectRun({ head_dim: MANY, isScaled, seed });
      runs = { divided: start(true), plain: start(false) };
    },
    step() {
      for (const run of Object.values(runs)) run.step();
    },
    draw,
  });

  function draw() {
    const before = KINDS.map((kind) => ({ label: SCALES[kind], value: runs[kind].largest }));
    largest.replaceChildren(bars("Before the first step, one word gets", before, 1, { format: twoDecimals }));
    const lines = (/** @type {"weights" | "gradients"} */ name) =>
      Object.fromEntries(KINDS.map((kind) => [SCALES[kind], runs[kind][name]]));
    weightChart.replaceChildren(foundOverSteps(lines("weights")));
    gradientChart.replaceChildren(
      overSteps(lines("gradients"), "its length, as a power of ten", [-5, 0], {
        title: "Gradient of W query and W key",
      }),
    );
    const { divided, plain } = runs;
    status.textContent =
      `${training.progress()}: mean weight on the subject ${divided.found} with the division, ${plain.found} ` +
      `without${compareGradients(divided.gradients, plain.gradients)}.`;
  }

  training.begin();
  return {
    stop: training.stop,
    buttons: training.buttons,
    status,
    picture: [rowOf(largest, weightChart, gradientChart)],
  };
}

/**
 * How the last gradients compare; nothing before the first step.
 * @param {number[]} divided gradients as powers of ten
 * @param {number[]} plain
 */
function compareGradients(divided, plain) {
  const [one, other] = [divided.at(-1), plain.at(-1)];
  if (one === undefined || other === undefined) return "";
  const times = number(10 ** Math.abs(other - one), 1);
  return `, where the gradient is ${times} times ${other > one ? "larger" : "smaller"}`;
}

const FILL = ["sun", "sea", "sky", "day"]; // for a sentence with fewer different words
const N_WORDS = 4;
const WIDTH = 8; // numbers of the only head, or of both heads together
const RUNS = /** @type {const} */ ({ "one head": 1, "two heads": 2 });
const JOBS = ["the word before", "the first word"];
const SMALL_RATE = 3; // with the usual one, the loss of one head that mixes two words jumps
const ALL_EQUAL = Math.log(N_WORDS); // the loss if all words are equally likely

/**
 * One head and two learn the same two jobs on words of the visitor's sentence.
 * @param {{ seed: number }} settings the visitor's, which are kept
 */
export function twoJobs(settings) {
  /** @type {string[]} */
  let words = FILL;
  /** @type {Record<string, { heads: Heads, losses: number[][] }>} by step and job */
  let runs;
  const status = make("p", { class: "hl-count", role: "status" });
  const tables = ["The only head", "Head 0 of two", "Head 1 of two"].map(
    (name) => new HeatTable({ name, axes: "this word looks at that word", hole: "", digits: 2 }),
  );
  const [curves, lossBars] = [make("div", {}), make("div", {})];
  const training = trainer(settings, {
    restart(seed) {
      const task = twoJobsTask(N_WORDS, seed);
      runs = Object.fromEntries(
        Object.entries(RUNS).map(([name, n_head]) => [
          name,
          { heads: new Heads(task, { n_head, head_dim: WIDTH / n_head, rate: SMALL_RATE, seed }), losses: [] },
        ]),
      );
    },
    step() {
      for (const { heads, losses: all } of Object.values(runs)) all.push(heads.step().losses);
    },
    draw,
  });

  function draw() {
    const shown = Object.values(runs).flatMap(({ heads }) => {
      const text = heads.task.examples.slice(0, TEXT_LENGTH - 2); // the rows of one text
      const rows = text.map((example) => heads.weights(example));
      return heads.heads.map((_, h) => ({ text, rows: rows.map((row) => row[h]) }));
    });
    shown.forEach(({ text, rows }, i) => {
      const columns = text[text.length - 1].keys.map((id) => words[id % N_WORDS]);
      const values = rows.map((row) => columns.map((_, c) => row[c] ?? null));
      tables[i].show({ rows: columns.slice(2), columns, values });
    });
    const lines = Object.fromEntries(Object.entries(runs).map(([name, { losses }]) => [name, losses.map(mean)]));
    const guessing = { [`guessing one of ${N_WORDS} words, ln ${N_WORDS}:`]: ALL_EQUAL };
    curves.replaceChildren(overSteps(lines, "Mean loss of the two jobs, in nats", [0, 1.6], { levels: guessing }));
    const now = Object.entries(runs).map(
      ([name, { losses }]) => /** @type {const} */ ([name, losses.at(-1) ?? JOBS.map(() => ALL_EQUAL)]),
    );
    const each = now.flatMap(([name, losses]) =>
      losses.map((value, job) => ({ label: `${name}: ${JOBS[job]}`, value })),
    );
    lossBars.replaceChildren(bars("Loss of each job, in nats", each, ALL_EQUAL, { format: twoDecimals }));
    const said = now.map(([name, losses]) => `${name} ${fixed(mean(losses), 2)}`);
    status.textContent = `${training.progress()}: mean loss ${said.join(", ")}.`;
  }

  training.begin();
  return {
    stop: training.stop,
    /** Use the words of a sentence. @param {string[]} sentence */
    use(sentence) {
      words = [...new Set([...sentence, ...FILL])].slice(0, N_WORDS);
      draw();
    },
    buttons: training.buttons,
    status,
    picture: [rowOf(...tables.map((table) => table.element)), rowOf(curves, lossBars)],
    secondHead: tables[2].element,
  };
}

/** @param {number[]} values */
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
