// Two ways to show only the answer that is wanted now.
//
// `LatestLoader` is for values that are requested again and again while a text is written: one request at a time, none
// aborted (or none would ever be answered), and answers are cached. `LatestRequest` is for a control that a visitor
// moves: each new request aborts the previous one.

import { onEnd } from "./reactive.mjs";

const MAX_CACHED = 24; // answers cached per run, unless a loader says otherwise

/** @param {number} milliseconds */
export const wait = (milliseconds) =>
  new Promise((/** @type {(value: void) => void} */ resolve) => setTimeout(resolve, milliseconds));

/** Resolves when the page has nothing else to do. @returns {Promise<void>} */
export const idle = () =>
  window.requestIdleCallback
    ? new Promise((resolve) => window.requestIdleCallback(() => resolve(), { timeout: 3000 }))
    : wait(500);

/**
 * @template Source where values are loaded from; the cache lasts as long as it stays the same
 * @template Value
 */
export class LatestLoader {
  /** @type {Map<number, Value>} */
  #cached = new Map();
  /** @type {Source | undefined} */
  #source;
  /** @type {number | null} */
  #position = null;
  #last = 0;
  #pause = 0;
  #busy = false;
  #endPause = () => {};

  /**
   * @param {object} options
   * @param {(source: Source, position: number, last: number) => Promise<Value[]>} options.load asks the server for the
   *   values from one position to `last`; it may return fewer, but at least one
   * @param {(value: Value, position: number) => void} options.show called with the value that is wanted
   * @param {(error: Error) => void} options.report called with errors
   * @param {number} [options.size] how many values are cached
   */
  constructor({ load, show, report, size = MAX_CACHED }) {
    this.load = load;
    this.show = show;
    this.report = report;
    this.size = size;
  }

  /**
   * Show the value of a position in the text, at once if it is cached; null for nothing.
   * @param {Source} source
   * @param {number | null} position
   * @param {number} pause milliseconds to wait before asking the server; 0 also ends a pause in progress
   * @param {number} [last] the last position that will be wanted soon, up to which values are loaded ahead
   */
  want(source, position, pause, last = position ?? 0) {
    if (source !== this.#source) this.#cached.clear();
    this.#source = source;
    this.#position = position;
    this.#last = Math.min(last, (position ?? 0) + this.size / 2);
    this.#pause = pause;
    if (position === null) return;
    const value = this.#cached.get(position);
    if (value) {
      this.#cache(position, value);
      this.show(value, position);
    }
    if (!pause) this.#endPause();
    if (!this.#busy) this.#fetch();
  }

  /** @param {Source} source @param {number} position */
  has(source, position) {
    return source === this.#source && this.#cached.has(position);
  }

  /** The first position that is wanted, now or soon, and not cached; null if there is none. */
  get #missing() {
    if (this.#position === null) return null;
    for (let position = this.#position; position <= this.#last; position++)
      if (!this.#cached.has(position)) return position;
    return null;
  }

  /**
   * @param {number} position
   * @param {Value} value
   */
  #cache(position, value) {
    this.#cached.delete(position);
    this.#cached.set(position, value);
    const [oldest] = this.#cached.keys();
    if (this.#cached.size > this.size) this.#cached.delete(oldest);
  }

  async #fetch() {
    this.#busy = true;
    while (this.#missing !== null) {
      await Promise.race([
        wait(this.#pause),
        new Promise((/** @type {(value: void) => void} */ resolve) => (this.#endPause = resolve)),
      ]);
      const [source, position] = [/** @type {Source} */ (this.#source), this.#missing];
      if (position === null) break;
      try {
        const values = await this.load(source, position, Math.max(position, this.#last));
        if (source !== this.#source) continue;
        values.forEach((value, i) => this.#cache(position + i, value));
        const wanted = this.#position ?? -1;
        if (wanted >= position && wanted < position + values.length) this.show(values[wanted - position], wanted);
      } catch (error) {
        if (source !== this.#source) continue;
        if (position > (this.#position ?? -1))
          this.#last = position - 1; // not urgent: it is requested again when it is needed
        else if (position === this.#position) {
          this.report(/** @type {Error} */ (error));
          break;
        }
      }
    }
    this.#busy = false;
  }
}

/** @param {boolean} isWriting a server that is busy writing is asked less often */
export const pauseFor = (isWriting) => (isWriting ? 250 : 60);

export class LatestRequest {
  /** @type {AbortController | null} */
  #controller = null;

  constructor() {
    onEnd(() => this.abort());
  }

  /** The answer is not wanted any more. */
  abort() {
    this.#controller?.abort();
  }

  /**
   * The answer, or null if it was aborted or a newer request was made in the meantime.
   * @template Answer
   * @param {(signal: AbortSignal) => Promise<Answer>} ask
   * @param {number} [pause] milliseconds to wait first, in case a newer request comes
   * @returns {Promise<Answer | null>}
   */
  async send(ask, pause = 0) {
    this.abort();
    const { signal } = (this.#controller = new AbortController());
    if (pause) await wait(pause);
    if (signal.aborted) return null;
    try {
      const answer = await ask(signal);
      return signal.aborted ? null : answer;
    } catch (error) {
      if (signal.aborted) return null;
      throw error;
    }
  }
}
