// A bigram training as the server reports it: the losses, and the table at each recorded step, which can be replayed.

import { make } from "../../lib/dom.mjs";
import { counted, exact, fixed, number } from "../../lib/numbers.mjs";
import { countCharacters, visible } from "../../lib/words.mjs";
import { Arithmetic, exponentialShare, named, result } from "../../widgets/arithmetic.mjs";
import { chart } from "../widgets/chart.mjs";
import { Chips, slider, controls, heading, paragraph, rowOf } from "../widgets/elements.mjs";

/** @import { Lesson } from "../rung.js" */
/** @import { Stop } from "../widgets/steps.mjs" */

/**
 * The model at one step.
 * @typedef {object} Snapshot
 * @property {number} step
 * @property {number} loss
 * @property {number | null} held_out
 * @property {number[][]} logits of the most frequent characters after each other
 * @property {number[]} largest logit of each row
 * @property {number[]} sums of each row's exponentials
 * @property {number[][]} follows
 * @property {string} wrote
 */
/**
 * The state of a training.
 * @typedef {object} Training
 * @property {number[]} points losses so far
 * @property {(number | null)[]} held on the held-out tenth
 * @property {number} every steps between two of them
 * @property {number} steps in all
 * @property {number} loss before the training
 * @property {number} uniform loss of giving all characters the same probability
 * @property {number} floor the lowest possible loss
 * @property {string[]} characters of the text
 * @property {string[]} frequent the most frequent of them
 * @property {Snapshot[]} snapshots
 */
/** @typedef {{ text: string, known: boolean, probability: number | null }} Rated a character of the sentence */

const SUBTRACTED =
  "The row’s largest logit is subtracted first: the division cancels it, and exp of the rest cannot overflow.";

/** The probability that a row leaves for the characters without a column. @param {number[]} row */
const shareOfOthers = (row) => Math.max(0, 1 - sumOf(row));

/** @type {Training} */
const NOTHING = {
  points: [],
  held: [],
  every: 1,
  steps: 1,
  loss: 0,
  uniform: 0,
  floor: 0,
  characters: [],
  frequent: [],
  snapshots: [],
};

export class Report {
  #replaying = false;
  #training = NOTHING;
  /** @type {Snapshot | null} the one that is shown */
  #shown = null;
  /** @type {Rated[]} the sentence as the trained table rates it */
  #rated = [];

