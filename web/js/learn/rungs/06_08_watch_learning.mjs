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
  weightOnSubject,
  WORDS,
} from "../train_heads.mjs";
import { Arrows } from "../widgets/arrows.mjs";
import { bars, chart, SMALL } from "../widgets/chart.mjs";
import { choice, controls, defined, heading, paragraph, rowOf } from "../widgets/elements.mjs";

const STEPS = 150;
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
  const train = make("button", { type: "button", class: "hs-small hl-primary", onclick: run }, `Learn ${STEPS} steps`);
  const another = make("button", { type: "button", class: "hs-small" }, "Another start");
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
 * @param {Record<string, number>} [levels]
 */
const overSteps = (lines, yName, [below, above], levels = {}) =>
  chart({
    below,
    above,
    size: SMALL,
    label: `${yName}, step by step`,
    x: { from: 0, to: String(STEPS), count: STEPS + 1 },
    lines,
    levels,
    xName: "step",
    yName,
  });

const SENTENCES = [
  { words: ["the", "cat", "near", "the", "dogs", "sleeps"], subject: "cat" },
  { words: ["the", "cat", "near", "the", "dogs", "sleep"], subject: "dogs" },
];
const DIMS = /** @type {Record<string, string>} */ ({ 2: "2", 256: "256" });
const SHOWN_KEYS = ["cat", "dogs", "the"]; // keys that are drawn as arrows
/** @type {Record<string, string>} */
const SCALES = { divided: "divided by √head_dim", plain: "not divided" };
const KINDS = Object.keys(SCALES);

/**
 * Queries, keys and values learn to find the subject of a verb.
 * @param {{ head_dim: number, shown: string, seed: number }} settings the visitor's, which are kept
 */
