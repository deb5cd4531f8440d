// Stepping through a text token by token, and the speed at which it appears.

import { make, setHidden } from "../../lib/dom.mjs";
import { icon } from "../../lib/icons.mjs";
import { exact, surprise } from "../../lib/numbers.mjs";
import { visible } from "../../lib/words.mjs";
import { readStored, writeStored } from "../../widgets/storage.mjs";
import { dropdown, rangeInput, setRange, smallButton } from "../../widgets/controls.mjs";
import { whenever } from "../../lib/reactive.mjs";

/** @import { Clock, ScrubSource, Token } from "../../types.js" */

export const PACES = { 5: "5 tok/s", 20: "20 tok/s", 60: "60 tok/s", 0: "at once" }; // tokens per second
const READING = { word: 12, letter: 60 }; // tokens per second that somebody can follow
const STORED = "headscope-speed"; // storage key of the chosen speed

export class Scrubber {
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #timer;

  /**
   * @param {ScrubSource} store
   * @param {Clock} clock
   * @param {(step: number) => { text: string, numbers: string }} describe the token of a step
   * @param {HTMLElement[]} actions buttons for that token
   */
  constructor(store, clock, describe, ...actions) {
    this.store = store;
    this.clock = clock;
    this.describe = describe;
    this.range = rangeInput({ step: 1, "aria-label": "Step" });
    this.range.addEventListener("input", () => {
      this.pause();
      this.goto(Number(this.range.value));
    });
    this.button = smallButton("", () => this.#press(), { class: "hs-play" });
    const skip = () => store.playback.skip();
    this.skip = smallButton("", skip, { class: "hs-play", hidden: true });
    this.skip.setAttribute("aria-label", "Skip to the end");
    this.skip.title = "Skip to the end";
    this.skip.append(icon("end"));
    this.speed = dropdown("Speed", PACES, (key) => this.setSpeed(key));
    this.speed.title = "How fast text appears and is replayed. The model always writes as fast as it can.";
    this.status = make("output", { class: "hs-scrubber-status" });
    const controls = [this.button, this.range, this.skip, this.speed, ...actions];
    this.element = make("div", { class: "hs-scrubber" }, ...controls, this.status);
    this.speed.value = readPace();
    store.playback.setSpeed(Number(readPace()));
    this.pause();
    whenever(
      () => [...store.progress, clock.step, clock.chosen, clock.leading],
      () => this.draw(),
    );
  }

  /** Pause or resume the text; replay it if all of it is shown. */
  #press() {
    const { playback, isGrowing } = this.store;
    if (this.#timer) this.pause();
    else if (!isGrowing) this.play();
    else {
      playback.pause(!playback.isPaused);
      this.#nameIdleButton();
    }
  }

  /** @param {string} key of PACES */
  setSpeed(key) {
    this.speed.value = key;
    choosePace(this.store.playback, key);
    if (this.#timer) this.play();
  }

  /** @param {number} step */
  goto(step) {
    // At the end, follow the writing.
    this.clock.goto(step >= this.store.length - 1 ? null : step);
  }

  play() {
    const { store, clock } = this;
    const { run } = store.pointer;
    clearInterval(this.#timer);
    if (clock.step === null) this.goto(store.firstReplayed);
    const period = 1000 / (Number(this.speed.value) || 60);
    this.#timer = setInterval(() => {
      if (store.pointer.run !== run || clock.step === null) this.pause();
      else this.goto(clock.step + 1);
    }, period);
    this.#nameButton("Pause", "pause");
  }

  pause() {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#nameIdleButton();
  }

  #nameIdleButton() {
    const { playback, isGrowing } = this.store;
    if (!isGrowing) this.#nameButton("Replay", "play");
    else if (playback.isPaused) this.#nameButton("Resume", "play");
    else this.#nameButton("Pause", "pause");
  }

  /** @param {string} name @param {"play" | "pause"} sign */
  #nameButton(name, sign) {
    if (this.button.title === name) return;
    this.button.setAttribute("aria-label", name);
    this.button.title = name;
    this.button.replaceChildren(icon(sign));
  }

  draw() {
    const { store, clock, range } = this;
    const { length } = store;
    const { chosen } = clock;
    const at = chosen ?? (clock.leading ? length - 1 : null); // nothing follows the newest row
    this.element.classList.toggle("hs-idle", at === null);
    setHidden(this.skip, !store.isGrowing);
    range.disabled = at === null || length - 1 <= store.firstReplayed;
    this.button.disabled = range.disabled && !store.isGrowing;
    if (at === null) {
      this.status.textContent = "";
      return;
    }
    setRange(range, at, { min: store.firstReplayed, max: length - 1 });
    const { text, numbers } = chosen === null ? { text: "", numbers: "" } : this.describe(chosen);
    this.status.replaceChildren(make("b", {}, text), numbers && ` ${numbers}`);
    range.setAttribute("aria-valuetext", numbers ? `${text}, ${numbers}` : text);
    if (clock.step === null) this.pause();
    else if (!this.#timer) this.#nameIdleButton();
  }
}

/** A token with its probability. @param {Token} token @param {number} position */
export function describeToken(token, position) {
  const bits = surprise(token);
  const numbers = bits === null ? "" : `probability ${exact(2 ** -bits)}, ${bits.toFixed(2)} bits`;
  return { text: `“${visible(token.text)}” token ${position}`, numbers };
}

export function readPace() {
  const pace = readStored(STORED);
  return Object.hasOwn(PACES, pace) ? pace : "20";
}

/** The pace that the visitor has chosen; "" for none. */
export const chosenPace = () => (Object.hasOwn(PACES, readStored(STORED)) ? readPace() : "");

/** The tokens per second of a text that is watched as it is written. @param {"word" | "letter"} unit */
export const watchedPace = (unit) => (chosenPace() ? Number(chosenPace()) : READING[unit]);

/**
 * From now on texts appear at this pace.
 * @param {Pick<import("../state/playback.mjs").Playback, "setSpeed">} playback
 * @param {string} key of PACES; "" for none
 */
export function choosePace(playback, key) {
  if (key) playback.setSpeed(Number(key));
  writeStored(STORED, key);
}
