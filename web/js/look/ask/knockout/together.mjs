// Heads that are removed together: which ones, and what the text loses without all of them at once.

import { make } from "../../../lib/dom.mjs";
import { fixed, probabilityChange, signed } from "../../../lib/numbers.mjs";
import { request } from "../../../lib/server/http.mjs";
import { LatestRequest } from "../../../lib/server/latest.mjs";
import { listed, pictureName } from "../../../lib/words.mjs";
import { textBody } from "../about_text.mjs";
import { changedHeads, decodeMask, encodeMask, withScale } from "../desk/masks.mjs";

/** @import { Place } from "../../../types.js" */
/** @import { Store } from "../../state/store.mjs" */
/** @import { Mixer } from "../desk/mixer.mjs" */
/** @import { Mask } from "../desk/masks.mjs" */

export const NOBODY = "none"; // in links
const SUGGESTED = 3; // heads
const MUCH = 0.15; // of the sum, by which the whole must differ to be called more or less

/**
 * How the loss without all of them compares with their losses one by one, in a sentence.
 * @param {number} together nats
 * @param {number} sum
 */
export function comparison(together, sum) {
  const [whole, parts] = [together, sum].map((value) => signed(value, (size) => fixed(size, 3)));
  const numbers = `${whole} nats per token; one by one they add up to ${parts}`;
  const margin = MUCH * Math.abs(sum);
  if (together > sum + margin) return `${numbers}. That is more: alone, each is partly made up for by the others.`;
  if (together < sum - margin) return `${numbers}. That is less: they partly do one job together.`;
  return `${numbers}, about the same: each does its own part.`;
}

export class Together {
  #request = new LatestRequest();
  /** @type {Map<string, { delta: number }>} answers by what was asked */
  #known = new Map();
  #asked = "";
  /** @type {number[][]} the changes of single heads */
  #single = [];
  /** @type {Mask} */
  #mask = null;
  #method = "zero";

  /**
   * @param {Store} store
   * @param {Mixer} mixer
   * @param {(encoded: string) => void} choose
   */
  constructor(store, mixer, choose) {
    this.store = store;
    this.choose = choose;
    this.chips = make("p", { class: "hs-chips" });
    this.sentence = make("p", { class: "hs-answer", role: "status" });
    this.mute = make("button", { type: "button", class: "hs-small" }, "Switch them off");
    this.mute.title = "Opens the mixing desk with these heads muted";
    this.mute.addEventListener("click", () => mixer.set(this.#mask));
    this.compare = make("button", { type: "button", class: "hs-small" }, "Compare the heads");
    this.compare.title = "The text read without them, beside the text as it is";
    this.compare.addEventListener("click", () => mixer.compare(this.#mask));
    this.buttons = make("div", { class: "hs-controls" }, this.mute, this.compare);
    this.element = make("div", { class: "hs-together" }, this.chips, this.sentence, this.buttons);
  }

  get places() {
    return changedHeads(this.#mask);
  }

  /** @param {Place} place */
  has([layer, head]) {
    return this.#mask?.[layer]?.[head] === 0;
  }

  /** @param {Place} place */
  toggle(place) {
    this.set(withScale(this.#mask, this.store.pointer, [place], this.has(place) ? 1 : 0));
  }

  /** @param {Mask} mask */
  set(mask) {
    this.choose(mask ? encodeMask(mask) : NOBODY);
  }

  /**
   * @param {string} encoded the heads that were chosen
   * @param {string} method what replaces them
   * @param {number[][]} single `[layer][head]` the change of the loss without each head
   */
  show(encoded, method, single) {
    const found = encoded === NOBODY ? null : decodeMask(encoded, this.store.pointer);
    this.#mask = found ?? null;
    this.#method = method;
    this.#single = single;
    this.draw();
  }

  draw() {
    const { store, places } = this;
    this.buttons.hidden = !places.length;
    if (!places.length) {
      const rows = this.#single.flatMap((row, layer) => row.map((value, head) => ({ place: [layer, head], value })));
      rows.sort((a, b) => b.value - a.value);
      const first = /** @type {Place[]} */ (rows.slice(0, SUGGESTED).map(({ place }) => place));
      const chip = make("button", { type: "button", class: "hs-chip" }, `the first ${first.length}`);
      chip.addEventListener("click", () => this.set(withScale(null, store.pointer, first, 0)));
      this.chips.replaceChildren(make("span", {}, "Tick heads above to remove them together, or"), chip);
      this.sentence.textContent = "";
      return;
    }
    const chips = places.map((place) => {
      const name = pictureName(place, store.pointer);
      const chip = make("button", { type: "button", class: "hs-chip", "aria-label": `Put ${name} back` }, `× ${name}`);
      chip.addEventListener("click", () => this.toggle(place));
      return chip;
    });
    const none = make("button", { type: "button", class: "hs-small", onclick: () => this.set(null) }, "Clear");
    this.chips.replaceChildren(make("span", {}, "Removed together"), ...chips, none);
    void this.measure();
  }

  async measure() {
    const { places } = this;
    const body = { ...textBody(this.store), heads: places, method: this.#method };
    const asked = (this.#asked = JSON.stringify([this.store.pointer.sha256, body]));
    try {
      if (!this.#known.has(asked)) {
        this.sentence.textContent = "Reading the text without them ...";
        const response = await this.#request.send((signal) => request("v1/lens/removal", { body, signal }));
        if (!response) return; // another set was asked for
        this.#known.set(asked, await response.json());
      }
      if (asked === this.#asked) this.say(/** @type {{ delta: number }} */ (this.#known.get(asked)).delta);
    } catch (error) {
      this.sentence.textContent = /** @type {Error} */ (error).message;
    }
  }

  /** @param {number} delta the change of the loss, in nats per token */
  say(delta) {
    const { store, places } = this;
    const sum = places.reduce((total, [layer, head]) => total + this.#single[layer][head], 0);
    const names =
      places.length > 6 ? `these ${places.length} heads` : listed(places.map((p) => pictureName(p, store.pointer)));
    const words = `Without ${names}, tokens are on average ${probabilityChange(delta)}`;
    this.sentence.textContent = places.length > 1 ? `${words}: ${comparison(delta, sum)}` : `${words}.`;
  }
}
