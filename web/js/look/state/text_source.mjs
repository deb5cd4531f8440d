// Fetches the data of a text while it is written and shown.

import { wait } from "../../lib/latest.mjs";
import { DrawThrottle } from "./draw_throttle.mjs";
import { isGiven } from "./pointer.mjs";
import { RunData } from "./run_data.mjs";
import { RunFetcher } from "./run_fetcher.mjs";

/** @import { HeadWeights } from "../../lib/triangle.mjs" */
/** @import { ShownText } from "./shown_text.mjs" */

const FETCH_INTERVAL = 250; // milliseconds until the next fetch while enough data has arrived
const MAX_HEAD_DELAY = 300; // milliseconds that further rows wait for the open head, which may take seconds to compute

export class TextSource {
  /** @type {((n: number) => boolean)[]} */
  #waiting = [];
  #throttle = new DrawThrottle();
  #isStale = false;
  #isFetching = false;
  /** @type {HeadWeights | null} the open head's, while the rows no longer wait for them */
  #lateWeights = null;

  /** @param {ShownText} store that shows the text */
  constructor(store) {
    this.store = store;
    this.data = new RunData({ n_layer: 0, n_head: 0 });
    this.fetcher = new RunFetcher("", () => this.#knownText);
  }

  /** Begin another run, of which nothing has arrived. @param {RunData} [data] unless another source has it already */
  begin(data = new RunData(this.store.pointer)) {
    this.data = data;
    this.fetcher.name(""); // requests that still wait for a prepared run have its text read again
    this.fetcher = new RunFetcher(this.store.pointer.run, () => this.#knownText);
  }

  /** Fetch what is missing; one request for rows at a time, and again if more has come in the meantime. */
  async update() {
    const { store } = this;
    this.#isStale = true;
    if (this.#isFetching) return;
    this.#isFetching = true;
    while (this.#isStale) {
      this.#isStale = false;
      try {
        await this.#fetchRows();
        await this.#awaitWeights();
        store.report("");
        const isAhead = store.playback.isBehind && this.isReady(store.playback.soon);
        if (this.#isWriting) await this.#throttle.rest(isAhead ? FETCH_INTERVAL : 0);
      } catch (error) {
        this.#report(/** @type {Error} */ (error));
      }
    }
    this.#isFetching = false;
  }

  /** @param {Error} error */
  #report({ message }) {
    this.store.report(`Could not fetch the attention weights: ${message}`);
  }

  get #isWriting() {
    return this.store.pointer.state === "writing";
  }

  /** Show what has arrived. While the text is being written, resolves only once the drawing is on the screen. */
  async #draw() {
    const draw = () => this.store.redraw();
    if (this.#isWriting) await this.#throttle.draw(draw);
    else draw();
  }

  /** The weights of the open picture. */
  get weights() {
    return this.data.weightsOf(this.store.open);
  }

  /** Another picture was opened: fetch its weights at once. */
  open() {
    this.#throttle.hurry();
    void this.update();
  }

  /** Let the text wait for a panel before it shows more. @param {(n: number) => boolean} isReady for n tokens */
  waitFor(isReady) {
    this.#waiting.push(isReady);
  }

  /** Whether everything shown with the first n tokens has arrived. @param {number} n */
  isReady(n) {
    return Math.min(this.data.rows, this.weights.rows) >= n - 1 && this.#waiting.every((isReady) => isReady(n));
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
    const { fetcher, store } = this;
    const { playback } = store;
    const { run, rows, tokens } = store.pointer;
    if (!run || (!playback.needsRows(this.data.rows, rows) && this.data.tokens.length >= tokens)) return;
    const until = playback.rowsToFetch(rows);
    const frame = await fetcher.rows(this.data.rows, store.isGrowing ? until : null);
    if (fetcher !== this.fetcher) return; // another run has replaced this one
    const isDue = this.#isDue;
    this.data.merge(frame, store.readable);
    playback.extend(this.data.tokens.length, isGiven(store.pointer.state));
    if (isDue) await this.#draw();
  }

  /** Fetch the open head's weights; if that takes long, go on without them until they are there. */
  async #awaitWeights() {
    const { weights } = this;
    if (this.#lateWeights === weights) return;
    const arrived = this.#fetchWeights();
    const isLate = await Promise.race([arrived, wait(MAX_HEAD_DELAY).then(() => true)]);
    if (!isLate) return;
    this.#lateWeights = weights;
    const end = () => this.#lateWeights === weights && (this.#lateWeights = null);
    arrived.finally(end).then(
      () => this.update(),
      (error) => this.#report(error),
    );
  }

  async #fetchWeights() {
    const { fetcher, weights } = this;
    if (weights.rows >= this.data.rows) return;
    const floats = await fetcher.head(...this.store.open, weights.rows, this.data.rows);
    if (fetcher !== this.fetcher || weights !== this.weights) return;
    const isDue = this.#isDue;
    weights.append(floats);
    if (isDue) await this.#draw();
  }
}
