// Keeps a store up to date while its text grows. Drawing takes turns with the writing, which may run on the same
// machine: each drawing is followed by a rest.

const AHEAD = 250; // milliseconds until the next fetch while enough data has arrived

export class Updater {
  #throttle = new DrawThrottle();
  #stale = false;
  #running = false;

  /**
   * @param {object} callbacks
   * @param {() => Promise<void>} callbacks.fetchMissing
   * @param {() => boolean} callbacks.isWriting
   * @param {() => boolean} callbacks.isAhead whether enough was fetched for a while
   * @param {(problem: string) => void} callbacks.report called with what went wrong, or ""
   */
  constructor({ fetchMissing, isWriting, isAhead, report }) {
    this.fetchMissing = fetchMissing;
    this.isWriting = isWriting;
    this.isAhead = isAhead;
    this.report = report;
  }

  /** Fetch what is missing; one request at a time, and again if more has come in the meantime. */
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

  /** Draw; while the text is being written, resolve only once the drawing is on the screen. @param {() => void} draw */
  async draw(draw) {
    if (this.isWriting()) await this.#throttle.draw(draw);
    else draw();
  }
}

const REST = 8; // multiple of the time that the drawing took
const MAX_PAUSE = 600; // milliseconds
const HIDDEN = 200; // milliseconds after which no frame is expected: hidden pages have none

/** Resolves when the last change is on the screen. @returns {Promise<void>} */
const painted = () =>
  new Promise((resolve) => {
    setTimeout(resolve, HIDDEN);
    requestAnimationFrame(() => {
      const channel = new MessageChannel();
      channel.port1.onmessage = () => resolve();
      channel.port2.postMessage(null);
    });
  });

class DrawThrottle {
  #spent = 0; // milliseconds, since the last rest
  #endRest = () => {};

  /** @param {() => void} draw */
  async draw(draw) {
    const began = performance.now();
    draw();
    await painted();
    this.#spent += performance.now() - began;
  }

  /**
   * Wait in proportion to the drawing time since the last rest, or until `hurry` is called.
   * @param {number} least milliseconds
   * @returns {Promise<void>}
   */
  async rest(least = 0) {
    const pause = Math.max(least, Math.min(REST * this.#spent, MAX_PAUSE));
    this.#spent = 0;
    await new Promise((/** @type {(value: void) => void} */ resolve) => {
      this.#endRest = resolve;
      setTimeout(resolve, pause);
    });
  }

  hurry() {
    this.#endRest();
  }
}
