// Dragging through training: the same text, read with the weights that were kept along the way.

import { make } from "../../lib/dom.mjs";
import { request } from "../../lib/server/http.mjs";
import { LatestRequest } from "../../lib/server/latest.mjs";
import { isBusy } from "../../lib/states.mjs";
import { pictureName } from "../../lib/words.mjs";
import { CLEAR } from "../ask/roles/head_roles.mjs";
import { trainingChart } from "../widgets/training_chart.mjs";

/** @import { Place, SentPointer, TrainingReport } from "../../types.js" */
/** @import { Store } from "../state/store.mjs" */

const PAUSE = 60; // milliseconds to wait for the slider to rest

/** @param {string} model the name of a model or of one of its snapshots */
const baseOf = (model) => model.replace(/@\d+$/, "");

/** The head with the highest of `scores[layer][head]`. @param {number[][]} scores @returns {[Place, number]} */
function strongest(scores) {
  /** @type {[Place, number]} */
  let best = [[0, 0], -1];
  scores.forEach((row, layer) => row.forEach((score, head) => score > best[1] && (best = [[layer, head], score])));
  return best;
}

export class TrainingSteps {
  #base = "";
  /** @type {TrainingReport} */
  #report = { steps: [] };
  /** @type {SentPointer | null} to the text as the model itself read it */
  #own = null;
  /** @type {number[]} the text that is read with each of the weights */
  #ids = [];
  #request = new LatestRequest();

  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    this.range = make("input", { type: "range", min: 0, step: 1, "aria-label": "Training step" });
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
    store.on("state", () => this.follow());
  }

  /** Fetch what was kept of the model that is shown. */
  async follow() {
    const { pointer } = this.store;
    const base = baseOf(pointer.model);
    if (pointer.state !== "snapshot" && pointer.run) this.#own = pointer;
    this.range.disabled = isBusy(pointer.state);
    if (!base || base === this.#base) {
      this.draw();
      return;
    }
    this.#base = base;
    this.#report = { steps: [] };
    this.draw();
    try {
      const response = await request(`look/steps/${encodeURIComponent(base)}`);
      const report = await response.json();
      if (base === this.#base) this.#report = report;
    } catch {
      return; // a model without its training is shown as any other
    }
    this.draw();
  }

  /** The step whose weights are shown; null for the model itself. */
  get step() {
    return this.store.pointer.training_step ?? null;
  }

  /** Read the text again with the weights that the slider points to. */
  async read() {
    const { store } = this;
    const { steps } = this.#report;
    const step = steps[Number(this.range.value)];
    this.title.textContent = `Training step ${step.toLocaleString("en")}`;
    const { locked, step: selected } = store;
    // A snapshot has the same text, which may not have come again yet while the slider is dragged on.
    if (store.pointer.state !== "snapshot") this.#ids = store.ids;
    if (!this.#ids.length) return;
    const body = { model: this.#base, step, ids: this.#ids, n_prompt: store.pointer.n_prompt };
    try {
      const response = await this.#request.send((signal) => request("look/snapshot", { body, signal }), PAUSE);
      if (!response) return;
      const pointer = await response.json();
      store.follow({ ...pointer, settings: this.#own?.settings ?? {} });
      store.restore(locked, selected);
    } catch (error) {
      store.report(`Could not read the text with step ${step}: ${/** @type {Error} */ (error).message}`);
    }
  }

  draw() {
    const { steps, history = [], heads = [] } = this.#report;
    this.element.hidden = !steps.length;
    if (!steps.length) return;
    const { kept } = this.#report;
    const at = this.step ?? (kept != null && steps.includes(kept) ? kept : steps[steps.length - 1]);
    this.range.max = String(steps.length - 1);
    this.range.value = String(Math.max(0, steps.indexOf(at)));
    this.range.style.setProperty("--part", String(steps.indexOf(at) / Math.max(steps.length - 1, 1)));
    this.title.textContent = `Training step ${at.toLocaleString("en")}`;
    this.range.setAttribute("aria-valuetext", this.title.textContent);
    const best = heads.map(({ step, induction, previous_token }) => ({
      step,
      induction: strongest(induction),
      previous: strongest(previous_token),
    }));
    this.chart.replaceChildren(
      trainingChart(at, steps, [
        { name: "held-out loss", points: history.map((row) => [row.step, row.validation_loss]), isLoss: true },
        { name: "induction", points: best.map((row) => [row.step, row.induction[1]]), isLoss: false },
        { name: "previous token", points: best.map((row) => [row.step, row.previous[1]]), isLoss: false },
      ]),
    );
    const now = best.find((row) => row.step === at);
    if (!now) return;
    const formed = best.findIndex((row) => row.induction[1] >= CLEAR);
    const when =
      formed > 0 ? ` An induction head forms between steps ${best[formed - 1].step} and ${best[formed].step}.` : "";
    /** @param {[Place, number]} found */
    const said = ([head, score]) => `${pictureName(head, this.store.pointer)} ${score.toFixed(2)}`;
    const scores = `induction ${said(now.induction)}, previous token ${said(now.previous)}`;
    this.sentence.textContent = `Strongest heads on repeated random tokens: ${scores}.${when}`;
  }
}
