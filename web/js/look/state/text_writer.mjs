// Asks the server to write texts, and follows each of them by its own stream.

import { readEvents } from "../../lib/server/event_stream.mjs";
import { request } from "../../lib/server/http.mjs";

/** @import { SentPointer } from "../../types.js" */

/**
 * Gradio's events, in the place of streams.
 * @typedef {object} GradioTransport
 * @property {(fields: object) => void} write
 * @property {(callback: (pointer: SentPointer) => void) => void} watch
 */

export class TextWriter {
  /** @type {Set<AbortController>} one for each text that is being written */
  #streams = new Set();

  /**
   * @param {(pointer: SentPointer) => void} follow gets every pointer of every text
   * @param {GradioTransport | false} [gradio]
   */
  constructor(follow, gradio = false) {
    this.follow = follow;
    this.gradio = gradio;
    if (gradio) gradio.watch((pointer) => pointer && follow(pointer));
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
    if (this.gradio) {
      this.gradio.write(fields);
      return;
    }
    const controller = new AbortController();
    this.#streams.add(controller);
    /** @type {SentPointer | null} */
    let last = null;
    try {
      const response = await request("look/write", { body: fields, signal: controller.signal });
      for await (const pointer of readEvents(response)) {
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

  /** End a text with its next token. @param {string} run */
  async stop(run) {
    await request(`look/${run}/stop`, { body: {} });
  }

  /** Let go of all texts at once: nobody looks at them any more. */
  abandon() {
    for (const controller of this.#streams) controller.abort();
    this.#streams.clear();
  }
}
