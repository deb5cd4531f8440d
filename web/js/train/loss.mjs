// The chance that the model gives to the right character of the training text and of the held-out text, compared with
// guessing, a bigram model and the run before.

import { thousands } from "../lib/numbers.mjs";
import { make } from "../lib/dom.mjs";
import { legend, TimeChart } from "./time_chart.mjs";
import { aboutLosses, aboutRise, chance, clock, keptLosses, resultInNats, weights } from "./words.mjs";
import { smallButton } from "../widgets/controls.mjs";
import { fillTable, makeCell, makeTable } from "../widgets/table.mjs";

/** @import { LossEvent, StartEvent, TrainEvent } from "./types.js" */

const HELD_OUT = { name: "held-out text, which it never reads", css: "ht-held-out" };
const MIN_RISE = 0.05; // nats above its lowest value from which the held-out loss is said to rise
const TRAINING = { name: "text it learns from", css: "ht-training" };
const EARLIER = { name: "held-out text, the run before", css: "ht-earlier" };
const ABOVE =
  "The held-out curve may lie above the other: it is measured with the average of the latest weights, which mostly " +
  "does better than the weights of a single step.";
const KEPT_AS = "headscope-earlier-training"; // in the browser's storage, so that a reload keeps it

/**
 * A training of which the losses are kept to compare the next one with.
 * @typedef {{ name: string, start: StartEvent, losses: LossEvent[] }} Run
 */

export class LossPanel {
  #name = "";
  /** @type {Run | null} */
  #earlier = readRun();
  /** @type {Run | null} the one shown before the last reset, which may have been another or the same */
  #before = null;
  /** @type {LossEvent[]} */
  #losses = [];
  /** @type {StartEvent | null} */
  #start = null;
  #hasEnded = false;

