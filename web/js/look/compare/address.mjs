// The page's address always leads to the current text, so that a reload and the Back button find it again.

import { makeLink, readLink } from "../../lib/link.mjs";
import { isBusy } from "../state/pointer.mjs";
import { DEFAULTS } from "../../lib/options.mjs";

/** @import { Control } from "../../types.js" */
/** @import { Router } from "../state/router.mjs" */
/** @import { Texts } from "./texts.mjs" */
/** @import { Pair } from "./pair.mjs" */
/** @import { ShownText } from "../state/shown_text.mjs" */

/** What a link says about its texts, not about how they are viewed. */
const TEXT_WORDS = ["model", "sha256", "ids", "prompt", "mask", "b_model", "b_sha256", "b_ids", "b_prompt", "b_mask"];

/** @param {string} search the query of a link */
function textsIn(search) {
  const query = new URLSearchParams(search);
  return TEXT_WORDS.map((word) => query.get(word)).join();
}

export class Address {
  /** The address of the text that is shown. */
  shown = "";
  /** Set while the page opens an address, which must not change meanwhile. */
  isOpening = false;
  /**
   * @param {Texts} texts
   * @param {Control[]} controls the settings of a text
   * @param {Router} router
   */
  constructor(texts, controls, router) {
    this.texts = texts;
    this.controls = controls;
    this.router = router;
  }

  get #link() {
    return new URL(makeLink(this.texts.linkState, this.controls, location.href)).search;
  }

  /** Add the address of the current text to the history, once it has one. */
  push() {
    const { texts, shown } = this;
    if (this.isOpening) return;
    const { state, sha256 } = texts.first.pointer;
    const isCompared = texts.isComparing || new URLSearchParams(shown).has("b_sha256");
    if (!sha256 || !(isCompared || ["done", "stopped"].includes(state))) return;
    const isPartial = (/** @type {ShownText} */ { pointer, ids: known, playback }) =>
      isBusy(pointer.state) || (known.length < pointer.tokens && !playback.hasHalted);
    if (texts.stores.some(isPartial) || (texts.isComparing && texts.pair.isGrowing)) return;
    const link = this.#link;
    if (link === shown) return;
    this.shown = link;
    // A comparison has an entry from its beginning on, and its own address once it is complete. Another view of the
    // same two texts gets no entry of its own.
    const isBegun = isCompared && this.router.isOfComparison && !location.search.includes("b_sha256");
    if (isBegun || (isCompared && textsIn(link) === textsIn(location.search))) this.router.rename(link);
    else this.router.add(link, !isCompared);
  }

  /** Another view of the text whose address is shown was opened: its address names it, without an entry of its own. */
  follow() {
    if (this.isOpening || this.texts.isComparing || !location.search) return;
    if (textsIn(this.#link) === textsIn(location.search)) this.remember();
  }

  /** Before two texts are compared: let Back return to the text as it looks now, with the open question. */
  remember() {
    if (!this.texts.isComparing) this.#replace();
  }

  /** A link to what is shown. The address becomes the same link, so that it is found in the history, too. */
  copy() {
    const { texts } = this;
    if (!texts.stores.some(({ isGrowing }) => isGrowing)) this.#replace();
    return makeLink(texts.linkState, this.controls, location.href);
  }

  #replace() {
    if (this.isOpening) return;
    this.shown = this.#link;
    this.router.rename(this.shown);
  }
}

/**
 * Apply the view that a link describes to its text.
 * @param {ShownText} store
 * @param {string} search the query of the page's address
 * @param {Pair | null} pair the comparison of that text with another, if any
 */
export function restoreLinkedView(store, search, pair = null) {
  const { options, open, openSecond, locked, step, unreadable } = readLink(
    search,
    store.pointer,
    pair?.stores.b.pointer,
  );
  if (unreadable.length) {
    store.notify(
      `The link is damaged. Its text is shown, but these parts could not be read: ${unreadable.join(", ")}.`,
    );
  }
  // A link may show the details, but does not hide those of a visitor who wants them.
  store.view.set({ ...DEFAULTS, details: store.view.options.details, ...options });
  if (open) store.view.choose(open);
  pair?.heads.chooseB(openSecond);
  store.selection.restore(locked, step);
}

/**
 * Show an opening at its intended head and step, or as an address describes it that names a view without a text.
 * @param {ShownText} store
 * @param {string} [search] the query of the page's address
 */
export function showOpening(store, search = "") {
  if (store.pointer.head) store.view.choose(store.pointer.head);
  const query = new URLSearchParams(search);
  const isView = query.has("ask") && !["sha256", "ids", "prompt"].some((word) => query.has(word));
  if (isView) restoreLinkedView(store, search);
  else store.selection.restore([], null);
}
