// The same beginning continued twice, side by side, until the two texts diverge.

import { make } from "../../lib/dom.mjs";
import { unitOf } from "../../lib/words.mjs";
import { readSpeed } from "../panels/scrubber.mjs";
import { TextView } from "../panels/text_view.mjs";
import { isBusy } from "../state/pointer.mjs";
import { Store } from "../state/store.mjs";
import { stopWriting } from "../state/text_writer.mjs";

/** @import { Texts } from "../compare/texts.mjs" */
/** @import { View } from "../state/view.mjs" */

const SIDES = /** @type {const} */ ([0, 1]);
const MAX_WRITTEN = { word: 40, letter: 160 }; // tokens of a text that never diverges from the other
const WRITTEN_AFTER = { word: 10, letter: 30 }; // tokens after the texts have diverged
const SHOWN_LINE = 1; // shown of a long text: the line with the words that differ

/** @typedef {{ given: number[], head_mask: number[][] | null, title: string }} Start of a text */

export class TwoTexts {
  /** @type {AbortController | null} */
  #writing = null;
  #hasDiverged = false;
  #unit = /** @type {"word" | "letter"} */ ("word");

  /**
   * @param {View} view
   * @param {Texts | null} texts null where there is no model
   */
  constructor(view, texts) {
    this.texts = texts;
    this.stores = SIDES.map(() => new Store(view));
    this.views = this.stores.map((store, side) => {
      return new TextView(store, { isPlain: true, label: side ? "Second text" : "First text" });
    });
    this.titles = SIDES.map(() => make("h3", {}));
    const columns = SIDES.map((side) => make("section", {}, this.titles[side], this.views[side].element));
    this.element = make("div", { class: "hs-two" }, ...columns);
    for (const store of this.stores) store.on("state tokens", () => this.#follow());
  }

  /**
   * The first token at which the texts differ; the length of the shorter one if they do not differ up to there.
   */
  get divergesAt() {
    const [a, b] = this.stores.map(({ tokens }) => tokens);
    const at = a.findIndex(({ id }, i) => id !== b[i]?.id);
    return at < 0 ? a.length : at;
  }

  get areSame() {
    return this.stores.every(({ length }) => length === this.divergesAt);
  }

  /**
   * Write both, with the most probable token each time, until they have diverged. Throws if the server refuses.
   * @param {Store} like the text that both begin with
   * @param {[Start, Start]} starts
   * @returns {Promise<boolean>} whether it ran until they diverged
   */
  async write(like, starts) {
    this.end();
    const { signal } = (this.#writing = new AbortController());
    const { model } = like.pointer;
    this.#unit = unitOf(like);
    this.#hasDiverged = false;
    this.element.dataset.state = "writing";
    const fields = { model, temperature: 0, max_new_tokens: MAX_WRITTEN[this.#unit], seed: 0, context_shift: false };
    const diverged = new Promise((resolve) => (this.diverged = () => resolve(null)));
    const ended = new Promise((resolve) => signal.addEventListener("abort", resolve));
    const written = starts.map(({ given, head_mask, title }, side) => {
      const store = this.stores[side];
      this.titles[side].textContent = title;
      store.begin(like.pointer);
      store.playback.setSpeed(Number(readSpeed()));
      return this.texts?.writing.writeAside({ ...fields, prompt: given, head_mask }, (pointer) => {
        if (!signal.aborted) store.follow(pointer);
      });
    });
    await Promise.race([Promise.all(written).then(() => diverged), ended]);
    return !signal.aborted;
  }

  diverged = () => {};

  /** Stop writing, and show nothing. */
  end() {
    this.#writing?.abort();
    this.#writing = null;
    for (const store of this.stores) {
      this.#halt(store);
      store.begin();
    }
  }

  /** @param {Store} store */
  #halt(store) {
    if (isBusy(store.pointer.state)) void stopWriting(store.pointer.run);
    store.halt();
  }

  /** Stop soon after the two have diverged, and show where. */
  #follow() {
    const { stores, divergesAt, views } = this;
    if (!this.#writing || this.#hasDiverged || !stores.every(({ pointer }) => pointer.run)) return;
    for (const [side, view] of views.entries()) {
      for (let i = 0; i < stores[side].length; i++) {
        view.span(i)?.classList.toggle("hs-shared", i < divergesAt);
        view.span(i)?.classList.toggle("hs-diverge", i === divergesAt && !this.areSame);
      }
    }
    const isOver = stores.every(({ isGrowing }) => !isGrowing);
    const shortest = Math.min(...stores.map(({ length }) => length));
    if (!isOver && shortest < divergesAt + WRITTEN_AFTER[this.#unit]) return;
    this.#hasDiverged = true;
    for (const store of stores) this.#halt(store);
    const lines = views.map((view) => view.scrollTo(divergesAt, SHOWN_LINE));
    if (lines[0] !== lines[1]) for (const view of views) view.scrollTo(divergesAt, Math.max(...lines));
    this.element.dataset.state = "done";
    this.diverged();
  }
}
