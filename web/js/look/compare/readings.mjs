// What the server reads to be compared: the text at hand once more, or another one.

import { request } from "../../lib/http.mjs";
import { LatestRequest } from "../../lib/latest.mjs";

/** @import { Reading, SentPointer } from "../../types.js" */
/** @import { Address } from "../address.mjs" */
/** @import { Texts } from "./texts.mjs" */

export class Readings {
  #request = new LatestRequest();

  /** @param {Texts} texts @param {Address} address */
  constructor(texts, address) {
    this.texts = texts;
    this.address = address;
  }

  /** Compare the text on the left with another one, or with another reading of it. @param {Reading} reading */
  async readAgain(reading) {
    const { pointer, ids } = this.texts.first;
    this.#compare(await this.#reread({ sha256: pointer.sha256, n_prompt: pointer.n_prompt, ids, ...reading }));
  }

  /** Compare it with a text that the same model reads; why it cannot, or "". @param {string} text */
  async readText(text) {
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
    const { sha256, n_prompt, model } = b.pointer;
    const pointer = await this.#reread({ model, head_mask, sha256, n_prompt, ids: b.ids });
    if (pointer && this.texts.isComparing) this.texts.replaceSecond(pointer);
  }

  /** @param {SentPointer | null} pointer */
  #compare(pointer) {
    if (!pointer) return;
    this.address.remember();
    this.texts.compareWith(pointer);
  }

  /** Read, and report with the text where that fails. @param {object} body */
  async #reread(body) {
    try {
      return await this.#read(body);
    } catch (error) {
      this.texts.first.report(`The text could not be read again: ${/** @type {Error} */ (error).message}`);
      return null;
    }
  }

  /**
   * A pointer to a text that is read; null where it is not wanted any more.
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
