// A head is born: the text as the model read it at each step of its training that was kept, from the first to the last.
// The steps that open without a download are read while the page is idle; playing reads no others.

import { isStill, make, setText, svg } from "../../lib/dom.mjs";
import { idle, wait } from "../../lib/latest.mjs";
import { share, thousands } from "../../lib/numbers.mjs";
import { softmax } from "../../lib/sampling.mjs";
import { baseName, spoken } from "../../lib/words.mjs";
import { action, rangeInput, setRange } from "../../widgets/controls.mjs";
import { isBusy } from "../state/pointer.mjs";
import { PREPARED } from "../state/prepared.mjs";
import { RunFetcher } from "../state/run_fetcher.mjs";
import { readAtStep, showReading, trainingOf } from "../state/snapshots.mjs";
import { until, whenever } from "../../lib/reactive.mjs";
import { signal } from "../../vendor/signals.mjs";

/** @import { SentPointer } from "../../types.js" */
/** @import { ShownText } from "../state/shown_text.mjs" */
/** @import { ShownStep } from "./shown_step.mjs" */

const RESTING = 450; // milliseconds at each step, once it is drawn
const [WIDTH, HEIGHT] = [1000, 44]; // units of the curve

/** `probability`: of the next word. @typedef {{ step: number, pointer: SentPointer, probability: number }} Reading */

export class Birth {
  #base = "";
  #text = ""; // what was read: the model, and the tokens
  /** @type {number[]} */
  #steps = [];
  /** @type {Reading[]} */
  #readings = [];
  #word = "";
  #turn = 0;
  #playing = signal(/** @type {object | null} */ (null)); // what is playing: an object of its own for each time
  #wanted = ""; // the model whose steps play as soon as they have been read

  /** @param {ShownText} store @param {ShownStep} step */
  constructor(store, step) {
    this.store = store;
    this.step = step;
    const playOrPause = () => (this.#playing.value ? this.pause() : void this.play());
    this.button = action("Play", playOrPause, { class: "hs-play-steps" });
    this.range = rangeInput({ min: 0, step: 1, "aria-label": "Step of the training" });
    this.range.addEventListener("input", () => this.#choose(this.#nearest(Number(this.range.value))));
    this.range.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
      if (!by) return;
      event.preventDefault();
      this.#choose(Math.max(0, Math.min(this.#readings.length - 1, this.#at + by)));
    });
    this.line = svg("path", { class: "hs-birth-line", "vector-effect": "non-scaling-stroke" });
    this.area = svg("path", { class: "hs-birth-area" });
    const box = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" };
    this.marks = make("div", { class: "hs-birth-marks", "aria-hidden": "true" });
    this.title = make("span", { class: "hs-birth-title", "aria-hidden": "true" });
    const parts = [this.title, svg("svg", box, this.area, this.line), this.range, this.marks];
    const curve = make("div", { class: "hs-birth-curve" }, ...parts);
    this.element = make("div", { class: "hs-birth", hidden: true }, this.button, curve);
    whenever(
      () => store.progress,
      () => void this.follow(),
    );
  }

  get isPlaying() {
    return this.#playing.value !== null;
  }

  /** Whether there are steps to play. */
  get isThere() {
    return this.#readings.length > 1;
  }

  /** Begin at the first step, as soon as the steps of the text that is shown have been read. */
  playSoon() {
    this.#wanted = baseName(this.store.pointer.model);
    if (this.isThere) this.#begin();
  }

