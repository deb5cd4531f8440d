// Drawing takes turns with the writing, which may run on the same machine: each drawing is followed by a rest.

const PAUSE_RATIO = 8; // multiple of the time that the drawing took
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

export class DrawThrottle {
  #spent = 0; // milliseconds, since the last rest
  #endRest = () => {};

  /** Draw; resolves once the drawing is on the screen. @param {() => void} draw */
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
    const pause = Math.max(least, Math.min(PAUSE_RATIO * this.#spent, MAX_PAUSE));
    this.#spent = 0;
    await new Promise((/** @type {(value: void) => void} */ resolve) => {
      this.#endRest = resolve;
      setTimeout(resolve, pause);
    });
  }

  /** End the rest, because a visitor is waiting. */
  hurry() {
    this.#endRest();
  }
}
