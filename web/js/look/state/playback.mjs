// How much of a text is shown: it appears at a pace that can be followed, however fast it is written.

export class Playback {
  #shown = 0; // tokens
  #known = 0;
  #began = 0; // when the pace was last set, in milliseconds, and how much was shown then
  #from = 0;
  #frame = 0;
  #atOnce = false;
  #speed = 20; // tokens per second, 0 for no pace

  /** @param {() => void} show is called in a frame in which more is shown */
  constructor(show) {
    this.show = show;
  }

  /** How many tokens are shown. */
  get shown() {
    return this.#shown;
  }

  get isBehind() {
    return this.#shown < this.#known;
  }

  /** Another text: all that is known of it is shown. @param {number} known */
  reset(known) {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#atOnce = false;
    this.#shown = this.#known = this.#from = known;
  }

  /** More is known. @param {number} known @param {boolean} atOnce whether it is shown without a pace */
  extend(known, atOnce) {
    this.#known = known;
    if (atOnce || this.#atOnce || !this.#speed || document.hidden) {
      const hasMore = this.#shown < known;
      this.#shown = known;
      if (hasMore && !atOnce) this.show();
      return;
    }
    if (!this.#frame && this.isBehind) {
      this.#restart();
      this.#frame = requestAnimationFrame((now) => this.#advance(now));
    }
  }

  /** @param {number} speed tokens per second */
  setSpeed(speed) {
    this.#speed = speed;
    if (!speed && this.isBehind) this.skip();
    this.#restart();
  }

  /** Show everything, and what is still to come as soon as it is known. */
  skip() {
    this.#atOnce = true;
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#shown = this.#known;
    this.show();
  }

  #restart() {
    this.#began = performance.now();
    this.#from = this.#shown;
  }

  /** @param {number} now */
  #advance(now) {
    // The first token of a pause is shown at once, the others each a period later.
    const due = this.#from + 1 + Math.floor((Math.max(now - this.#began, 0) / 1000) * this.#speed);
    const shown = Math.min(this.#known, Math.max(this.#shown, due));
    if (shown > this.#shown) {
      this.#shown = shown;
      this.show();
    }
    this.#frame = this.isBehind ? requestAnimationFrame((later) => this.#advance(later)) : 0;
  }
}
