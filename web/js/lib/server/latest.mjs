// Two ways to show only the answer that is wanted now.
//
// `LatestLoader` is for values that keep being asked for while a text is written: one request at a time, none of them
// aborted (or none would be answered), and answers are kept. `LatestRequest` is for a control that a visitor moves:
// each new request aborts the one before.

const KEPT = 24; // answers of one run

/** @param {number} milliseconds */
const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/**
 * @template Source where values are loaded from; values are kept as long as it stays the same
 * @template Value
 */
export class LatestLoader {
  /** @type {Map<number, Value>} */
  #kept = new Map();
  /** @type {Source | undefined} */
  #source;
  /** @type {number | null} */
  #place = null;
  #pause = 0;
  #busy = false;

  /**
   * @param {object} callbacks
   * @param {(source: Source, place: number) => Promise<Value>} callbacks.load asks the server
   * @param {(value: Value, place: number) => void} callbacks.show gets what is wanted
   * @param {(error: Error) => void} callbacks.report gets what went wrong
   */
  constructor({ load, show, report }) {
    this.load = load;
    this.show = show;
    this.report = report;
  }

  /**
   * Show the value of a place, at once where it is kept; null for nothing.
   * @param {Source} source
   * @param {number | null} place
   * @param {number} pause milliseconds to wait before the server is asked
   */
  want(source, place, pause) {
    if (source !== this.#source) this.#kept.clear();
    this.#source = source;
    this.#place = place;
    this.#pause = pause;
    if (place === null) return;
    const found = this.#kept.get(place);
    if (found) {
      this.#keep(place, found);
      this.show(found, place);
    } else if (!this.#busy) this.#fetch();
  }

  /**
   * @param {number} place
   * @param {Value} value
   */
  #keep(place, value) {
    this.#kept.delete(place);
    this.#kept.set(place, value);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > KEPT) this.#kept.delete(oldest);
  }

  async #fetch() {
    this.#busy = true;
    while (this.#place !== null && !this.#kept.has(this.#place)) {
      await wait(this.#pause);
      const [source, place] = [/** @type {Source} */ (this.#source), this.#place];
      if (place === null || this.#kept.has(place)) break;
      const isWanted = () => source === this.#source && place === this.#place;
      try {
        const value = await this.load(source, place);
        if (source === this.#source) this.#keep(place, value);
        if (isWanted()) this.show(value, place);
      } catch (error) {
        if (!isWanted()) continue;
        this.report(/** @type {Error} */ (error));
        break;
      }
    }
    this.#busy = false;
  }
}

/** @param {boolean} isWriting while the server is busy writing it is asked less often */
export const pauseFor = (isWriting) => (isWriting ? 250 : 60);

export class LatestRequest {
  /** @type {AbortController | null} */
  #controller = null;

  /**
   * The answer, or null where a newer request was made meanwhile.
   * @template Answer
   * @param {(signal: AbortSignal) => Promise<Answer>} ask
   * @param {number} [pause] milliseconds to wait for a newer request first
   * @returns {Promise<Answer | null>}
   */
  async send(ask, pause = 0) {
    this.#controller?.abort();
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
