// Asks the server to write texts. Each has its own stream or, where the GPU is only available inside Gradio events,
// shares one such event with the others.

import { HttpError, readEvents, request } from "../../lib/http.mjs";
import { isBusy } from "./pointer.mjs";

/** @import { SentPointer } from "../../types.js" */

export class TextWriter {
  /** @type {Set<AbortController>} one for each text that is being written */
  #streams = new Set();

  /**
   * @param {(pointer: SentPointer) => void} follow gets every pointer of every text
   * @param {Promise<GradioTransport> | false} [gradio] carries the texts instead of streams
   */
  constructor(follow, gradio = false) {
    this.follow = follow;
    this.events = gradio && gradio.then((transport) => new GradioEvents(transport));
  }

  get isWriting() {
    return this.#streams.size > 0;
  }

  /**
   * Write a text to its end. Throws `HttpError` if the server refuses it.
   * @param {object} fields what to write, as the server takes it
   * @param {Partial<SentPointer>} [more] added to every pointer
   * @param {(run: string) => void} [started] gets the run of the text once it is known
   */
  async write(fields, more = {}, started = () => {}) {
    const controller = new AbortController();
    this.#streams.add(controller);
    /** @type {SentPointer | null} */
    let last = null;
    try {
      for await (const pointer of await this.#pointers(fields, controller.signal)) {
        const current = { ...pointer, ...more };
        const isFirst = !last;
        last = current;
        this.follow(current);
        if (isFirst) started(current.run ?? "");
      }
    } catch (error) {
      if (controller.signal.aborted) return;
      if (!last) throw error;
      this.follow({ ...last, new: [], state: "failed", why: "The connection to the server was lost." });
    } finally {
      this.#streams.delete(controller);
    }
  }

  /**
   * @param {object} fields
   * @param {AbortSignal} signal
   * @returns {Promise<AsyncIterable<SentPointer>>}
   */
  async #pointers(fields, signal) {
    if (this.events) return (await this.events).write(fields, signal);
    return readEvents(await request("look/write", { body: fields, signal }));
  }

  /** Close all streams at once: their texts are no longer shown. */
  abandon() {
    for (const controller of this.#streams) controller.abort();
    this.#streams.clear();
  }
}

/**
 * The transport that Gradio offers: all texts share one event and one value.
 * @typedef {object} GradioTransport
 * @property {(fields: object) => void} write
 * @property {(callback: (pointer: Answer | null) => void) => void} watch
 */

/** @typedef {SentPointer & { asked?: string, refused?: string }} Answer a pointer, and whose it is */

/** Stop a text after its next token. @param {string} run */
export const stopWriting = (run) => request(`look/${run}/stop`, { body: {} });

class GradioEvents {
  /** @type {Map<string, (answer: Answer) => void>} */
  #listeners = new Map();

  /** @param {GradioTransport} transport */
  constructor(transport) {
    this.transport = transport;
    transport.watch((answer) => this.#listeners.get(answer?.asked ?? "")?.(/** @type {Answer} */ (answer)));
  }

  /**
   * The pointers of one text, to its end or until the signal. Throws `HttpError` if the server refuses it.
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
   * Stop following a text, and stop writing it after its next token.
   * @param {string} asked
   * @param {string | undefined} run its run, if known
   */
  #stopLater(asked, run) {
    this.#listeners.set(asked, (answer) => {
      this.#listeners.delete(asked);
      if (answer.run && isBusy(answer.state)) void stopWriting(answer.run);
    });
    if (run) void stopWriting(run);
  }
}
