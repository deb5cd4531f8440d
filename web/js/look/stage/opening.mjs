// The opening writes itself, its threads draw themselves, and the next word drops in: once, on a first visit, or again
// when that is asked for. Any key or touch ends it.

import { isStill } from "../../lib/dom.mjs";
import { wait } from "../../lib/latest.mjs";
import { signal } from "../../vendor/signals.mjs";
import { readStored, writeStored } from "../../widgets/storage.mjs";

/** @import { Sentence } from "./sentence.mjs" */

const STORED = "headscope-played"; // storage key: whether an opening has played before
const [TOKEN, PAUSE] = [75, 150]; // milliseconds for a token, and for a mark
const THREADS = 1700; // milliseconds in which threads draw themselves

export class Opening {
  #part = signal(/** @type {"" | "text" | "threads"} */ (""));
  #isHurried = false;
  #hurry = () => {};

  /**
   * @param {HTMLElement} stage shows in `data-play` what plays
   * @param {Sentence} sentence
   */
  constructor(stage, sentence) {
    this.stage = stage;
    this.sentence = sentence;
  }

  /** What plays. */
  get part() {
    return this.#part.value;
  }

  /** @param {Opening["part"]} part */
  #show(part) {
    this.#part.value = part;
    if (part) this.stage.dataset.play = part;
    else delete this.stage.dataset.play;
  }

  /** Show the end at once. */
  end() {
    this.#isHurried = true;
    this.#hurry();
  }

  /** Wait, unless the visitor is in a hurry. @param {number} milliseconds */
  #pause(milliseconds) {
    const hurried = new Promise((/** @type {(value: void) => void} */ resolve) => (this.#hurry = resolve));
    return this.#isHurried ? Promise.resolve() : Promise.race([wait(milliseconds), hurried]);
  }

  /** Play; from the beginning. */
  async play() {
    if (this.part || isStill()) return;
    this.#isHurried = false;
    const words = [...this.sentence.text.querySelectorAll(".hs-word-token")];
    for (const word of words) word.classList.add("hs-waiting");
    this.#show("text");
    for (const word of words) {
      word.classList.remove("hs-waiting");
      await this.#pause(/[.,!?]$/.test(word.textContent ?? "") ? PAUSE : TOKEN);
    }
    if (!this.#isHurried) this.#show("threads");
    await this.#pause(THREADS);
    this.#show("");
  }

  /** Play on a first visit. */
  playOnce() {
    if (readStored(STORED) === "yes") return;
    writeStored(STORED, "yes");
    void this.play();
  }
}
