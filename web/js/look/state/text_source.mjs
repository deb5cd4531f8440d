// What the browser knows of one text: what has arrived of it, and how much of that is shown.

import { completePointer, isBusy, isGiven } from "./pointer.mjs";
import { pictureName } from "../../lib/words.mjs";
import { Playback } from "./playback.mjs";
import { Problems } from "./problems.mjs";
import { RunData } from "./run_data.mjs";
import { RunFetcher } from "./run_fetcher.mjs";
import { Updater } from "./updater.mjs";

/** @import { Place, Pointer, SentPointer } from "../../types.js" */
/** @import { View } from "./view.mjs" */

const SHOWN = ["tokens", "thumbnails", "weights", "focus", "step"];
const EVERYTHING = ["state", "open", ...SHOWN];

/** Topics: those above (open: another picture; weights: those of the open picture), view and problem. */
export class TextSource extends Problems {
  /** @type {Pointer} */
  #pointer = completePointer({ state: "loading" });
  #data = new RunData(this.#pointer);
  #playback = new Playback(
    () => this.#showMore(),
    (n) => this.#isReady(n),
  );
  /** @type {((n: number) => boolean)[]} */
  #waiting = [];
  #fetcher = new RunFetcher("", () => this.#knownText);
  /** @type {Set<string>} runs that were shown before */
  #abandonedRuns = new Set();
  #updater = new Updater({
    fetchMissing: async () => {
      await this.#fetchRows();
      await this.#fetchWeights();
    },
    isWriting: () => this.#pointer.state === "writing",
    isAhead: () => this.#playback.isBehind && this.#isReady(this.#playback.soon),
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

  /** The tokens that are shown: those that are known, or fewer while the text appears at its pace. */
  get tokens() {
    return this.#data.firstTokens(this.#playback.shown);
  }

  /** The ids of all tokens that are known, shown or not. */
  get ids() {
    return this.#data.tokens.map((token) => token.id);
  }

  /** How the text appears. */
  get playback() {
    return this.#playback;
  }

  get weights() {
    return this.#data.weights;
  }

  get thumbnails() {
    return this.#data.thumbnails;
  }

  get rows() {
    return Math.min(this.#data.rows, this.readable);
  }

  /** Whether there is more of the text than is shown, or will be. */
  get isGrowing() {
    return this.#playback.isBehind || isBusy(this.#pointer.state);
  }

  /** How many of the shown tokens have been read: the newest of a growing text is read to write the next one. */
  get readable() {
    const { length } = this.tokens;
    return this.isGrowing && length > Math.max(this.#pointer.n_prompt, 1) ? length - 1 : length;
  }

  /** The last row that panels will soon show: they may load it ahead. */
  get soonRow() {
    return Math.min(this.#playback.soon - 2, this.#pointer.rows - 1);
  }

  /** Another one means another run. */
  get fetcher() {
    return this.#fetcher;
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

  get heads() {
    return this.#data.heads;
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
    return Math.min(this.weights.rows, this.readable);
  }

  /** A row of the open picture. @param {number} query */
  row(query) {
    return this.weights.row(query);
  }

  // Updates from the server.

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

  /** Apply a pointer: to a new run, or further in this one. @param {SentPointer | null} pointer */
  follow(pointer) {
    if (!pointer) return;
    const before = this.#pointer;
    if (this.isLate(pointer)) return;
    if (!pointer.run) {
      this.#pointer = before.run
        ? completePointer(before, { notices: pointer.notices ?? [] })
        : completePointer(pointer);
      this.emit("state");
      return;
    }
    if (pointer.run !== before.run) this.#leave();
    const wasGrowing = this.isGrowing;
    this.#pointer = completePointer({ notices: before.notices }, pointer);
    const isNew = pointer.run !== before.run;
    const hasEnded = wasGrowing && !this.isGrowing;
    if (isNew) {
      this.#reset();
      this.view.openAgain(this.#pointer, before);
    }
    const written = pointer.new ?? [];
    this.#data.addTokens(this.#pointer.tokens - written.length, written);
    // What a text begins with is shown at once, the rest at its pace.
    this.#playback.extend(this.#data.tokens.length, isNew || isGiven(pointer.state));
    if (isNew) this.emit(...EVERYTHING);
    else this.emit("state", ...(hasEnded ? SHOWN : []));
    this.#updater.update();
  }

  /**
   * An opening may come late, when its model already writes; a text that was left may still report its end.
   * @param {SentPointer} pointer
   */
  isLate(pointer) {
    return isGiven(pointer.state)
      ? isBusy(this.#pointer.state) && pointer.model === this.#pointer.model
      : this.#abandonedRuns.has(pointer.run ?? "");
  }

  /** Show the text that another source shows, which is to show something else. @param {TextSource} other */
  adopt(other) {
    this.#leave();
    this.#abandonedRuns.delete(other.pointer.run);
    this.#pointer = other.#pointer;
    this.#reset();
    this.#data = other.#data;
    if (this.open.join() !== other.open.join()) this.#data.forgetWeights();
    this.#playback.reset(this.#data.tokens.length);
    this.#data.show(this.readable);
    this.emit(...EVERYTHING);
    this.#updater.update();
  }

  /** What has arrived moves on with the text, in the same frame; the rest is drawn when it arrives. */
  #showMore() {
    const rows = this.#playback.shown - 1;
    const late = [...(this.#data.rows < rows ? ["thumbnails"] : []), ...(this.weights.rows < rows ? ["weights"] : [])];
    this.#data.show(this.readable);
    this.emit(...SHOWN.filter((event) => !late.includes(event)));
    if (this.#playback.needsRows(this.#data.rows, this.#pointer.rows)) this.#updater.update();
  }

  /** Let a text that appears at its pace wait for a panel. @param {(n: number) => boolean} isReady for n tokens */
  waitFor(isReady) {
    this.#waiting.push(isReady);
  }

  /** Whether all that is shown beside the first n tokens has arrived. @param {number} n */
  #isReady(n) {
    return Math.min(this.#data.rows, this.weights.rows) >= n - 1 && this.#waiting.every((isReady) => isReady(n));
  }

  /** The text that is being written is no longer followed. */
  abandon() {
    if (!isBusy(this.#pointer.state)) return;
    this.#leave();
    this.#pointer = completePointer(this.#pointer, { state: "stopped" });
    this.emit("state");
  }

  /** Tell the visitor something beside what the server says. @param {string} notice */
  notify(notice) {
    this.#pointer = { ...this.#pointer, notices: [...this.#pointer.notices, notice] };
    this.emit("state");
  }

  /** Everything has to be drawn again, because the page's colours changed. */
  redraw() {
    this.emit("thumbnails", "weights", "focus", "view");
  }

  /** Whether what arrives now is drawn now, not with a token that is still to be shown. */
  get #isDue() {
    return !this.#playback.isBehind || !this.#isReady(this.#playback.shown);
  }

  get #knownText() {
    const { sha256, n_prompt, head_mask } = this.#pointer;
    return { sha256, ids: this.ids, n_prompt, head_mask };
  }

  /** Another text begins, and nothing of it is selected yet: for those who can select. */
  clearSelection() {}

  #leave() {
    if (this.#pointer.run) this.#abandonedRuns.add(this.#pointer.run);
  }

  #reset() {
    this.#data = new RunData(this.#pointer);
    this.#playback.reset(0);
    this.clearSelection();
    this.#fetcher = new RunFetcher(this.#pointer.run, () => this.#knownText);
  }

  async #fetchRows() {
    const fetcher = this.#fetcher;
    const { run, rows, tokens } = this.#pointer;
    const until = this.#playback.rowsToFetch(rows);
    if (!run || (this.#data.rows >= until && this.#data.tokens.length >= tokens)) return;
    const frame = await fetcher.rows(this.#data.rows, this.isGrowing ? until : null);
    if (fetcher !== this.#fetcher) return; // another run came meanwhile
    const isDue = this.#isDue;
    this.#data.merge(frame, this.readable);
    this.#playback.extend(this.#data.tokens.length, isGiven(this.#pointer.state));
    if (isDue) await this.#updater.draw(() => this.emit("tokens", "thumbnails", "focus", "step"));
  }

  async #fetchWeights() {
    const fetcher = this.#fetcher;
    const { weights } = this;
    if (weights.rows >= this.#data.rows) return;
    const floats = await fetcher.head(...this.open, weights.rows);
    if (fetcher !== this.#fetcher || weights !== this.weights) return;
    const isDue = this.#isDue;
    weights.append(floats);
    if (isDue) await this.#updater.draw(() => this.emit("weights", "focus"));
  }
}
