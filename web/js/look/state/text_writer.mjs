// Asks the server to write texts, and follows each of them by its own stream.

import { readEvents } from "../../lib/server/event_stream.mjs";
import { GradioEvents, stopWriting } from "../../lib/server/gradio_events.mjs";
import { request } from "../../lib/server/http.mjs";

/** @import { GradioTransport } from "../../lib/server/gradio_events.mjs" */
/** @import { SentPointer } from "../../types.js" */

export class TextWriter {
  /** @type {Set<AbortController>} one for each text that is being written */
  #streams = new Set();

  /**
   * @param {(pointer: SentPointer) => void} follow gets every pointer of every text
   * @param {GradioTransport | false} [gradio] carries the texts in the place of streams
   */
  constructor(follow, gradio = false) {
    this.follow = follow;
    this.events = gradio && new GradioEvents(gradio);
  }

  get isWriting() {
    return this.#streams.size > 0;
  }

  /**
   * Write a text to its end. Throws `HttpError` where the server refuses it.
   * @param {object} fields what to write, as the server takes it
   * @param {Partial<SentPointer>} [more] added to every pointer
   * @param {(run: string) => void} [started] gets the run of the text once there is one
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
    if (this.events) return this.events.write(fields, signal);
    return readEvents(await request("look/write", { body: fields, signal }));
  }

  /** End a text with its next token. @param {string} run */
  async stop(run) {
    await stopWriting(run);
  }

  /** Let go of all texts at once: nobody looks at them any more. */
  abandon() {
    for (const controller of this.#streams) controller.abort();
    this.#streams.clear();
  }
}
