// The losses: on the text that is learned and on what is held out, against guessing and a bigram model.

import { make } from "../../lib/dom.mjs";
import { clock, thousands } from "../words.mjs";
import { legend, LineChart } from "./line_chart.mjs";

/** @import { LossEvent, StartEvent, TrainEvent } from "../types.js" */

const HELD_OUT = { name: "held-out text", css: "ht-held-out" };
const TRAINING = { name: "training text", css: "ht-training" };

export class LossPanel {
  /** @type {LossEvent[]} */
  #losses = [];
  /** @type {StartEvent | null} */
  #start = null;

  constructor() {
    this.chart = new LineChart("Loss over the training", (seconds) => this.#point(seconds));
    this.now = make("p", { class: "ht-now" });
    this.table = make("tbody", {});
    const heads = ["step", "time", "held-out text", "training text"].map((name) => make("th", {}, name));
    const table = make("table", {}, make("thead", {}, make("tr", {}, ...heads)), this.table);
    this.more = make("details", {}, make("summary", {}, "Table"), make("div", { class: "ht-table" }, table));
    this.more.addEventListener("toggle", () => this.#fillTable());
    this.hint = make("p", { class: "hs-hint" });
    const top = make("div", { class: "hs-top" }, make("h2", {}, "Loss"), this.now);
    this.element = make("section", { class: "hs-panel ht-loss", "aria-label": "Loss" }, top, this.chart.element);
    this.element.append(legend([HELD_OUT, TRAINING]), this.hint, this.more);
    new ResizeObserver(() => this.#draw()).observe(this.chart.element);
  }

  get isEmpty() {
    return !this.#losses.length;
  }

  reset() {
    this.#losses = [];
    this.#start = null;
    this.hint.textContent = "";
    this.now.textContent = "";
    this.chart.element.replaceChildren();
    this.table.replaceChildren();
  }

  /** @param {TrainEvent} event */
  take(event) {
    if (event.kind === "start") {
      this.#start = event;
      this.hint.textContent =
        `In nats per character. Along the way it is measured on ${thousands(event.watched_tokens)} characters, ` +
        "spread evenly over the held-out tenth; in the end on all of it. Lower is better.";
    } else if (event.kind === "loss") this.#losses.push(event);
    else if (event.kind === "end") {
      const { step, seconds, loss } = event;
      this.#losses.push({ kind: "loss", step, seconds, validation_loss: loss, train_loss: null });
    } else return;
    this.#draw();
    this.#point(null);
    this.#fillTable();
  }

  #draw() {
    if (!this.#start || !this.#losses.length) return;
    const { uniform, bigram, seconds } = this.#start;
    const lines = [
      { ...TRAINING, points: pointsOf(this.#losses, "train_loss") },
      { ...HELD_OUT, points: pointsOf(this.#losses, "validation_loss") },
    ];
    const levels = [
      { name: `uniform ${uniform.toFixed(2)}`, css: "ht-uniform", value: uniform },
      { name: `bigram ${bigram.toFixed(2)}`, css: "ht-bigram", value: bigram },
    ];
    const values = [uniform, bigram, ...lines.flatMap(({ points }) => points.map(([, value]) => value))];
    const last = Math.max(seconds, this.#losses[this.#losses.length - 1].seconds);
    const low = Math.floor(Math.min(...values) * 4 - 0.2) / 4;
    this.chart.draw(lines, levels, { last, low, high: Math.max(...values) * 1.04 });
    this.chart.element.setAttribute("aria-label", `Loss over the training: ${describe(this.#losses)}`);
  }

  /** Say the losses at a time, or the newest. @param {number | null} seconds */
  #point(seconds) {
    this.chart.markAt(null);
    const row = seconds === null ? this.#losses.at(-1) : nearest(this.#losses, seconds);
    if (!row) return;
    if (seconds !== null) this.chart.markAt(row.seconds);
    const training = row.train_loss === null ? "" : ` · training ${row.train_loss.toFixed(3)}`;
    this.now.replaceChildren(
      make("b", {}, row.validation_loss.toFixed(3)),
      ` held out${training} · step ${thousands(row.step)}`,
    );
  }

  #fillTable() {
    if (!this.more.open) return;
    const rows = this.#losses.map(({ step, seconds, validation_loss, train_loss }) => {
      const cells = [thousands(step), clock(seconds), validation_loss.toFixed(4), train_loss?.toFixed(4) ?? ""];
      return make("tr", {}, ...cells.map((cell) => make("td", {}, cell)));
    });
    this.table.replaceChildren(...rows);
  }
}

/**
 * @param {LossEvent[]} losses
 * @param {"train_loss" | "validation_loss"} name
 * @returns {[number, number][]}
 */
const pointsOf = (losses, name) =>
  losses.flatMap((row) => (row[name] === null ? [] : [/** @type {[number, number]} */ ([row.seconds, row[name]])]));

/** @param {LossEvent[]} losses @param {number} seconds */
const nearest = (losses, seconds) =>
  losses.reduce(
    (best, row) => (Math.abs(row.seconds - seconds) < Math.abs(best.seconds - seconds) ? row : best),
    losses[0],
  );

/** @param {LossEvent[]} losses */
function describe(losses) {
  const [first, last] = [losses[0], losses[losses.length - 1]];
  const [from, to] = [first.validation_loss.toFixed(2), last.validation_loss.toFixed(2)];
  return `held-out loss from ${from} to ${to} at step ${last.step}`;
}
