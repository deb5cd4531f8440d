// Fetches the data of a text while it is written and shown.

import { isGiven } from "./pointer.mjs";
import { RunData } from "./run_data.mjs";
import { RunFetcher } from "./run_fetcher.mjs";
import { Updater } from "./updater.mjs";

/** @import { Store } from "./store.mjs" */

export class TextSource {
  /** @type {((n: number) => boolean)[]} */
  #waiting = [];
  #updater = new Updater({
    fetchMissing: async () => {
      await this.#fetchRows();
      await this.#fetchWeights();
    },
    isWriting: () => this.store.pointer.state === "writing",
    isAhead: () => this.store.playback.isBehind && this.isReady(this.store.playback.soon),
    report: (problem) => this.store.report(problem),
  });

  /** @param {Store} store the text on the screen */
  constructor(store) {
    this.store = store;
    this.data = new RunData({ n_layer: 0, n_head: 0 });
    this.fetcher = new RunFetcher("", () => this.#knownText);
  }

  /** Another run: nothing of it has arrived. @param {RunData} [data] unless another source has it already */
  begin(data = new RunData(this.store.pointer)) {
    this.data = data;
    this.fetcher = new RunFetcher(this.store.pointer.run, () => this.#knownText);
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
    const { sha256, n_prompt, head_mask } = this.store.pointer;
    return { sha256, ids: this.data.ids, n_prompt, head_mask };
  }

  /** Whether what arrives now is drawn now, not with a token that is still to be shown. */
  get #isDue() {
    const { playback } = this.store;
    return !playback.isBehind || !this.isReady(playback.shown);
  }

  async #fetchRows() {
    const { store, fetcher } = this;
    const { run, rows, tokens } = store.pointer;
    const until = store.playback.rowsToFetch(rows);
    if (!run || (this.data.rows >= until && this.data.tokens.length >= tokens)) return;
    const frame = await fetcher.rows(this.data.rows, store.isGrowing ? until : null);
    if (fetcher !== this.fetcher) return; // another run has replaced this one
    const isDue = this.#isDue;
    this.data.merge(frame, store.readable);
    store.playback.extend(this.data.tokens.length, isGiven(store.pointer.state));
    if (isDue) await this.#updater.draw(() => store.emit("tokens", "thumbnails", "focus", "step"));
  }

  async #fetchWeights() {
    const { store, fetcher } = this;
    const { weights } = this.data;
    if (weights.rows >= this.data.rows) return;
    const floats = await fetcher.head(...store.open, weights.rows);
    if (fetcher !== this.fetcher || weights !== this.data.weights) return;
    const isDue = this.#isDue;
    weights.append(floats);
    if (isDue) await this.#updater.draw(() => store.emit("weights", "focus"));
  }
}
