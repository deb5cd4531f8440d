// Keeps a store up to date while its text grows.

import { DrawThrottle } from "./draw_throttle.mjs";

const AHEAD = 250; // milliseconds until more is fetched of what is not shown yet

export class Updater {
  #throttle = new DrawThrottle();
  #stale = false;
  #running = false;

  /**
   * @param {object} callbacks
   * @param {() => Promise<void>} callbacks.fetchMissing
   * @param {() => boolean} callbacks.isWriting
   * @param {() => boolean} callbacks.isAhead whether what was fetched is enough for a while
   * @param {(problem: string) => void} callbacks.report gets what went wrong, "" for nothing
   */
  constructor({ fetchMissing, isWriting, isAhead, report }) {
    this.fetchMissing = fetchMissing;
    this.isWriting = isWriting;
    this.isAhead = isAhead;
    this.report = report;
  }

  /** Fetch what is missing; one request at a time, and again if more came meanwhile. */
  async update() {
    this.#stale = true;
    if (this.#running) return;
    this.#running = true;
    while (this.#stale) {
      this.#stale = false;
      try {
        await this.fetchMissing();
        this.report("");
        if (this.isWriting()) await this.#throttle.rest(this.isAhead() ? AHEAD : 0);
      } catch (error) {
        this.report(`Could not fetch the attention weights: ${/** @type {Error} */ (error).message}`);
      }
    }
    this.#running = false;
  }

  /** Skip the rest before the next round, because a visitor is waiting. */
  hurry() {
    this.#throttle.hurry();
  }

  /** Draw; while the text is written, resolve only once that is on the screen. @param {() => void} draw */
  async draw(draw) {
    if (this.isWriting()) await this.#throttle.draw(draw);
    else draw();
  }
}
