// Dragging through training: the same text, read with the snapshots that were kept along the way.

import { thousands } from "../../lib/numbers.mjs";
import { make, setHidden, svg } from "../../lib/dom.mjs";
import { spokenHead, strongestHead } from "../../lib/heads.mjs";
import { LatestRequest } from "../../lib/latest.mjs";
import { isBusy } from "../state/pointer.mjs";
import { PREPARED } from "../state/prepared.mjs";
import { readAtStep, showReading, trainingOf } from "../state/snapshots.mjs";
import { baseName } from "../../lib/words.mjs";
import { CLEAR } from "../roles/head_roles.mjs";
import { rangeInput, setRange } from "../../widgets/controls.mjs";
import { LineChart } from "../../widgets/line_chart.mjs";
import { whenever } from "../../lib/reactive.mjs";

/** @import { PictureId, TrainingReport } from "../../types.js" */
/** @import { ShownText } from "../state/shown_text.mjs" */

const SLIDER_PAUSE = 60; // milliseconds to wait for the slider to come to rest
const NEXT_SCORES = 5000; // milliseconds until scores that are being computed are fetched again

export class TrainingSteps {
  #base = "";
  /** @type {TrainingReport} */
  #report = { steps: [] };
  /** @type {number[]} the text that is read with each snapshot */
  #ids = [];
  #request = new LatestRequest();
  /** @type {{ step: number, run: string } | null} the step asked for while this run is shown */
  #asked = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** @param {ShownText} store */
  constructor(store) {
    this.store = store;
    this.range = rangeInput({ min: 0, step: 1, "aria-label": "Training step" });
    this.range.addEventListener("input", () => this.read());
    this.title = make("b", {});
    this.sentence = make("p", { class: "hs-hint", role: "status" });
    this.chart = make("div", { class: "hs-training-chart" });
    this.element = make(
      "div",
      { class: "hs-training", hidden: true },
      this.title,
      this.range,
      this.chart,
      this.sentence,
    );
    whenever(
      () => [store.pointer],
      () => void this.follow(),
    );
  }

  /** Fetch the list of snapshots of the current model. */
  async follow() {
    const { pointer } = this.store;
    const base = baseName(pointer.model);
    this.range.disabled = isBusy(pointer.state);
    if (!base || base === this.#base || pointer.run === PREPARED) {
      this.draw();
      return;
    }
    this.#base = base;
    this.#report = { steps: [] };
    this.draw();
    await this.#fetch(base);
  }