  constructor() {
    this.chart = new TimeChart("Chance of the right character over the training", (seconds) => this.#point(seconds));
    this.now = make("p", { class: "ht-now" });
    this.table = makeTable({});
    this.more = make("details", {}, make("summary", {}, "Numbers, in nats"));
    this.more.addEventListener("toggle", () => this.#fillTable());
    this.hint = make("p", { class: "hs-hint" });
    this.more.append(this.hint, make("div", { class: "ht-table" }, this.table));
    this.rise = make("p", { class: "ht-rise", role: "status", hidden: true });
    this.compared = make("p", { class: "ht-compared", hidden: true });
    this.legend = make("div");
    const top = make("div", { class: "hs-top" }, make("h2", {}, "Chance it gives the right next character"), this.now);
    this.element = make("section", { class: "hs-panel ht-loss", "aria-label": "Loss" }, top, this.chart.element);
    this.element.append(this.legend, make("p", { class: "hs-hint" }, ABOVE), this.compared, this.rise, this.more);
    new ResizeObserver(() => this.#draw()).observe(this.chart.element);
  }

  /** The losses of the weights that are kept. */
  get kept() {
    return keptLosses(this.#losses);
  }

  get isEmpty() {
    return !this.#losses.length;
  }

  reset() {
    if (this.#start && this.#losses.length) {
      this.#before = { name: this.#name, start: this.#start, losses: this.#losses };
    }
    this.#losses = [];
    this.#start = null;
    this.#hasEnded = false;
    this.hint.textContent = "";
    this.rise.hidden = true;
    this.now.textContent = "";
    this.chart.element.replaceChildren();
    this.#compare();
    this.table.replaceChildren();
  }

  /** @param {TrainEvent} event */
  receive(event) {
    if (event.kind === "state") {
      this.#name = event.name;
      if (this.#before && this.#before.name !== event.name) this.#compareWith(this.#before);
      return;
    }
    if (event.kind === "start") {
      this.#start = event;
      this.hint.textContent = aboutLosses(event);
    } else if (event.kind === "loss") this.#losses.push(event);
    else if (event.kind === "end") {
      this.#hasEnded = true;
      if (this.#start) this.hint.textContent += ` ${resultInNats(event, this.#start)}`;
    } else return;
    this.#explain();
    this.#draw();
    this.#point(null);
    this.#fillTable();
  }

  /** Keep the curve of a run, or of none. @param {Run | null} run */
  #compareWith(run) {
    this.#earlier = run;
    this.#before = null;
    keepRun(run);
    this.#point(null);
    this.#fillTable();
    this.#draw();
  }

  /** The run before this one, unless it is the same. */
  get #other() {
    return this.#earlier?.name === this.#name ? null : this.#earlier;
  }

  /** Say at which loss both runs were after the same time. */
  #compare() {
    const last = this.#losses.at(-1);
    const other = this.#other;
    this.compared.hidden = !other || !last;
    this.legend.replaceChildren(legend([HELD_OUT, TRAINING, ...(other ? [EARLIER] : [])]));
    if (!other || !last || !this.#start) return;
    const { name, start, losses } = other;
    const then = nearest(losses, last.seconds);
    const isOther = start.uniform !== this.#start.uniform || start.bigram !== this.#start.bigram;
    const forget = smallButton("Remove its curve", () => this.#compareWith(null));
    this.compared.replaceChildren(
      `After ${clock(then.seconds)} and ${thousands(then.step)} steps, the run before (${name}, `,
      `${weights(start.n_parameters)}) was at `,
      make("b", {}, chance(then.validation_loss)),
      `; it ended at ${chance(losses[losses.length - 1].validation_loss)}. This one has taken `,
      `${thousands(last.step)} steps. `,
      isOther ? "It learned from another text, so the two curves compare only roughly. " : "",
      forget,
    );
  }

  #draw() {
    this.#compare();
    if (!this.#start || !this.#losses.length) return;
    const { uniform, bigram, seconds } = this.#start;
    const earlier = this.#other?.losses ?? [];
    const lines = [
      ...(earlier.length ? [{ ...EARLIER, points: pointsOf(earlier, "validation_loss") }] : []),
      { ...TRAINING, points: pointsOf(this.#losses, "train_loss") },
      { ...HELD_OUT, points: pointsOf(this.#losses, "validation_loss") },
    ];
    const levels = [
      { name: `guessing ${chance(uniform)}`, css: "ht-uniform", value: Math.exp(-uniform) },
      { name: `letter pairs ${chance(bigram)}`, css: "ht-bigram", value: Math.exp(-bigram) },
    ];
    const last = Math.max(seconds, ...[this.#losses, earlier].map((losses) => losses.at(-1)?.seconds ?? 0));
    const highest = Math.max(...lines.flatMap(({ points }) => points.map(([, value]) => value)));
    const high = highest < 0.45 ? 0.5 : 1;
    /** @type {import("./time_chart.mjs").Range} */
    const range = { last, low: 0, high, say: ({ value }) => `${Math.round(100 * value)}%` };
    const lowest = this.#risenFrom;
    const spots = lowest
      ? [{ name: "highest, kept", css: "ht-held-out", at: pointsOf([lowest], "validation_loss")[0] }]
      : [];
    this.chart.draw(lines, levels, range, spots);
    this.chart.element.setAttribute("aria-label", `Chance of the right character: ${describe(this.#losses)}`);
  }

  /** The lowest held-out loss, if it has clearly risen since; else null. */
  get #risenFrom() {
    const last = this.#losses.at(-1);
    if (!last) return null;
    const lowest = keptLosses(this.#losses);
    return last.validation_loss > lowest.validation_loss + MIN_RISE ? lowest : null;
  }

  /** Explain a held-out loss that has risen. */
  #explain() {
    const lowest = this.#risenFrom;
    this.rise.hidden = !lowest;
    if (lowest) this.rise.textContent = aboutRise(lowest, this.#losses[this.#losses.length - 1]);
  }

  /** Show the losses at a step, without a mark at the newest. @param {number} step */
  showStep(step) {
    const row = this.#losses.reduce(
      (best, other) => (Math.abs(other.step - step) < Math.abs(best.step - step) ? other : best),
      this.#losses[0],
    );
    this.#point(row && row !== this.#losses.at(-1) ? row.seconds : null);
  }

  /** Show the losses at a time; for null the newest or, at the end, the kept ones. @param {number | null} seconds */
  #point(seconds) {
    this.chart.markAt(null);
    const now = this.#hasEnded ? this.kept : this.#losses.at(-1);
    const row = seconds === null ? now : nearest(this.#losses, seconds);
    if (!row) return;
    if (seconds !== null) this.chart.markAt(row.seconds);
    const training = row.train_loss === null ? "" : ` · training ${chance(row.train_loss)}`;
    const other = this.#other && nearest(this.#other.losses, row.seconds).validation_loss;
    const before = other ? ` · the run before ${chance(other)}` : "";
    const rest = ` on held-out text${training} · step ${thousands(row.step)}${before}`;
    this.now.replaceChildren(make("b", {}, chance(row.validation_loss)), rest);
  }

  #fillTable() {
    if (!this.more.open) return;
    const other = this.#other;
    const names = ["step", "time", "held-out text", "training text", ...(other ? ["held out, the run before"] : [])];
    const rows = this.#losses.map(({ step, seconds, validation_loss, train_loss }) => {
      const cells = [thousands(step), clock(seconds), validation_loss.toFixed(4), train_loss?.toFixed(4) ?? ""];
      if (other) cells.push(nearest(other.losses, seconds).validation_loss.toFixed(4));
      return cells.map((content) => makeCell(content));
    });
    fillTable(this.table, { titles: names, rows });
  }
}

/**
 * @param {LossEvent[]} losses
 * @param {"train_loss" | "validation_loss"} name
 * @returns {[number, number][]} the chances at each time
 */
const pointsOf = (losses, name) =>
  losses.flatMap((row) =>
    row[name] === null ? [] : [/** @type {[number, number]} */ ([row.seconds, Math.exp(-row[name])])],
  );

/** @param {LossEvent[]} losses @param {number} seconds */
const nearest = (losses, seconds) =>
  losses.reduce(
    (best, row) => (Math.abs(row.seconds - seconds) < Math.abs(best.seconds - seconds) ? row : best),
    losses[0],
  );

/** @param {LossEvent[]} losses */
function describe(losses) {
  const [first, last] = [losses[0], losses[losses.length - 1]];
  const [from, to] = [chance(first.validation_loss), chance(last.validation_loss)];
  return `of the held-out text from ${from} to ${to} at step ${last.step}`;
}

/** @returns {Run | null} */
function readRun() {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT_AS) ?? "null");
  } catch {
    return null; // storage is disabled
  }
}

/** @param {Run | null} run */
function keepRun(run) {
  try {
    if (run) sessionStorage.setItem(KEPT_AS, JSON.stringify(run));
    else sessionStorage.removeItem(KEPT_AS);
  } catch {
    // Without storage, the curve lasts until the page is reloaded.
  }
}
