// The mixing desk for one text: which heads are muted or scaled while its question is open, and what the model then
// predicts at the current step. The choice is part of the view's options, and so of links.

import { LatestLoader } from "../../lib/latest.mjs";
import { readChoices, writeChoices } from "./choices.mjs";
import { scaledLogits } from "./run_fetcher.mjs";
import {
  changedHeads,
  decodeMask,
  encodeMask,
  headsNamed,
  isSameMask,
  namesOf,
  only,
  scaleOf,
  withScale,
} from "../../lib/head_masks.mjs";
import { whenever } from "../../lib/reactive.mjs";
import { signal } from "../../vendor/signals.mjs";

/** @import { PictureId } from "../../types.js" */
/** @import { RunFetcher } from "./run_fetcher.mjs" */
/** @import { ShownText } from "./shown_text.mjs" */
/** @import { Mask } from "../../lib/head_masks.mjs" */

export const DESK = "desk"; // the question's key
const AS_WRITTEN = "text";
/** `tap`: what a tap on a tile does. `mask`: "text" for the mask the text was written with, else from `encodeMask`. */
export const DEFAULTS = { tap: "mute", mask: AS_WRITTEN };

/**
 * A text, and the mask to read it with.
 * @typedef {{ fetcher: RunFetcher, mask: Mask, encoded: string }} Source
 */
/** @typedef {{ source: Source, position: number, logits: Float32Array }} Changed */

/** The heads that are off on the stage; the details show the text as it was written. @param {ShownText} store */
export function headsOff({ view: { options }, pointer }) {
  return options.details || !options.off ? [] : headsNamed(options.off, pointer);
}

export class Mixer {
  /** @type {Source | null} */
  #source = null;
  #changed = signal(/** @type {Changed | null} */ (null));

  /** @param {ShownText} store */
  constructor(store) {
    this.store = store;
    /** @type {LatestLoader<Source, Changed>} */
    this.loader = new LatestLoader({
      load: (source, position) => this.#load(source, position),
      show: (changed) => void (this.#changed.value = changed),
      report: (error) => store.report(`Could not read the text with these heads: ${error.message}`),
    });
    whenever(
      () => [store.fetcher, this.isChanged && !store.isGrowing, store.selection.predictor, encodeMask(this.mask)],
      () => this.#want(),
    );
  }

  /** The latest logits of the changed model; null if nothing is changed. */
  get changed() {
    return this.#changed.value;
  }

  get isOn() {
    return this.store.view.options.ask === DESK && this.store.pointer.run !== "";
  }

  get choices() {
    return readChoices(this.store.view.options.askWith, DEFAULTS);
  }

  /** Whether a tap on a tile mutes its head, as it always does on the stage. */
  get tapsMute() {
    return this.isOn && (this.choices.tap === "mute" || !this.store.view.options.details);
  }

  /**
   * The chosen mask; until the visitor chooses one, the mask the text was written with, without the heads that are off
   * on the stage.
   * @returns {Mask}
   */
  get mask() {
    const { pointer } = this.store;
    const { mask } = this.choices;
    if (!this.isOn) return pointer.head_mask;
    if (mask === AS_WRITTEN) return withScale(pointer.head_mask, pointer, headsOff(this.store), 0);
    const decoded = decodeMask(mask, pointer);
    return decoded === undefined ? pointer.head_mask : decoded;
  }

  /** Whether it differs from the mask that the text was written with. */
  get isChanged() {
    return this.isOn && !isSameMask(this.mask, this.store.pointer.head_mask);
  }

  /**
   * Choose a mask, and open the question. On the stage, heads that are muted are those that are off there.
   * @param {Mask} mask
   */
  set(mask) {
    const { view, pointer } = this.store;
    const choices = this.isOn ? this.choices : DEFAULTS;
    const off = view.options.details ? [] : changedHeads(mask).filter((head) => scaleOf(pointer.head_mask, head) !== 0);
    const isOff = isSameMask(mask, withScale(pointer.head_mask, pointer, off, 0));
    const chosen = isOff ? AS_WRITTEN : encodeMask(mask);
    const askWith = writeChoices({ ...choices, mask: chosen }, DEFAULTS);
    view.set({ ask: DESK, askWith, ...(!view.options.details && { off: isOff ? namesOf(off) : "" }) });
  }

  /** Before another text is shown: what was muted in this one is not muted in that. */
  reset() {
    if (this.isOn) this.set(this.store.pointer.head_mask);
  }

  /** @param {PictureId} picture @param {number} scale */
  scale(picture, scale) {
    this.set(withScale(this.mask, this.store.pointer, [picture], scale));
  }

  /** Mute a head, or restore one that is muted or scaled. @param {PictureId} picture */
  toggle(picture) {
    this.scale(picture, scaleOf(this.mask, picture) === 1 ? 0 : 1);
  }

  /** Mute all heads but one; if that is the mask already, restore all. @param {PictureId} picture */
  solo(picture) {
    this.set(this.isSolo(picture) ? null : only(this.store.pointer, [picture]));
  }

  /** @param {PictureId} picture */
  isSolo(picture) {
    return this.mask !== null && isSameMask(this.mask, only(this.store.pointer, [picture]));
  }

  /**
   * The logits of the changed model at a position; null if nothing is changed or they are not known yet. The previous
   * mask's logits stay until the new ones arrive.
   * @param {number} position
   */
  logitsAt(position) {
    const changed = this.#changed.value;
    if (!this.isChanged || changed?.source.fetcher !== this.store.fetcher) return null;
    return changed.position === position ? changed.logits : null;
  }

  #want() {
    const { store } = this;
    const { predictor } = store.selection;
    const position = this.isChanged && !store.isGrowing && predictor >= 0 ? predictor : null;
    const encoded = encodeMask(this.mask);
    if (this.#source?.fetcher !== store.fetcher || this.#source.encoded !== encoded) {
      this.#source = { fetcher: store.fetcher, mask: this.mask, encoded };
    }
    this.loader.want(this.#source, position, 0);
    if (position === null) this.#changed.value = null;
  }

  /** @param {Source} source @param {number} position @returns {Promise<Changed[]>} */
  async #load(source, position) {
    return [{ source, position, logits: await scaledLogits(this.store, source.mask, position) }];
  }
}
