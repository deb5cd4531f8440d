// The bytes of a run from the server's routes. A run that the server no longer keeps is recomputed from what the
// browser knows of it.

import { decode } from "../../lib/frame.mjs";
import { HttpError, request } from "../../lib/server/http.mjs";

/** @import { KnownText } from "../../types.js" */

export class RunFetcher {
  #lost = false;

  /**
   * @param {string} run
   * @param {() => KnownText} knownText what the server needs to recompute the run
   */
  constructor(run, knownText) {
    this.run = run;
    this.knownText = knownText;
  }

  /**
   * The frame from row `start` on, to the newest or, about, to row `until`.
   * @param {number} start
   * @param {number | null} [until]
   */
  async rows(start, until = null) {
    return decode(await this.#fetch(`rows?start=${start}${until === null ? "" : `&until=${until}`}`));
  }

  /**
   * The exact weights of one picture, from row `start` on.
   * @param {number} layer
   * @param {number} column
   * @param {number} start
   */
  async head(layer, column, start) {
    return new Float32Array(await this.#fetch(`heads/${layer}/${column}?start=${start}`));
  }

  /** The weights of the keys of one query, picture after picture. @param {number} query */
  async query(query) {
    return new Float32Array(await this.#fetch(`queries/${query}`));
  }

  /**
   * The logits that follow the tokens from `position` on, for each of them one per token of the vocabulary.
   * @param {number} position
   * @param {number} [count] at most so many tokens; fewer where the text ends before
   */
  async logits(position, count = 1) {
    return new Float32Array(await this.#fetch(`logits/${position}?count=${count}`));
  }

  /**
   * @param {string} path
   * @returns {Promise<ArrayBuffer>}
   */
  async #fetch(path) {
    if (!this.#lost) {
      try {
        return await (await request(`look/${this.run}/${path}`)).arrayBuffer();
      } catch (error) {
        if (!(error instanceof HttpError && error.status === 404)) throw error;
        this.#lost = true;
      }
    }
    return (await request(`look/again/${path}`, { body: this.knownText() })).arrayBuffer();
  }
}
