// Asks the server one question at a time, and keeps the newest answers.

import { readEvents, request } from "../../lib/http.mjs";

/** @import { AskRequest } from "./question.js" */

const KEPT = 12; // answers

/** @typedef {{ answer: any, seconds: number }} Kept an answer, and how long it took */

export class Asker {
  /** @type {Map<string, Kept>} */
  #kept = new Map();
  /** @type {AbortController | null} */
  #controller = null;
  /** The request that is being answered; "" for none. */
  asking = "";

  /**
   * @param {object} callbacks
   * @param {(fraction: number) => void} callbacks.progress from 0 to 1
   * @param {(key: string) => void} callbacks.answered the answer is kept now
   * @param {(error: Error) => void} callbacks.failed
   */
  constructor({ progress, answered, failed }) {
    this.progress = progress;
    this.answered = answered;
    this.failed = failed;
  }

  /** @param {string} key @returns {Kept | undefined} */
  kept(key) {
    return this.#kept.get(key);
  }

  /**
   * @param {string} key by which the answer is kept
   * @param {AskRequest} asked
   */
  async ask(key, { route, body, query }) {
    this.stop();
    const controller = (this.#controller = new AbortController());
    const { signal } = controller;
    this.asking = key;
    const began = performance.now();
    try {
      const path = `v1/lens/${route}${body ? "" : `?${new URLSearchParams({ ...query, stream: "true" })}`}`;
      const response = await request(path, { body: body && { ...body, stream: true }, signal });
      const answer = await this.#follow(response, signal);
      this.#keep(key, { answer, seconds: (performance.now() - began) / 1000 });
      this.asking = "";
      this.answered(key);
    } catch (error) {
      if (signal.aborted) return;
      this.asking = "";
      this.failed(/** @type {Error} */ (error));
    }
  }

  /**
   * @param {Response} response
   * @param {AbortSignal} signal
   */
  async #follow(response, signal) {
    for await (const event of readEvents(response)) {
      if (signal.aborted) break;
      if (event.error) throw new Error(event.error.message);
      if (!("progress" in event)) return event;
      this.progress(event.progress);
    }
    throw new Error("The server ended before it had answered.");
  }

  /** @param {string} key @param {Kept} value */
  #keep(key, value) {
    this.#kept.set(key, value);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > KEPT) this.#kept.delete(oldest);
  }

  /** Closing the stream ends the computation. */
  stop() {
    this.#controller?.abort();
    this.asking = "";
  }
}