  /** @param {string} base @param {boolean} [again] for scores that the server has computed since */
  async #fetch(base, again = false) {
    try {
      const report = await trainingOf(base, again);
      if (base !== this.#base) return;
      this.#report = report;
    } catch {
      return; // shown like a model without snapshots
    }
    this.draw();
    clearTimeout(this.#timer);
    if (this.#report.scoring)
      this.#timer = setTimeout(() => base === this.#base && this.#fetch(base, true), NEXT_SCORES);
  }

  /** The step that will replace what is shown, once it is loaded. */
  get loading() {
    return this.#asked?.run === this.store.pointer.run ? this.#asked.step : null;
  }

  /** The step that is loading, or else the one whose weights are shown; null for the model itself. */
  get step() {
    return this.loading ?? this.store.pointer.training_step ?? null;
  }

  /** Read the text again with the snapshot that the slider points to. It may have to be downloaded first. */
  async read() {
    const { store } = this;
    const step = this.#report.steps[Number(this.range.value)];
    // A snapshot reads the same text, whose tokens may not have arrived yet while the slider is being dragged.
    if (store.pointer.state !== "snapshot") this.#ids = store.ids;
    if (!this.#ids.length) return;
    const { run, n_prompt } = store.pointer;
    this.#asked = { step, run };
    this.draw();
    const text = { ids: this.#ids, n_prompt };
    try {
      const pointer = await this.#request.send((signal) => readAtStep(this.#base, step, text, signal), SLIDER_PAUSE);
      if (!pointer) return;
      this.#asked = null;
      if (store.pointer.run !== run) return; // the visitor has opened another text
      showReading(store, pointer);
      if (!this.#report.heads?.some((row) => row.step === step)) await this.#fetch(this.#base, true);
    } catch (error) {
      this.#asked = null;
      this.draw();
      store.report(`Could not read the text with step ${step}: ${/** @type {Error} */ (error).message}`);
    }
  }

  draw() {
    const { steps, history = [], heads = [] } = this.#report;
    setHidden(this.element, !steps.length);
    if (!steps.length) return;
    const { kept } = this.#report;
    const at = this.step ?? (kept != null && steps.includes(kept) ? kept : steps[steps.length - 1]);
    setRange(this.range, Math.max(0, steps.indexOf(at)), { max: steps.length - 1 });
    const name = `Training step ${thousands(at)}`;
    this.range.setAttribute("aria-valuetext", name);
    this.title.textContent = this.loading !== null ? `${name}, loading …` : name;
    const best = heads.map(({ step, induction, previous_token }) => ({
      step,
      induction: strongestHead(induction),
      previous: strongestHead(previous_token),
    }));
    this.chart.replaceChildren(
      trainingChart(at, steps, [
        { name: "held-out loss", points: history.map((row) => [row.step, row.validation_loss]), isLoss: true },
        { name: "induction", points: best.map((row) => [row.step, row.induction.value]), isLoss: false },
        { name: "previous token", points: best.map((row) => [row.step, row.previous.value]), isLoss: false },
      ]),
    );
    const now = best.find((row) => row.step === at);
    if (!now) {
      this.sentence.textContent = "";
      return;
    }
    const formed = best.findIndex((row) => row.induction.value >= CLEAR);
    const when =
      formed > 0 ? ` An induction head forms between steps ${best[formed - 1].step} and ${best[formed].step}.` : "";
    /** @param {{ picture: PictureId, value: number }} head */
    const scored = ({ picture, value }) => `${spokenHead(picture)} with ${value.toFixed(2)}`;
    const scores = `induction ${scored(now.induction)}, previous token ${scored(now.previous)}`;
    const strongestHeads = `Strongest heads on repeated random tokens: ${scores}.`;
    this.sentence.replaceChildren(strongestHeads, when);
  }
}

/**
 * @typedef {object} Line
 * @property {string} name
 * @property {[step: number, value: number][]} points
 * @property {boolean} isLoss scaled from its smallest to its largest value; else from 0 to 1
 */

const SIZE = [320, 72];
const FRAME = { left: 6, right: 6, top: 6, bottom: 6 };
const TICKS = 4; // intervals between labelled steps
const STYLES = ["hs-line-loss", "hs-line-one", "hs-line-two"];

/**
 * @param {number} at the step that is marked
 * @param {number[]} kept the steps of the snapshots, in order; they are drawn at equal distances
 * @param {Line[]} lines
 */
function trainingChart(at, kept, lines) {
  const chart = new LineChart({ size: SIZE, frame: FRAME, x: [0, kept.length - 1], y: [0, 1] });
  const place = (/** @type {number} */ step) => placeAmong(kept, step);
  const drawing = svg("svg", { viewBox: chart.box, role: "img", preserveAspectRatio: "none" });
  drawing.setAttribute("aria-label", `${lines.map(({ name }) => name).join(", ")} over the steps of training`);
  chart.parts.push(svg("path", { d: `M${chart.x(place(at))} 0V${SIZE[1]}` }));
  const legend = make("p", { class: "hs-hint" });
  lines.forEach(({ name, points, isLoss }, i) => {
    if (!points.length) return;
    const values = points.map(([, value]) => value);
    const ends = isLoss ? [Math.min(...values), Math.max(...values)] : undefined;
    const places = points.map(([step, value]) => /** @type {[number, number]} */ ([place(step), value]));
    chart.line(places, STYLES[i], ends);
    const mark = make("span", { class: `hs-swatch ${STYLES[i]}` });
    const range = lineWords({ name, points, isLoss }, kept[0]).slice(name.length);
    legend.append(mark, name, range, " ");
  });
  drawing.append(...chart.parts);
  const ticks = make("p", { class: "hs-hint hs-chart-ends" });
  for (let i = 0; i <= TICKS; i++) {
    const step = thousands(kept[Math.round((i * (kept.length - 1)) / TICKS)]);
    ticks.append(make("span", {}, i ? step : `step ${step}`));
  }
  return make("div", {}, drawing, ticks, legend);
}

/**
 * The name of a line with its first and last value, and its first step if that is later than the first snapshot.
 * @param {Line} line with one point at least
 * @param {number} start the first step of the chart
 */
export function lineWords({ name, points, isLoss }, start) {
  const [[step, first], [, last]] = [points[0], points[points.length - 1]];
  const measured = step > start ? `, first measured at step ${thousands(step)}` : "";
  return `${name} ${first.toFixed(2)} to ${last.toFixed(2)}${isLoss ? " nats" : ""}${measured}`;
}

/**
 * Where a step lies among those that were kept, in indices.
 * @param {number[]} kept
 * @param {number} step
 */
export function placeAmong(kept, step) {
  const next = kept.findIndex((one) => one >= step);
  if (next <= 0) return next < 0 ? kept.length - 1 : 0;
  return next - (kept[next] - step) / (kept[next] - kept[next - 1]);
}
