// Fetches the data of a text while it is written and shown.

import { isBusy, isGiven } from "./pointer.mjs";
import { RunData } from "./run_data.mjs";
import { RunFetcher } from "./run_fetcher.mjs";
import { Updater } from "./updater.mjs";

/** @import { PictureId, Pointer } from "../../types.js" */
/** @import { Playback } from "./playback.mjs" */

/**
 * @typedef {object} ShownText the text whose data is fetched
 * @property {Playback} playback
 * @property {() => Readonly<Pointer>} pointer
 * @property {() => PictureId} openPicture
 * @property {() => number} readable how many of the shown tokens have been read
 * @property {(...topics: string[]) => void} emit tells the panels which data has arrived
 * @property {(problem: string) => void} report called with what went wrong, or ""
 */

export class TextSource {
  /** @type {((n: number) => boolean)[]} */
  #waiting = [];
  #updater = new Updater({
    fetchMissing: async () => {
      await this.#fetchRows();
      await this.#fetchWeights();
    },
    isWriting: () => this.text.pointer().state === "writing",
    isAhead: () => this.text.playback.isBehind && this.isReady(this.text.playback.soon),
    report: (problem) => this.text.report(problem),
  });

  /** @param {ShownText} text */
  constructor(text) {
    this.text = text;
    this.data = new RunData({ n_layer: 0, n_head: 0 });
    this.fetcher = new RunFetcher("", () => this.#knownText);
  }

  /** Begin another run, of which nothing has arrived. @param {RunData} [data] unless another source has it already */
  begin(data = new RunData(this.text.pointer())) {
    this.data = data;
    this.fetcher.name(""); // requests that still wait for a prepared run have its text read again
    this.fetcher = new RunFetcher(this.text.pointer().run, () => this.#knownText);
  }

  /** Fetch what is missing. */
  update() {
    void this.#updater.update();
  }

  /** Another picture was opened: fetch its weights at once. */
  open() {
    this.data.forgetWeights();
    this.#updater.hurry();
    this.update();
  }

  /** Let the text wait for a panel before it shows more. @param {(n: number) => boolean} isReady for n tokens */
  waitFor(isReady) {
    this.#waiting.push(isReady);
  }

  /** Whether everything shown with the first n tokens has arrived. @param {number} n */
  isReady(n) {
    const { rows, weights } = this.data;
    return Math.min(rows, weights.rows) >= n - 1 && this.#waiting.every((isReady) => isReady(n));
  }

  get #knownText() {
    const { sha256, n_prompt, head_mask } = this.text.pointer();
    return { sha256, ids: this.data.ids, n_prompt, head_mask };
  }

  /** Whether what arrives now is drawn now, not with a token that is still to be shown. */
  get #isDue() {
    const { playback } = this.text;
    return !playback.isBehind || !this.isReady(playback.shown);
  }

  async #fetchRows() {
    const { fetcher } = this;
    const { playback, pointer, readable, emit } = this.text;
    const { run, rows, tokens, state } = pointer();
    const until = playback.rowsToFetch(rows);
    if (!run || (this.data.rows >= until && this.data.tokens.length >= tokens)) return;
    const isGrowing = playback.isBehind || isBusy(state);
    const frame = await fetcher.rows(this.data.rows, isGrowing ? until : null);
    if (fetcher !== this.fetcher) return; // another run has replaced this one
    const isDue = this.#isDue;
    this.data.merge(frame, readable());
    playback.extend(this.data.tokens.length, isGiven(pointer().state));
    if (isDue) await this.#updater.draw(() => emit("tokens", "thumbnails", "focus", "step"));
  }

  async #fetchWeights() {
    const { fetcher } = this;
    const { weights } = this.data;
    if (weights.rows >= this.data.rows) return;
    const floats = await fetcher.head(...this.text.openPicture(), weights.rows);
    if (fetcher !== this.fetcher || weights !== this.data.weights) return;
    const isDue = this.#isDue;
    weights.append(floats);
    if (isDue) await this.#updater.draw(() => this.text.emit("weights", "focus"));
  }
}