  #begin() {
    this.#wanted = "";
    this.#show(0);
    if (!isStill()) void this.play();
  }

  /** What the step that is shown makes of the next word; empty for a text that is not read at several steps. */
  get words() {
    if (!this.isThere || this.store.pointer.training_step == null) return [];
    const { step, probability } = this.#readings[this.#at];
    const last = thousands(this.#readings[this.#readings.length - 1].step);
    const start = `After ${thousands(step)} of ${last} steps of training, `;
    return [start, { strong: this.#word }, " has ", { strong: share(probability) }, ". "];
  }

  /** Read the text that is shown at every step, if its model has steps and it is at rest. */
  async follow() {
    const { pointer, ids, isGrowing } = this.store;
    const base = baseName(pointer.model);
    if (pointer.state === "snapshot") {
      this.#draw();
      return;
    }
    const text = `${base} ${ids}`;
    if (text !== this.#text) this.#forget();
    const isAtRest = pointer.run && pointer.run !== PREPARED && !isBusy(pointer.state) && !isGrowing && ids.length;
    if (!isAtRest || text === this.#text) return;
    this.#text = text;
    const turn = this.#turn;
    try {
      if (base !== this.#base) {
        this.#base = base;
        this.#steps = [];
        const { on_disk: steps = [] } = await trainingOf(base);
        if (turn === this.#turn) this.#steps = steps;
      }
      if (turn !== this.#turn || this.#steps.length < 2) return;
      await idle();
      const readings = await this.#read(turn);
      if (turn !== this.#turn) return;
      this.#readings = readings;
      this.#draw();
      if (this.#wanted === base) this.#begin();
    } catch {
      if (turn === this.#turn) this.#base = ""; // shown like a model without steps, until the next text
    }
  }

  /** Another text is shown: what was read, is read and plays was about the one before. */
  #forget() {
    this.#turn++;
    this.#text = "";
    this.#readings = [];
    this.#playing.value = null;
    this.#draw();
  }

  /** @param {number} turn @returns {Promise<Reading[]>} */
  async #read(turn) {
    const { step } = this;
    await until(() => turn !== this.#turn || (step.known.isCurrent && step.whole !== null)); // the next word is known
    const { ids, pointer } = this.store;
    const { query } = step;
    const target = step.whole?.target ?? null;
    if (turn !== this.#turn || target === null) return [];
    this.#word = spoken(step.texts[target]);
    /** @type {Reading[]} */
    const readings = [];
    for (const at of this.#steps) {
      if (turn !== this.#turn) return [];
      const read = await readAtStep(this.#base, at, { ids, n_prompt: pointer.n_prompt });
      const known = () => ({ sha256: read.sha256 ?? "", ids, n_prompt: pointer.n_prompt, head_mask: null });
      const logits = await new RunFetcher(read.run ?? "", known).logits(query);
      readings.push({ step: at, pointer: read, probability: softmax(logits)[target] });
    }
    return readings;
  }

  /** @param {number} step @returns {number} the number of the reading nearest to a step */
  #nearest(step) {
    const away = this.#readings.map((reading) => Math.abs(reading.step - step));
    return away.indexOf(Math.min(...away));
  }

  /** @param {number} at the number of a reading */
  #choose(at) {
    this.pause();
    this.#show(at);
  }

  /** @param {number} at the number of a reading */
  #show(at) {
    showReading(this.store, this.#readings[at].pointer);
  }

  /** From the first step to the last, where it stays. */
  async play() {
    this.#wanted = "";
    if (!this.isThere || this.#playing.value) return;
    const own = {};
    this.#playing.value = own;
    const last = this.#readings.length - 1;
    const isGoing = () => this.#playing.value === own;
    for (let at = this.#at === last ? 0 : this.#at; at <= last && isGoing(); at++) {
      this.#show(isStill() ? last : at);
      if (isStill()) break;
      await this.#drawn(isGoing);
      await wait(RESTING);
    }
    if (isGoing()) this.pause();
  }

  /** Resolves once the step is drawn. @param {() => boolean} isGoing */
  #drawn(isGoing) {
    const { step } = this;
    return until(() => (step.known.isCurrent && step.whole?.isKnown) || !isGoing());
  }

  pause() {
    this.#playing.value = null;
    this.#wanted = "";
    this.#draw();
  }

  /** The number of the reading that is shown; of the last one for the model itself. */
  get #at() {
    const { training_step: step } = this.store.pointer;
    const at = this.#readings.findIndex((reading) => reading.step === step);
    return at < 0 ? this.#readings.length - 1 : at;
  }

  #draw() {
    this.element.hidden = !this.isThere;
    if (!this.isThere) return;
    setText(this.button, this.isPlaying ? "Pause" : "Play");
    const at = this.#at;
    const last = this.#readings.length - 1;
    const { step, probability } = this.#readings[at];
    const end = this.#readings[last].step;
    setRange(this.range, step, { max: end });
    setText(this.title, `How likely ${this.#word} is`);
    const said = `After ${thousands(step)} steps of training: ${share(probability)}`;
    this.range.setAttribute("aria-valuetext", said);
    const half = this.#readings.findIndex((reading) => reading.probability >= 0.5);
    const marked = [...new Set([0, half, last])].filter((i) => i >= 0);
    this.marks.replaceChildren(
      ...marked.map((i) => {
        const own = this.#readings[i].step;
        const mark = make("span", {}, thousands(own), i === last ? " steps of training" : "");
        mark.style.left = `${(100 * own) / end}%`;
        return mark;
      }),
    );
    const x = (/** @type {number} */ i) => (WIDTH * this.#readings[i].step) / end;
    const points = this.#readings.map((reading, i) => `${x(i)},${HEIGHT - 2 - (HEIGHT - 4) * reading.probability}`);
    this.line.setAttribute("d", `M${points.join("L")}`);
    this.area.setAttribute("d", `M0,${HEIGHT}L${points.join("L")}L${WIDTH},${HEIGHT}Z`);
  }
}
