// Asks the server how two texts align.

import { HttpError, request } from "../../lib/http.mjs";
import { wait } from "../../lib/latest.mjs";
import { Alignment } from "./alignment.mjs";

/** @typedef {{ run: string, sha256: string, ids: number[], n_tokens: number, n_prompt: number }} TextToAlign */

/**
 * `key` changes with everything that their alignment depends on; `isGiven`: one of them was not written by a model.
 * @typedef {{ key: string, a: TextToAlign, b: TextToAlign, isGiven: boolean, isGrowing: boolean }} TextsToAlign
 */

/** @typedef {{ pieces: number[][], divergence: number | null }} SentAlignment */

/** An alignment in the server's words, see `repeated` in web/runs/compare_routes.py. @param {SentAlignment} sent */
export function fromServer({ pieces, divergence }) {
  const all = pieces.flatMap(([a, b, inA, inB, same, count]) =>
    Array.from({ length: count }, (_, i) => ({
      a0: a + i * inA,
      a1: a + (i + 1) * inA,
      b0: b + i * inB,
      b1: b + (i + 1) * inB,
      same: same === 1,
    })),
  );
  return new Alignment(all, divergence);
}

const REQUEST_PAUSE = 100; // milliseconds between two requests while a text grows

/** Asks the server how two texts align, one request at a time, and again if they have grown in the meantime. */
export class AlignmentRequests {
  #busy = false;
  #answered = "";
  /** @type {TextsToAlign | null} */
  #wanted = null;
  /** @type {Set<string>} runs that the server no longer keeps */
  #lost = new Set();

  /**
   * @param {(alignment: Alignment) => void} show gets the alignment of the texts, which may have grown since
   * @param {(error: Error) => void} report
   */
  constructor(show, report) {
    this.show = show;
    this.report = report;
  }

  /** Whether the shown alignment is that of the texts requested last. */
  get isCurrent() {
    return this.#wanted !== null && this.#answered === this.#wanted.key;
  }

  /** @param {TextsToAlign | null} texts null for none */
  want(texts) {
    this.#wanted = texts;
    if (!texts) this.#answered = "";
    if (texts && !this.#busy) this.#ask();
  }

  async #ask() {
    this.#busy = true;
    while (this.#wanted && !this.isCurrent) {
      const texts = this.#wanted;
      try {
        const alignment = fromServer(await this.#send(texts));
        if (this.#isOf(texts)) {
          this.#answered = texts.key;
          this.show(alignment);
        }
      } catch (error) {
        if (this.#isOf(texts)) {
          this.#answered = texts.key; // requested again when the texts have grown
          this.report(/** @type {Error} */ (error));
        }
      }
      if (texts.isGrowing && !this.isCurrent) await wait(REQUEST_PAUSE);
    }
    this.#busy = false;
  }

  /** Whether these are still the runs to align. @param {TextsToAlign} texts */
  #isOf({ a, b }) {
    return this.#wanted?.a.run === a.run && this.#wanted.b.run === b.run;
  }

  /** @param {TextsToAlign} texts @returns {Promise<SentAlignment>} */
  async #send(texts) {
    /** @param {TextToAlign} text */
    const side = ({ ids, ...text }) => ({ ...text, ids: this.#lost.has(text.run) ? ids.slice(0, text.n_tokens) : [] });
    const ask = () => {
      const body = { a: side(texts.a), b: side(texts.b), is_given: texts.isGiven, is_growing: texts.isGrowing };
      return request("look/alignment", { body });
    };
    try {
      return await (await ask()).json();
    } catch (error) {
      const runs = [texts.a.run, texts.b.run];
      const isLost = error instanceof HttpError && error.status === 404;
      if (!isLost || runs.every((run) => this.#lost.has(run))) throw error;
      this.#lost = new Set(runs);
      return (await ask()).json();
    }
  }
}
