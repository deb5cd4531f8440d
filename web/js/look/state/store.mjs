// What the browser knows of one text on the screen. Panels listen to it, and a choice in one of them moves all.

import { isBusy, isGiven } from "../../lib/states.mjs";
import { Topics } from "../../lib/topics.mjs";
import { pictureName } from "../../lib/words.mjs";
import { completePointer } from "./pointer.mjs";
import { RunData } from "./run_data.mjs";
import { RunFetcher } from "./run_fetcher.mjs";
import { Selection } from "./selection.mjs";
import { Updater } from "./updater.mjs";

/** @import { Cell, LinkState, Place, Pointer, SentPointer, Token } from "../../types.js" */
/** @import { View } from "./view.mjs" */

const EVERYTHING = ["state", "tokens", "thumbnails", "open", "weights", "focus", "step"];

/** Topics: those above (open: another picture; weights: those of the open picture), view and problem. */
export class Store extends Topics {
  /** @type {Pointer} */
  #pointer = completePointer({ state: "loading" });
  #data = new RunData(this.#pointer);
  #selection = new Selection();
  #fetcher = new RunFetcher("", () => this.#knownText);
  #problem = "";
  /** @type {Set<string>} runs that were shown before */
  #left = new Set();
  #updater = new Updater({
    fetchMissing: async () => {
      await this.#fetchRows();
      await this.#fetchWeights();
    },
    isWriting: () => this.#pointer.state === "writing",
    report: (problem) => this.report(problem),
  });

  /** @param {View} view */
  constructor(view) {
    super();
    this.view = view;
    view.on((changed) => {
      if (changed.includes("open")) {
        this.#data.forgetWeights();
        this.emit("open", "weights", "focus");
        this.#updater.hurry();
        this.#updater.update();
      }
      this.emit("view");
    });
  }

  // What there is to see.

  /** @returns {Readonly<Pointer>} */
  get pointer() {
    return this.#pointer;
  }

  /** @returns {Token[]} */
  get tokens() {
    return this.#data.tokens;
  }

  get weights() {
    return this.#data.weights;
  }

  get thumbnails() {
    return this.#data.thumbnails;
  }

  get rows() {
    return this.#data.rows;
  }

  /** Changes with the run. */
  get fetcher() {
    return this.#fetcher;
  }

  /** What went wrong last, in words; "" for nothing. */
  get problem() {
    return this.#problem;
  }

  get open() {
    return this.view.open;
  }

  get openName() {
    return pictureName(this.open, this.#pointer);
  }

  get untrained() {
    return this.#data.untrained;
  }

  /** @param {Place} place */
  index(place) {
    return this.#data.index(place);
  }

  /** @param {Place} picture @param {number} place of the metric in a frame */
  metric(picture, place) {
    return this.#data.metric(picture, place);
  }

  /** How many tokens can be drawn: a cell needs its row and its tokens, and either may come last. */
  get count() {
    return Math.min(this.weights.rows, this.tokens.length);
  }

  /** A row of the open picture. @param {number} query */
  row(query) {
    return this.weights.row(query);
  }

  // What is selected.

  get hover() {
    return this.#selection.hover;
  }

  get locked() {
    return this.#selection.locked;
  }

  get step() {
    return this.#selection.step;
  }

  /** The first token that was written. */
  get firstStep() {
    return Math.max(this.#pointer.n_prompt, 1);
  }

  /** The inspected token, which is the newest unless a step is chosen; null before one was written. */
  get chosen() {
    const newest = this.tokens.length - 1;
    return newest < this.firstStep ? null : Math.min(this.step ?? newest, newest);
  }

  /** The cell to describe; null before there is one. */
  get focus() {
    if (!this.count) return null;
    const first = this.view.options.hideFirst ? 1 : 0;
    return this.#selection.focus(this.count, (query) => this.weights.strongest(query, first));
  }

  /** The tokens whose attention is drawn: that of the focus, and all that are locked. */
  get queries() {
    const queries = [this.focus, ...this.locked].flatMap((cell) => (cell ? [cell.query] : []));
    return [...new Set(queries)].filter((query) => query < this.count);
  }

  /** @returns {LinkState} */
  get linkState() {
    const { model, sha256, n_prompt, settings } = this.#pointer;
    const { open, locked, step } = this;
    const ids = this.tokens.map((token) => token.id);
    return { model, sha256, ids, n_prompt, settings, open, locked, step, options: this.view.options };
  }

  /** @param {Cell | null} cell */
  point(cell) {
    if (this.#selection.point(cell)) this.emit("focus");
  }

  /**
   * Lock a cell instead of those locked before, or unlock it if it was locked; null unlocks all.
   * @param {Cell | null} cell
   * @param {boolean} [more] whether to keep those locked before
   */
  lock(cell, more = false) {
    this.#selection.lock(cell, more);
    this.emit("focus");
  }

  /** Inspect the step that wrote a token; null for the newest. @param {number | null} step */
  goto(step) {
    this.#selection.step = step === null || step >= this.tokens.length ? null : Math.max(step, this.firstStep);
    this.emit("step", "focus", "thumbnails");
  }

  /** Restore the selection of a link. @param {Cell[]} locked @param {number | null} step */
  restore(locked, step) {
    this.#selection = new Selection(locked, step);
    this.emit("state", "focus", "step", "thumbnails");
  }

  // What changes by itself.

  /**
   * Show nothing, of a model with the shape of `like`, until the server points to a run.
   * @param {Partial<Pick<Pointer, "n_layer" | "n_head" | "sha256">>} [like]
   */
  begin({ n_layer = 0, n_head = 0, sha256 = "" } = {}) {
    this.#leave();
    this.#pointer = completePointer({ n_layer, n_head, sha256 });
    this.#reset();
    this.emit(...EVERYTHING);
  }

  /** Follow the server's pointer to a new run, or further in this one. @param {SentPointer | null} pointer */
  follow(pointer) {
    if (!pointer) return;
    const before = this.#pointer;
    // An opening may come late, when its model already writes; a text that was left may still report its end.
    const isLate = isGiven(pointer.state)
      ? isBusy(before.state) && pointer.model === before.model
      : this.#left.has(pointer.run ?? "");
    if (isLate) return;
    if (!pointer.run) {
      this.#pointer = before.run
        ? completePointer(before, { notices: pointer.notices ?? [] })
        : completePointer(pointer);
      this.emit("state");
      return;
    }
    if (pointer.run !== before.run) this.#leave();
    this.#pointer = completePointer({ notices: before.notices }, pointer);
    if (pointer.run !== before.run) {
      this.#reset();
      this.#openAgain(before);
      this.emit(...EVERYTHING);
    } else {
      this.emit("state");
    }
    this.#updater.update();
  }

  /** Add a notice to those of the server. @param {string} notice */
  notify(notice) {
    this.#pointer = { ...this.#pointer, notices: [...this.#pointer.notices, notice] };
    this.emit("state");
  }

  /** @param {string} problem what went wrong, "" for nothing */
  report(problem) {
    if (this.#problem === problem) return;
    this.#problem = problem;
    this.emit("problem");
  }

  /** Everything has to be drawn again, because the page's colours changed. */
  redraw() {
    this.emit("thumbnails", "weights", "focus", "view");
  }

  get #knownText() {
    const { sha256, n_prompt } = this.#pointer;
    return { sha256, ids: this.tokens.map((token) => token.id), n_prompt };
  }

  #leave() {
    if (this.#pointer.run) this.#left.add(this.#pointer.run);
  }

  #reset() {
    this.#data = new RunData(this.#pointer);
    this.#selection = new Selection();
    this.#fetcher = new RunFetcher(this.#pointer.run, () => this.#knownText);
  }

  /**
   * For another model: the picture that its opening names, or the one nearest to the one open before.
   * @param {Pointer} before
   */
  #openAgain(before) {
    const { n_layer, n_head, head, sha256 } = this.#pointer;
    const [layer, column] = this.open;
    const sameShape = n_layer === before.n_layer && n_head === before.n_head;
    if (head && !(sameShape && before.sha256 === sha256)) this.view.openQuietly(head);
    else if (!sameShape) this.view.openQuietly([Math.min(layer, n_layer - 1), Math.min(column, n_head - 1)]);
  }

  async #fetchRows() {
    const fetcher = this.#fetcher;
    const { run, rows, tokens } = this.#pointer;
    if (!run || (this.rows >= rows && this.tokens.length >= tokens)) return;
    const frame = await fetcher.rows(this.rows);
    if (fetcher !== this.#fetcher) return; // another run came meanwhile
    this.#data.merge(frame);
    await this.#updater.draw(() => this.emit("tokens", "thumbnails", "focus", "step"));
  }

  async #fetchWeights() {
    const fetcher = this.#fetcher;
    const { weights } = this;
    if (weights.rows >= this.rows) return;
    const floats = await fetcher.head(...this.open, weights.rows);
    if (fetcher !== this.#fetcher || weights !== this.weights) return;
    weights.append(floats);
    await this.#updater.draw(() => this.emit("weights", "focus"));
  }
}
