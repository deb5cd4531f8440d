// Requests that a text be read again, to be compared with what it was.

import { request } from "../../lib/http.mjs";
import { LatestRequest } from "../../lib/latest.mjs";

/** @import { ReadAgain, SentPointer } from "../../types.js" */
/** @import { Texts } from "./texts.mjs" */

export class RereadRequests {
  #request = new LatestRequest();

  /** @param {Texts} texts */
  constructor(texts) {
    this.texts = texts;
  }

  /** Compare the text with its reading with a mask. @param {number[][] | null} head_mask */
  withMask(head_mask) {
    this.begin({ model: this.texts.first.pointer.model, head_mask });
  }

  /** Compare it with another text. @param {number[]} ids @param {string} why the answer that led to it */
  ofText(ids, why) {
    const { model, head_mask } = this.texts.first.pointer;
    this.begin({ model, head_mask, ids, n_prompt: ids.length }, why);
  }

  /**
   * Begin a comparison of the text with another one, or with another reading of it.
   * @param {ReadAgain} reading
   * @param {string} [why] the answer of Ask that led to it
   */
  begin(reading, why = "") {
    this.texts.compare.heads.startMuting(false); // muting belonged to the previous comparison
    this.texts.compare.remember(why);
    void this.readAgain(reading);
  }

  /** Compare the text on the left with another one, or with another reading of it. @param {ReadAgain} reading */
  async readAgain(reading) {
    const { pointer, ids } = this.texts.first;
    const body = { sha256: pointer.sha256, n_prompt: pointer.n_prompt, ids, ...reading };
    this.#compare(await this.#reread(body, reading.ids ? null : pointer.chat));
  }

  /** Compare it with a text that the same model reads; why it cannot, or "". @param {string} text */
  async readText(text) {
    this.texts.compare.remember("");
    const { sha256, n_prompt, model, head_mask } = this.texts.first.pointer;
    try {
      this.#compare(await this.#read({ sha256, n_prompt, model, head_mask, text }));
      return "";
    } catch (error) {
      return /** @type {Error} */ (error).message;
    }
  }

  /** Read the text on the right with heads scaled. @param {number[][] | null} head_mask */
  async scaleHeads(head_mask) {
    const { b } = this.texts.pair.stores;
    const { sha256, n_prompt, model, chat } = b.pointer;
    const pointer = await this.#reread({ model, head_mask, sha256, n_prompt, ids: b.ids }, chat);
    if (pointer && this.texts.isComparing) this.texts.replaceSecond(pointer);
  }

  /** @param {SentPointer | null} pointer */
  #compare(pointer) {
    if (!pointer) return;
    this.texts.address.remember();
    this.texts.compareWith(pointer);
  }

  /**
   * Read a text; a failure is reported with the text on the left.
   * @param {{ sha256: string, [field: string]: unknown }} body
   * @param {SentPointer["chat"]} chat the conversation that it is, for a model that reads the same tokens
   */
  async #reread(body, chat = null) {
    try {
      const pointer = await this.#read(body);
      return pointer?.sha256 === body.sha256 ? { ...pointer, chat } : pointer;
    } catch (error) {
      this.texts.first.report(`The text could not be read again: ${/** @type {Error} */ (error).message}`);
      return null;
    }
  }

  /**
   * The pointer to a text that the server has read; null if it is no longer needed.
   * @param {object} body
   * @returns {Promise<SentPointer | null>}
   */
  async #read(body) {
    const { run } = this.texts.first.pointer;
    const response = await this.#request.send((signal) => request("look/read", { body, signal }));
    const pointer = response && (await response.json());
    return run === this.texts.first.pointer.run ? pointer : null;
  }
}
