// How much of a text is shown: it appears at a readable speed, however fast the model writes it.

import { batch, signal } from "../../vendor/signals.mjs";

const MAX_DELAY = 80; // milliseconds that a token waits for the pictures of its step
const MAX_FIRST_DELAY = 250; // for the first token of a text, when everything has to be fetched
const PAUSE_RATIO = 1; // multiple of the time that a drawing took
const SOON = 0.5; // seconds of playback for which everything should have arrived
const LONGEST_WORD = 8; // tokens that appear together; an address without spaces goes on at its pace
const FETCHED = 1.5; // seconds of playback for which rows are fetched: a server with many visitors gets few requests

export class Playback {
  #tokens = { shown: signal(0), known: signal(0) };
  #began = 0; // when the clock was last reset, in milliseconds
  #from = 0; // tokens shown then
  #frame = 0;
  #atOnce = false;
  #speed = 20; // tokens per second, 0 for all at once
  #due = 0; // when the next token was due but not ready, 0 if it is not late
  #isLate = false; // whether the text continues without its pictures, which take longer to arrive
  #shownAt = 0; // when `show` last ended, and how long it took
  #took = 0;
  #hasBegun = false; // whether a token of this text has been shown at this speed
  #isPaused = false;
  #hasHalted = signal(false);

  /**
   * @param {() => void} show called in each frame in which more is shown
   * @param {(n: number) => boolean} [isReady] whether everything shown with the first n tokens has arrived
   * @param {(n: number) => boolean} [isJoined] whether token n continues the word before it: words appear whole, since
   *   a part of one may move to the next line when it is continued
   */
  constructor(show, isReady = () => true, isJoined = () => false) {
    this.show = show;
    this.isReady = isReady;
    this.isJoined = isJoined;
  }

  /** How many tokens are shown. */
  get shown() {
    return this.#shown;
  }

  get #shown() {
    return this.#tokens.shown.value;
  }

  set #shown(n) {
    this.#tokens.shown.value = n;
  }

  get #known() {
    return this.#tokens.known.value;
  }

  set #known(n) {
    this.#tokens.known.value = n;
  }

  get isBehind() {
    return this.#shown < this.#known;
  }

  /** How many tokens will be shown half a second from now. */
  get soon() {
    return this.#after(SOON);
  }

  /** Whether more rows should be fetched, of the `rows` that exist. @param {number} here @param {number} rows */
  needsRows(here, rows) {
    return here < Math.min(rows, this.isBehind ? this.soon : rows);
  }

  /** Up to which row to fetch. @param {number} rows */
  rowsToFetch(rows) {
    return this.isBehind ? Math.min(rows, this.#after(FETCHED)) : rows;
  }

  /** @param {number} seconds */
  #after(seconds) {
    return Math.min(this.#known, this.#shown + Math.ceil(this.#speed * seconds));
  }

  /** Whether it is paused. */
  get isPaused() {
    return this.#isPaused;
  }

  /** Pause, or resume. @param {boolean} isPaused */
  pause(isPaused) {
    this.#isPaused = isPaused;
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#begin();
  }

  get hasHalted() {
    return this.#hasHalted.value;
  }

  /** Show no more of this text than now. */
  halt() {
    batch(() => {
      this.#hasHalted.value = true;
      this.#known = this.#shown;
    });
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
  }

  /** Start with another text, and show all known tokens of it. @param {number} known */
  reset(known) {
    cancelAnimationFrame(this.#frame);
    this.#frame = this.#due = 0;
    this.#atOnce = this.#hasBegun = this.#isPaused = this.#isLate = false;
    batch(() => {
      this.#hasHalted.value = false;
      this.#shown = this.#known = this.#from = known;
    });
  }

  /** More tokens are known. @param {number} known @param {boolean} atOnce whether they are shown at once */
  extend(known, atOnce) {
    if (this.hasHalted) return;
    batch(() => {
      this.#known = known;
      if (!atOnce && !this.#atOnce && ((this.#speed && !document.hidden) || this.#isPaused)) return;
      const hasMore = this.#shown < known;
      this.#shown = known;
      if (hasMore && !atOnce) this.show();
    });
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

  /** Show all known tokens, and later ones as soon as they are known. */
  skip() {
    if (this.hasHalted) return;
    this.#atOnce = true;
    this.#isPaused = false;
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#showUpTo(this.#known);
  }

  /** @param {number} shown */
  #showUpTo(shown) {
    batch(() => {
      this.#shown = shown;
      this.show();
    });
  }

  #restart() {
    this.#began = performance.now();
    this.#from = this.#shown;
  }

  /** @param {number} now */
  #advance(now) {
    // Slow drawings are made less often, which leaves time for the writing and for input.
    if (now - this.#shownAt >= PAUSE_RATIO * this.#took) {
      const shown = this.#next(now);
      if (shown > this.#shown) {
        this.#hasBegun = true;
        const began = performance.now();
        this.#showUpTo(shown);
        this.#shownAt = performance.now();
        this.#took = this.#shownAt - began;
      }
    }
    this.#frame = this.isBehind ? requestAnimationFrame((later) => this.#advance(later)) : 0;
  }

  /** How many tokens to show now. @param {number} now */
  #next(now) {
    // After a pause the first token is shown at once, the others one period apart.
    const due = this.#from + 1 + Math.floor((Math.max(now - this.#began, 0) / 1000) * this.#speed);
    const wanted = Math.min(this.#known, due);
    let shown = this.#shown;
    while (shown < wanted) {
      const end = this.#wordEnd(shown + 1);
      if (!this.isReady(end)) break;
      shown = end;
    }
    if (shown > this.#shown || wanted <= shown) {
      this.#due = 0;
      if (shown > this.#shown) this.#isLate = false;
      return shown;
    }
    if (this.#isLate) return this.#wordEnd(wanted);
    this.#due ||= now;
    if (now - this.#due < (this.#hasBegun ? MAX_DELAY : MAX_FIRST_DELAY)) return shown;
    this.#due = 0;
    this.#isLate = true;
    this.#began = now; // the text continues without them, and the clock restarts
    this.#from = shown;
    return this.#wordEnd(shown + 1);
  }

  /** How many tokens to show so that the last word is whole, as far as it is known. @param {number} shown */
  #wordEnd(shown) {
    const most = Math.min(this.#known, shown + LONGEST_WORD - 1);
    let end = shown;
    while (end < most && this.isJoined(end)) end++;
    return end;
  }
}
