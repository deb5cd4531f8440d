// Texts that a Gradio event writes, for servers that have their GPU only there: the same pointers as from a stream.

import { isBusy } from "../states.mjs";
import { HttpError, request } from "./http.mjs";

/** @import { SentPointer } from "../../types.js" */

/**
 * What Gradio gives the page: all texts share one event and one value.
 * @typedef {object} GradioTransport
 * @property {(fields: object) => void} write
 * @property {(callback: (pointer: Answer | null) => void) => void} watch
 */

/** @typedef {SentPointer & { asked?: string, refused?: string }} Answer a pointer, and whose it is */

/** @param {string} run */
export const stopWriting = (run) => request(`look/${run}/stop`, { body: {} });

export class GradioEvents {
  /** @type {Map<string, (answer: Answer) => void>} */
  #listeners = new Map();

  /** @param {GradioTransport} transport */
  constructor(transport) {
    this.transport = transport;
    transport.watch((answer) => this.#listeners.get(answer?.asked ?? "")?.(/** @type {Answer} */ (answer)));
  }

  /**
   * The pointers of one text, to its end or until the signal. Throws `HttpError` where the server refuses it.
   * @param {object} fields what to write
   * @param {AbortSignal} signal
   * @returns {AsyncGenerator<SentPointer>}
   */
  async *write(fields, signal) {
    const asked = `${Date.now()}-${Math.random()}`;
    /** @type {Answer[]} */
    const arrived = [];
    let wake = () => {};
    this.#listeners.set(asked, (answer) => {
      arrived.push(answer);
      wake();
    });
    signal.addEventListener("abort", () => wake());
    let isOver = false;
    try {
      this.transport.write({ ...fields, asked });
      while (!isOver && !signal.aborted) {
        const answer = arrived.shift();
        if (answer?.refused) throw new HttpError(400, answer.refused);
        if (answer) {
          isOver = !isBusy(answer.state);
          yield answer;
        } else {
          await new Promise((resolve) => (wake = () => resolve(undefined)));
        }
      }
    } finally {
      this.#listeners.delete(asked);
      if (!isOver && signal.aborted) this.#stopLater(asked, arrived.at(-1)?.run);
    }
  }

  /**
   * Nobody follows this text any more: it ends with its next token.
   * @param {string} asked
   * @param {string | undefined} run its run, if that is known
   */
  #stopLater(asked, run) {
    this.#listeners.set(asked, (answer) => {
      this.#listeners.delete(asked);
      if (answer.run && isBusy(answer.state)) void stopWriting(answer.run);
    });
    if (run) void stopWriting(run);
  }
}