  /**
   * @param {Lesson} lesson
   * @param {HTMLTextAreaElement} text
   * @param {{ before: (event: any) => void, after: (event: any) => void }} listeners
   */
  constructor(lesson, text, listeners) {
    this.lesson = lesson;
    this.text = text;
    this.listeners = listeners;
    this.bar = make("progress", { max: 1, value: 0, "aria-label": "Training" });
    this.status = make("p", { class: "hl-count", role: "status" }, "Not trained yet.");
    this.curve = make("div");
    this.memorised = make("p", { hidden: true }, MEMORISED);
    this.before = make("pre", { class: "hl-wrote", tabindex: 0, "aria-label": "Its text before training" });
    this.after = make("pre", { class: "hl-wrote", tabindex: 0, "aria-label": "Its text after training" });
    this.afterTitle = make("h4", {}, "It writes, trained");
    this.samples = make("div", { hidden: true }, make("h4", {}, "It writes, untrained"), this.before);
    this.samples.append(this.afterTitle, this.after);
    this.scrubber = slider({
      label: "the table after step",
      min: 0,
      max: 0,
      value: 0,
      format: (i) => number(this.#training.snapshots[i]?.step ?? 0),
      change: (i) => {
        this.#look(i);
        lesson.renew();
      },
    });
    this.scrubbed = make("p", { class: "hl-count", role: "status" });
    this.arithmetic = new Arithmetic();
    this.follows = this.arithmetic.table({
      name: "Which character follows which",
      axes: "the probability of the column’s character after the row’s; each row is a softmax of logits",
      digits: 2,
      explain: (r, c) => this.#explain(r, c),
    });
    this.sentence = new Chips();
    this.table = make("div", { hidden: true });
    this.table.append(heading("The table, and your sentence"), controls(this.scrubber.element), this.scrubbed);
    this.table.append(rowOf(this.follows.element), make("div", {}, this.arithmetic.element));
    const learning = [this.bar, this.status, rowOf(this.curve, this.samples), this.memorised];
    this.sentence.element.hidden = true;
    this.elements = { table: [this.table, this.sentence.element], learning, curve: this.curve };
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

  /** Show the last training again. */
  replay() {
    const { events } = this.lesson.kept;
    if (!events?.length) return;
    this.#showAll(events);
    if (["before", "training"].includes(events.at(-1).stage)) this.status.textContent = this.stopped;
  }

  /** Show a training that is not the visitor's. @param {any[]} events @param {string} status */
  showExample(events, status) {
    const { listeners } = this;
    this.listeners = { before() {}, after() {} };
    this.#showAll(events);
    this.listeners = listeners;
    this.status.textContent = status;
  }

  /** @param {any[]} events */
  #showAll(events) {
    this.#replaying = true;
    for (const event of events) this.show(event);
    this.#replaying = false;
    if (this.#training.points.length) this.#draw();
  }

  /** @param {{ model: string, text: string }} event */
  #showWriting({ model, text }) {
    const { kept } = this.lesson;
    this.status.textContent = `${model} is writing the text: ${counted(countCharacters(text), "character")}…`;
    this.text.value = kept.text = kept.written = text; // `written` distinguishes it from the visitor's own text
    this.text.scrollTop = this.text.scrollHeight;
  }

  /** @param {Training & { wrote: string }} event */
  #showBefore(event) {
    this.#training = { ...event, points: [], held: [], every: 1, steps: this.lesson.kept.steps ?? 1 };
    this.#training.snapshots = [...event.snapshots];
    this.before.textContent = event.wrote;
    this.samples.hidden = this.table.hidden = false;
    this.sentence.element.hidden = true;
    this.#rated = [];
    this.after.textContent = "…";
    this.#look(0);
    this.listeners.before(event);
  }

  /**
   * @param {object} event
   * @param {number} event.step
   * @param {number} event.steps
   * @param {number} event.every
   * @param {number[]} event.points
   * @param {number[]} event.held_out
   * @param {Snapshot[]} event.snapshots
   */
  #showTraining({ step, steps, every, points, held_out, snapshots }) {
    const training = this.#training;
    training.points.push(...points);
    training.held.push(...held_out);
    training.snapshots.push(...snapshots);
    Object.assign(training, { every, steps });
    this.bar.value = step / steps;
    const loss = fixed(training.points.at(-1) ?? training.loss);
    const held = training.held.at(-1);
    const rest = held == null ? "" : `, ${fixed(held)} on the held-out tenth`;
    const progress = `Step ${number(step)} of ${number(steps)}`;
    this.status.textContent = `${progress}: the loss is ${loss}${rest}; untrained it was ${fixed(training.loss)}.`;
    if (this.#replaying) return;
    this.#draw();
    if (snapshots.length) this.#look(training.snapshots.length - 1);
  }

