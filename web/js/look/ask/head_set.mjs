// Several heads that a question treats together: which ones, and their joint effect.

import { make } from "../../lib/dom.mjs";
import { headEntries } from "../../lib/heads.mjs";
import { LatestRequest } from "../../lib/latest.mjs";
import { pictureName, spokenHeads } from "../../lib/words.mjs";
import { askServer } from "../state/ask_server.mjs";
import { changedHeads, decodeMask, encodeMask, scaleOf, withScale } from "../../lib/head_masks.mjs";
import { openHead } from "./subject.mjs";
import { chipButton, smallButton } from "../../widgets/controls.mjs";

/** @import { PictureId } from "../../types.js" */
/** @import { ShownText } from "../state/shown_text.mjs" */
/** @import { AskRequest } from "../state/ask_server.mjs" */
/** @import { Mask } from "../../lib/head_masks.mjs" */
/** @import { AskContext } from "./question.js" */

export const NO_HEADS = "none"; // in links
const SUGGESTED_HEADS = 3;
const MAX_NAMED_HEADS = 6;

/**
 * What a question does with several heads.
 * @typedef {object} JointQuestion
 * @property {[todo: string, done: string]} verb "remove" and "Removed"
 * @property {string} waiting shown until the answer arrives
 * @property {(pictures: PictureId[]) => AskRequest} ask
 * @property {(pictures: PictureId[], names: string, answer: any) => string} say
 * @property {(encoded: string) => void} choose
 */

export class HeadSet {
  #request = new LatestRequest();
  /** @type {Map<string, object>} answers by what was asked */
  #known = new Map();
  #asked = "";
  /** @type {number[][]} the effect of each head alone, `[layer][head]` */
  #single = [];
  /** @type {Mask} */
  #mask = null;

  /**
   * @param {ShownText} store
   * @param {Pick<AskContext, "mixer" | "beside">} context
   * @param {JointQuestion} question
   */
  constructor(store, { mixer, beside }, question) {
    this.store = store;
    this.question = question;
    this.chips = make("p", { class: "hs-chips" });
    this.sentence = make("p", { class: "hs-answer", role: "status" });
    this.mute = smallButton("Switch them off", () => mixer.set(this.#mask));
    this.mute.title = "Opens the mixing desk with these heads muted";
    this.compare = smallButton("Compare the heads", () => beside?.rereads.withMask(this.#mask));
    this.compare.title = "Shows the text read without these heads, next to the text as it is";
    this.buttons = make("div", { class: "hs-controls" }, this.mute, this.compare);
    this.element = make("div", { class: "hs-head-set" }, this.chips, this.sentence, this.buttons);
  }

  get pictures() {
    return changedHeads(this.#mask);
  }

  /** @param {PictureId} picture */
  has(picture) {
    return scaleOf(this.#mask, picture) === 0;
  }

  /** @param {PictureId} picture */
  toggle(picture) {
    this.set(withScale(this.#mask, this.store.pointer, [picture], this.has(picture) ? 1 : 0));
  }

  /** @param {Mask} mask */
  set(mask) {
    this.question.choose(mask ? encodeMask(mask) : NO_HEADS);
  }

  /**
   * @param {string} encoded the chosen heads
   * @param {number[][]} single `[layer][head]` the effect of each head alone
   */
  show(encoded, single) {
    this.#mask = (encoded === NO_HEADS ? null : decodeMask(encoded, this.store.pointer)) ?? null;
    this.#single = single;
    this.draw();
  }

  /** The effect of each of these heads alone. @param {PictureId[]} pictures */
  singles(pictures) {
    return pictures.map(([layer, head]) => this.#single[layer][head]);
  }

  draw() {
    const { store, pictures } = this;
    store.selectedHeads.choose(pictures);
    const [todo, done] = this.question.verb;
    this.buttons.hidden = !pictures.length;
    const add =
      openHead(store) && !this.has(store.open)
        ? [this.chip(`+ ${pictureName(store.open, store.pointer)}`, () => this.toggle(store.open))]
        : [];
    if (add.length) add[0].title = "Add the open head";
    if (!pictures.length) {
      const rows = headEntries(this.#single);
      rows.sort((a, b) => b.value - a.value);
      const first = rows.slice(0, SUGGESTED_HEADS).map(({ picture }) => picture);
      const all = this.chip(`the top ${first.length}`, () => this.set(withScale(null, store.pointer, first, 0)));
      this.chips.replaceChildren(make("span", {}, `Tick heads above to ${todo} them together, or take`), all, ...add);
      this.sentence.textContent = "";
      return;
    }
    const chips = pictures.map((picture) => {
      const name = pictureName(picture, store.pointer);
      const chip = this.chip(`× ${name}`, () => this.toggle(picture));
      chip.setAttribute("aria-label", `Restore ${name}`);
      return chip;
    });
    const none = smallButton("Clear", () => this.set(null));
    this.chips.replaceChildren(make("span", {}, `${done} together`), ...chips, ...add, none);
    void this.measure();
  }

  /** @param {string} text @param {() => void} onclick */
  chip(text, onclick) {
    return chipButton(text, onclick);
  }

  async measure() {
    const request = this.question.ask(this.pictures);
    const asked = (this.#asked = JSON.stringify([this.store.pointer.sha256, request]));
    try {
      if (!this.#known.has(asked)) {
        this.sentence.textContent = this.question.waiting;
        const answer = await this.#request.send((signal) => askServer(request, { signal }));
        if (!answer) return; // another set was chosen in the meantime
        this.#known.set(asked, answer);
      }
      if (asked !== this.#asked) return;
      const { pictures } = this;
      const names = pictures.length > MAX_NAMED_HEADS ? `these ${pictures.length} heads` : spokenHeads(pictures);
      this.sentence.textContent = this.question.say(pictures, names, this.#known.get(asked));
    } catch (error) {
      this.sentence.textContent = /** @type {Error} */ (error).message;
    }
  }
}
