// Fetches the data of a run and its model's vocabulary from the server. A run that the server no longer keeps is
// recomputed from the text that the browser knows.

import { HttpError, request } from "../../lib/http.mjs";
import { N_METRICS } from "../../lib/metrics.mjs";
import { PREPARED, preparedAnswer, preparedVocabulary } from "./prepared.mjs";

/** @import { Mask } from "../../lib/head_masks.mjs" */
/** @import { ShownText } from "./shown_text.mjs" */
/** @import { Frame, FrameHeader, KnownText } from "../../types.js" */

export class RunFetcher {
  #lost = false;
  #named = () => {};
  /** @type {Promise<void>} resolves once the server knows the run by a name */
  #isNamed = new Promise((resolve) => (this.#named = resolve));

  /**
   * @param {string} run
   * @param {() => KnownText} knownText what the server needs to recompute the run
   */
  constructor(run, knownText) {
    this.run = run;
    this.knownText = knownText;
  }

  /** The id under which the server has the text of a prepared opening. @param {string} run */
  name(run) {
    this.run = run;
    this.#named();
  }

  /**
   * The frame from row `start` on, up to the newest row or about to row `until`.
   * @param {number} start
   * @param {number | null} [until]
   */
  async rows(start, until = null) {
    return decode(await this.#fetch(`rows?start=${start}${until === null ? "" : `&until=${until}`}`));
  }

  /**
   * The exact weights of one picture, from row `start` on, at least to row `until`.
   * @param {number} layer
   * @param {number} column
   * @param {number} start
   * @param {number} until
   */
  async head(layer, column, start, until) {
    const least = start ? `&until=${until}` : ""; // prepared openings have the weights from row 0 on
    return new Float32Array(await this.#fetch(`heads/${layer}/${column}?start=${start}${least}`));
  }

  /** The weights of one query, picture after picture. @param {number} query */
  async query(query) {
    return new Float32Array(await this.#fetch(`queries/${query}`));
  }

  /**
   * The logits after each token from `position` on, one per token of the vocabulary.
   * @param {number} position
   * @param {number} [count] at most this many tokens; fewer if the text ends earlier
   */
  async logits(position, count = 1) {
    return new Float32Array(await this.#fetch(`logits/${position}?count=${count}`));
  }

  /**
   * @param {string} path
   * @returns {Promise<ArrayBuffer>}
   */
  async #fetch(path) {
    if (this.run === PREPARED) {
      const answer = preparedAnswer(path);
      if (answer) return answer;
      await this.#isNamed;
    }
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

const LENGTH_BYTES = 4;
const FLOAT_BYTES = 4;

/**
 * Throws `RangeError` if the bytes end too early.
 * @param {ArrayBuffer} buffer
 * @returns {Frame}
 */
export function decode(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  /** @type {FrameHeader} */
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, LENGTH_BYTES, length)));
  const start = LENGTH_BYTES + length;
  const end = start + FLOAT_BYTES * header.pictures * N_METRICS;
  if (end > buffer.byteLength) throw new RangeError(`a frame of ${buffer.byteLength} bytes lacks its metrics`);
  return {
    header,
    metrics: new Float32Array(buffer.slice(start, end)), // a copy, because floats must be aligned to 4 bytes
    thumbnails: new Uint8Array(buffer, end),
  };
}

/** @type {Map<string, Promise<string[]>>} */
const requested = new Map();

/** The texts of all tokens in the order of their ids, fetched once per model. @param {string} sha256 */
export function vocabulary(sha256) {
  const prepared = preparedVocabulary(sha256);
  if (prepared) return Promise.resolve(prepared);
  let texts = requested.get(sha256);
  if (!texts) {
    texts = fetchTexts(sha256);
    texts.catch(() => requested.delete(sha256)); // so that the next call tries again
    requested.set(sha256, texts);
  }
  return texts;
}

/**
 * @param {string} sha256
 * @returns {Promise<string[]>}
 */
const fetchTexts = async (sha256) => (await request(`look/vocabulary/${sha256}.json`)).json();

/**
 * The logits after a token of a text, with heads scaled.
 * @param {ShownText} store
 * @param {Mask} head_mask
 * @param {number} position
 */
export async function scaledLogits({ pointer, ids }, head_mask, position) {
  const { sha256, n_prompt } = pointer;
  const body = { sha256, n_prompt, ids: ids.slice(0, position + 1), head_mask };
  const response = await request(`look/scaled/${position}`, { body });
  return new Float32Array(await response.arrayBuffer());
}
