// The page's address leads to the text that is shown, so that a reload and Back find it again.

import { makeLink } from "../lib/link.mjs";
import { isBusy } from "../lib/states.mjs";

/** @import { Control } from "../types.js" */
/** @import { Texts } from "./compare/texts.mjs" */

export class Address {
  /** Of the text that is shown. */
  shown = "";
  /** While the page follows an address, it makes no other one. */
  isFollowed = false;

  /** @param {Texts} texts @param {Control[]} controls the settings of a text */
  constructor(texts, controls) {
    this.texts = texts;
    this.controls = controls;
  }

  /** Whether the browser has gone to an address that leads to something else. */
  get isAnother() {
    return location.search !== this.shown;
  }

  get #link() {
    return new URL(makeLink(this.texts.linkState, this.controls, location.href)).search;
  }

  /** Keep the address of what is shown, once there is one. */
  keep() {
    const { texts, shown } = this;
    if (this.isFollowed) return;
    const { state, sha256 } = texts.first.pointer;
    const isCompared = texts.isComparing || new URLSearchParams(shown).has("b_sha256");
    if (!sha256 || !(isCompared || ["done", "stopped"].includes(state))) return;
    if (texts.stores.some(({ pointer, ids: known }) => isBusy(pointer.state) || known.length < pointer.tokens)) return;
    const link = this.#link;
    if (link === shown) return;
    this.shown = link;
    history.pushState(null, "", `${link}${location.hash}`);
  }

  /** Before two texts are compared: let Back lead to the one as it is looked at now, with the question that is open. */
  remember() {
    if (this.texts.isComparing) return;
    this.shown = this.#link;
    history.replaceState(null, "", `${this.shown}${location.hash}`);
  }
}
