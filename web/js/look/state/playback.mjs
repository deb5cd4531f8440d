// How much of a text is shown: it appears at a pace that can be followed, however fast it is written.

const PATIENCE = 80; // milliseconds that a token waits for the pictures of its step
const FIRST_PATIENCE = 250; // of the first token of a text, for which everything has to be fetched
const REST = 1; // times as long as a drawing took

export class Playback {
  #shown = 0; // tokens
  #known = 0;
  #began = 0; // when the pace was last set, in milliseconds, and how much was shown then
  #from = 0;
  #frame = 0;
  #atOnce = false;
  #speed = 20; // tokens per second, 0 for no pace
  #due = 0; // when the next token was due but not ready, 0 where it is not late
  #shownAt = 0; // when `show` last ended, and how long it took
  #took = 0;
  #hasBegun = false; // whether a token of this text was shown at its pace
  #isPaused = false;

  /**
   * @param {() => void} show is called in a frame in which more is shown
   * @param {(n: number) => boolean} [isReady] whether everything that is shown beside the first n tokens has arrived
   */
  constructor(show, isReady = () => true) {
    this.show = show;
    this.isReady = isReady;
  }

  /** How many tokens are shown. */
  get shown() {
    return this.#shown;
  }

  get isBehind() {
    return this.#shown < this.#known;
  }

  /** How many tokens will be shown half a second from now. */
  get soon() {
    return this.#after(0.5);
  }

  /** Whether more rows should be fetched, of the `rows` that there are. @param {number} here @param {number} rows */
  needsRows(here, rows) {
    return here < Math.min(rows, this.isBehind ? this.#after(0.25) : rows);
  }

  /** How many to fetch then: enough for half a second. @param {number} rows */
  rowsToFetch(rows) {
    return this.isBehind ? Math.min(rows, this.soon) : rows;
  }

  /** @param {number} seconds */
  #after(seconds) {
    return Math.min(this.#known, this.#shown + Math.ceil(this.#speed * seconds));
  }

  /** Whether it waits until it may go on. */
  get isPaused() {
    return this.#isPaused;
  }

  /** Wait with what is not shown yet, or go on. @param {boolean} isPaused */
  pause(isPaused) {
    this.#isPaused = isPaused;
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#begin();
  }

  /** Another text: all that is known of it is shown. @param {number} known */
  reset(known) {
    cancelAnimationFrame(this.#frame);
    this.#frame = this.#due = 0;
    this.#atOnce = this.#hasBegun = this.#isPaused = false;
    this.#shown = this.#known = this.#from = known;
  }

  /** More is known. @param {number} known @param {boolean} atOnce whether it is shown without a pace */
  extend(known, atOnce) {
    this.#known = known;
    if (atOnce || this.#atOnce || ((!this.#speed || document.hidden) && !this.#isPaused)) {
      const hasMore = this.#shown < known;
      this.#shown = known;
      if (hasMore && !atOnce) this.show();
      return;
    }
    this.#begin();
  }

  #begin() {
    if (this.#frame || this.#isPaused || !this.isBehind) return;
    this.#restart();
    this.#frame = requestAnimationFrame((now) => this.#advance(now));
  }

  /** @param {number} speed tokens per second */
  setSpeed(speed) {
    this.#speed = speed;
    if (!speed && this.isBehind && !this.#isPaused) this.skip();
    this.#restart();
  }

  /** Show everything, and what is still to come as soon as it is known. */
  skip() {
    this.#atOnce = true;
    this.#isPaused = false;
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
    // What takes long to draw is drawn less often, so that there is time left for the writing and the visitor.
    if (now - this.#shownAt >= REST * this.#took) {
      const shown = this.#next(now);
      if (shown > this.#shown) {
        this.#shown = shown;
        this.#hasBegun = true;
        const began = performance.now();
        this.show();
        this.#shownAt = performance.now();
        this.#took = this.#shownAt - began;
      }
    }
    this.#frame = this.isBehind ? requestAnimationFrame((later) => this.#advance(later)) : 0;
  }

  /** How many tokens to show now. @param {number} now */
  #next(now) {
    // The first token of a pause is shown at once, the others each a period later.
    const due = this.#from + 1 + Math.floor((Math.max(now - this.#began, 0) / 1000) * this.#speed);
    const wanted = Math.min(this.#known, due);
    let shown = this.#shown;
    while (shown < wanted && this.isReady(shown + 1)) shown++;
    if (shown > this.#shown || wanted === shown) {
      this.#due = 0;
      return shown;
    }
    this.#due ||= now;
    if (now - this.#due < (this.#hasBegun ? PATIENCE : FIRST_PATIENCE)) return shown;
    this.#due = 0;
    this.#began = now; // the text goes on without them, and from here at its pace
    this.#from = shown;
    return shown + 1;
  }
}