  /** @param {any} event */
  #showAfter(event) {
    const { wrote, loss, held_out, sentence, n_sentence } = event;
    const { characters, uniform, floor, loss: untrained } = this.#training;
    this.after.textContent = wrote;
    const held = held_out === null ? "" : ` On the held-out tenth it is ${fixed(held_out)}.`;
    this.status.textContent =
      `Done. Loss on the training part: ${fixed(untrained)} untrained, ${fixed(loss)} now.${held} Giving all ` +
      `${characters.length} characters the same probability costs ${fixed(uniform)}, and no bigram model can get ` +
      `below ${fixed(floor)} on its training part.`;
    this.#look(this.#training.snapshots.length - 1);
    this.#showSentence(sentence, n_sentence);
    this.sentence.element.hidden = false;
    this.listeners.after(event);
  }

  /** Show the table of snapshot `i`. @param {number} i */
  #look(i) {
    const { snapshots, frequent } = this.#training;
    const snapshot = snapshots[i];
    this.#shown = snapshot;
    this.scrubber.update(i, snapshots.length - 1);
    const { step, loss, held_out, follows, wrote } = snapshot;
    const held = held_out === null ? "" : `, ${fixed(held_out)} on the held-out tenth`;
    this.scrubbed.textContent = `After step ${number(step)}: the loss is ${fixed(loss)} on the training part${held}.`;
    this.afterTitle.textContent = `It writes, after ${counted(step, "step")}`;
    this.after.textContent = wrote;
    const names = frequent.map(visible);
    const hasOthers = frequent.length < this.#training.characters.length;
    this.follows.show({
      rows: names,
      columns: hasOthers ? [...names, "all others"] : names,
      values: hasOthers ? follows.map((row) => [...row, shareOfOthers(row)]) : follows,
    });
    const first = Math.max(
      0,
      frequent.findIndex((text) => text.trim()),
    );
    this.arithmetic.update(this.follows, [first, Math.min(first + 1, frequent.length - 1)]);
  }

  /** @param {number} r @param {number} c */
  #explain(r, c) {
    const { frequent } = this.#training;
    const { logits, largest, sums, follows } = /** @type {Snapshot} */ (this.#shown);
    const before = named(visible(frequent[r]));
    if (c === frequent.length) {
      const others = shareOfOthers(follows[r]);
      return [
        paragraph("Any other character after ", before, ": 1 minus the probabilities of all columns to the left."),
        paragraph(`1 − ${fixed(1 - others)} `, result(fixed(others))),
      ];
    }
    const exponential = Math.exp(logits[r][c] - largest[r]);
    const values = [fixed(exponential), fixed(sums[r]), exact(follows[r][c])];
    return [
      paragraph(
        named(visible(frequent[c])),
        " after ",
        before,
        `: the model holds the logit ${fixed(logits[r][c])}. Softmax over its row:`,
      ),
      exponentialShare(`${fixed(logits[r][c])} − ${fixed(largest[r])}`, values),
      make("p", { class: "hl-hint" }, SUBTRACTED),
    ];
  }

  /** @param {Rated[]} tokens @param {number} n */
  #showSentence(tokens, n) {
    const { kept, sentence } = this.lesson;
    const isAnother = (kept.sentence ?? sentence) !== sentence;
    this.#rated = isAnother ? [] : tokens;
    if (isAnother) this.sentence.show([], 0, "Your sentence has changed: train again to see how the model rates it.");
    else this.sentence.show(ratedChips(tokens, this.arithmetic), n, ratedSummary(tokens, this.#training.floor));
  }

  /** The way of the likeliest pair of the sentence that the trained table shows. @returns {Stop[]} */
  get stops() {
    const { frequent, snapshots } = this.#training;
    const places = this.#rated.map(({ text }) => (text.trim() ? frequent.indexOf(text) : -1));
    const pairs = places.flatMap((place, i) => (i && place >= 0 && places[i - 1] >= 0 ? [i] : []));
    if (!pairs.length || this.#shown !== snapshots.at(-1)) return [];
    const chance = (/** @type {number} */ i) => this.#rated[i].probability ?? 0;
    const at = pairs.reduce((best, i) => (chance(i) > chance(best) ? i : best));
    const [before, after] = [places[at - 1], places[at]];
    const [from, to] = [before, after].map((place) => visible(frequent[place]));
    const p = chance(at);
    const chip = this.sentence.list.children[at];
    return [
      { at: chip.children[0], words: `“${to}” follows “${from}” in your sentence. Does the table expect it?` },
      { at: [this.follows, before, after], words: `Row “${from}”, column “${to}”: its probability is ${exact(p)}.` },
      {
        at: chip.children[1],
        value: fixed(-Math.log(p), 2),
        words: `−ln ${exact(p)}: the less probable, the more surprising.`,
      },
      { at: this.sentence.summary, value: fixed(meanOf(natsOf(this.#rated))), words: "The mean surprise is the loss." },
    ];
  }

  #draw() {
    const { points, held, every, uniform, floor, steps } = this.#training;
    const to = number(steps);
    const known = held.filter((value) => value !== null);
    const training = `training loss of ${counted(every, "batch", "batches")} at a time: it may dip below the floor`;
    this.memorised.hidden = !isMemorising(points, known);
    this.curve.replaceChildren(
      chart({
        label: `Loss over ${to} steps`,
        x: { from: 0, to, count: Math.ceil(steps / every) },
        lines: { [training]: points, ...(known.length ? { "held-out loss": known } : {}) },
        levels: { "same probability for all characters": uniform, "counted pairs, the training floor": floor },
        xName: "step",
        yName: "loss in nats",
      }),
    );
  }
}

// The visitor's sentence, rated by a bigram model: the surprise of each character.

/** @param {Rated[]} tokens */
const natsOf = (tokens) => tokens.flatMap(({ probability: p }) => (p === null ? [] : [-Math.log(p)]));

/** @param {number[]} values */
const sumOf = (values) => values.reduce((total, value) => total + value, 0);

/** @param {number[]} values */
const meanOf = (values) => sumOf(values) / values.length;

/**
 * @param {Rated[]} tokens
 * @param {Arithmetic} arithmetic shows how a number is computed
 */
const ratedChips = (tokens, arithmetic) =>
  tokens.map(({ text, known, probability: p }, i) => {
    if (p === null) return { text, known, below: "–" };
    const pair = [named(visible(text)), " after ", named(visible(tokens[i - 1].text))];
    const open = () =>
      arithmetic.open(
        paragraph(...pair, `: its probability in the table is ${exact(p)}. Its surprise:`),
        paragraph(`−ln ${exact(p)} `, result(fixed(-Math.log(p)))),
      );
    return { text, known, below: `${exact(p)} · ${fixed(-Math.log(p), 2)}`, open };
  });

/** @param {Rated[]} tokens @param {number} floor */
function ratedSummary(tokens, floor) {
  const nats = natsOf(tokens);
  const mean = meanOf(nats);
  const loss = nats.length
    ? ` Their mean, ${fixed(mean * nats.length)} / ${nats.length} = ${fixed(mean)}, is the loss on your sentence.`
    : "";
  const below = mean < floor ? ` The floor of part 2, ${fixed(floor)}, holds for the training part.` : "";
  const outlined = tokens.every(({ known }) => known) ? "" : " Outlined characters are not in that text.";
  const what = "Your sentence: p of each character after the one before it, and the surprises −ln p.";
  return `${what}${loss}${below}${outlined}`;
}

// Whether a table memorises its text.

const MEMORISED =
  "The training loss falls while the held-out loss rises: the text is too short. The table memorises its pairs of " +
  "characters, but the held-out tenth has other pairs.";
const CLEAR_DIFFERENCE = 0.05; // nats

/**
 * Whether the model still gets better on its training text and worse on the held-out text.
 * @param {number[]} training losses
 * @param {number[]} held losses on the held-out tenth
 */
export function isMemorising(training, held) {
  const [last, heldLast] = [training.at(-1), held.at(-1)];
  if (last === undefined || heldLast === undefined) return false;
  const best = held.reduce((a, b) => Math.min(a, b));
  const then = training[held.indexOf(best)];
  return heldLast > best + CLEAR_DIFFERENCE && last < then;
}