export function findTheSubject(settings) {
  /** @type {Record<string, { heads: Heads, weights: number[], gradients: number[] }>} */
  let runs;
  const status = make("p", { class: "hl-count", role: "status" });
  const arrows = new Arrows("The verbs’ queries and the nouns’ keys", "thick: the query of “sleeps”");
  const noArrows = make("p", { class: "hl-hint" }, "256 numbers cannot be drawn as arrows.");
  const looks = make("div", {});
  const weightChart = make("div", {});
  const gradientChart = make("div", {});
  const training = trainer(settings, {
    restart(seed) {
      const task = subjectTask();
      const { head_dim } = settings;
      const start = (/** @type {boolean} */ isScaled) => {
        const heads = new Heads(task, { head_dim, isScaled, seed });
        return { heads, weights: [weightOnSubject(heads)], gradients: [] };
      };
      runs = { divided: start(true), plain: start(false) };
    },
    step() {
      for (const { heads, weights, gradients } of Object.values(runs)) {
        gradients.push(Math.log10(heads.step().gradient));
        weights.push(weightOnSubject(heads));
      }
    },
    draw,
  });

  function draw() {
    const { heads } = runs[settings.shown];
    const [{ query, key }] = heads.projections();
    const of = (/** @type {Float64Array[]} */ vectors, /** @type {string} */ word) => [...vectors[WORDS.indexOf(word)]];
    arrows.element.hidden = settings.head_dim !== 2;
    noArrows.hidden = !arrows.element.hidden;
    if (!arrows.element.hidden) {
      arrows.show([
        ...SHOWN_KEYS.map((word) => ({ name: `k ${word}`, values: of(key, word), css: "hl-other" })),
        ...["sleep", "sleeps"].map((word) => ({ name: `q ${word}`, values: of(query, word) })),
      ]);
      arrows.focus("q sleeps");
    }
    looks.replaceChildren(
      ...SENTENCES.map(({ words, subject }) => {
        const [weights] = heads.weights(subjectExample(words, subject));
        const entries = weights.map((value, i) => ({ label: words[i], value }));
        return bars(`What “${words[words.length - 1]}” looks at`, entries, 1);
      }),
    );
    const lines = (/** @type {"weights" | "gradients"} */ name) =>
      Object.fromEntries(KINDS.map((kind) => [SCALES[kind], runs[kind][name]]));
    weightChart.replaceChildren(overSteps(lines("weights"), "mean weight on the subject", [0, 1]));
    gradientChart.replaceChildren(
      overSteps(lines("gradients"), "gradient of W query and W key (power of ten)", [-5, 0]),
    );
    const said = KINDS.map((kind) => `${fixed(runs[kind].weights.at(-1) ?? 0, 2)} ${SCALES[kind]}`);
    status.textContent =
      `${training.progress()}: the subject gets, on average, a weight of ${said.join(", ")}.` +
      `${compareGradients(runs.divided.gradients, runs.plain.gradients)}`;
  }

  const size = choice({
    label: "numbers in a query",
    options: DIMS,
    value: String(settings.head_dim),
    change(key) {
      settings.head_dim = Number(key);
      training.begin();
    },
  });
  const scale = choice({
    label: "show the head whose scores are",
    options: SCALES,
    value: settings.shown,
    change(key) {
      settings.shown = key;
      draw();
    },
  });
  training.begin();
  return {
    stop: training.stop,
    elements: [
      heading("See it learn: a verb finds its subject"),
      paragraph(
        "In “the cat near the dogs sleeps” the verb has to output its subject, the cat; with “sleep”, the dogs. Each ",
        "step changes the three matrices a little, against the ",
        defined("gradient"),
        " of the loss, the surprise at the right noun. Try 256 numbers without the division: the gradient soon all ",
        "but vanishes.",
      ),
      controls(...training.buttons, size.element, scale.element),
      status,
      rowOf(arrows.element, noArrows, looks, make("div", {}, weightChart, gradientChart)),
    ],
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
  return ` Without the division the gradient is ${times} times ${other > one ? "larger" : "smaller"}.`;
}

const FILL = ["sun", "sea", "sky", "day"]; // for a sentence with fewer different words
const N_WORDS = 4;
const WIDTH = 8; // numbers of the only head, or of both heads together
const RUNS = /** @type {const} */ ({ "one head": 1, "two heads": 2 });

/**
 * One head and two learn the same two jobs on words of the visitor's sentence.
 * @param {{ seed: number }} settings the visitor's, which are kept
 */
export function twoJobs(settings) {
  /** @type {string[]} */
  let words = FILL;
  /** @type {Record<string, { heads: Heads, losses: number[] }>} */
  let runs;
  const status = make("p", { class: "hl-count", role: "status" });
  const tables = ["The only head", "Head 0 of two", "Head 1 of two"].map(
    (name) => new HeatTable({ name, axes: "this word looks at that word", hole: "", digits: 2 }),
  );
  const losses = make("div", {});
  const training = trainer(settings, {
    restart(seed) {
      const task = twoJobsTask(N_WORDS, seed);
      runs = Object.fromEntries(
        Object.entries(RUNS).map(([name, n_head]) => [
          name,
          { heads: new Heads(task, { n_head, head_dim: WIDTH / n_head, seed }), losses: [] },
        ]),
      );
    },
    step() {
      for (const { heads, losses: all } of Object.values(runs)) all.push(heads.step().loss);
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
    const lines = Object.fromEntries(Object.entries(runs).map(([name, { losses: all }]) => [name, all]));
    losses.replaceChildren(
      overSteps(lines, "mean loss of the two jobs, in nats", [0, 1.6], { guessing: Math.log(N_WORDS) }),
    );
    const said = Object.entries(runs).map(
      ([name, { losses: all }]) => `${name} ${number(all.at(-1) ?? Math.log(N_WORDS), 2)}`,
    );
    status.textContent =
      `${training.progress()}: mean loss of the two jobs: ${said.join(", ")}. Guessing one of ${N_WORDS} words costs ` +
      `ln ${N_WORDS} = ${number(Math.log(N_WORDS), 2)}.`;
  }

  training.begin();
  return {
    stop: training.stop,
    /** Use the words of a sentence. @param {string[]} sentence */
    use(sentence) {
      words = [...new Set([...sentence, ...FILL])].slice(0, N_WORDS);
      draw();
    },
    elements: [
      heading("See them learn: two jobs for one head, and for two"),
      paragraph(
        "In random texts of your words, each word from the third on has to name the one before it and the first. Two ",
        "heads of 4 numbers share the work; one head of 8 has one row of weights for both: it mixes the two words, or ",
        "gives up one of them.",
      ),
      controls(...training.buttons),
      status,
      rowOf(tables[0].element, losses),
      rowOf(tables[1].element, tables[2].element),
    ],
  };
}
