// One text, or two that are compared: assigns the server's pointers to the texts.

import { make } from "../../lib/dom.mjs";
import { isSamePicture } from "../../lib/heads.mjs";
import { Address } from "./address.mjs";
import { copyLink } from "../export/copy_link.mjs";
import { isBusy } from "../state/pointer.mjs";
import { ShownText } from "../state/shown_text.mjs";
import { stopWriting } from "../state/text_writer.mjs";
import { CompareView } from "./compare_view.mjs";
import { Pair, SIDES } from "./pair.mjs";
import { RereadRequests } from "./reread_requests.mjs";
import { onChange } from "../../lib/reactive.mjs";
import { signal } from "../../vendor/signals.mjs";

/** @import { Control, LinkState, ModelInfo, PictureId, SentPointer, Writing } from "../../types.js" */
/** @import { Router } from "../state/router.mjs" */
/** @import { View } from "../state/view.mjs" */
/** @import { SideName } from "./alignment.mjs" */
/** @import { Selected } from "../state/selection.mjs" */

export class Texts {
  /** @type {Set<string>} runs that were closed, and may still report their end */
  #closed = new Set();
  #isComparing = signal(false);
  /** @type {CompareView | null} */
  #compare = null;
  /** @type {{ run: string, address: string, selected: Selected } | null} see `leave` */
  #left = null;
  #saved;
  /** @type {ModelInfo[]} those that are served */
  models = [];

  /**
   * @param {View} view
   * @param {Writing} writing
   * @param {Control[]} controls
   * @param {Router} router is told when a comparison has begun or ended, or is complete
   * @param {(texts: Texts) => { store: ShownText, element: HTMLElement }} makeWorkspace makes a single text’s panels
   */
  constructor(view, writing, controls, router, makeWorkspace) {
    this.writing = writing;
    this.router = router;
    this.workspace = makeWorkspace(this);
    this.pair = new Pair(view);
    this.#saved = new ShownText(view);
    this.address = new Address(this, controls, router);
    this.rereads = new RereadRequests(this);
    onChange(
      () => this.pair.progress,
      () => this.isComparing && this.pair.isComplete && this.#changed(),
    );
    this.element = make("div", { class: "hs-sides" }, this.workspace.element);
  }

  /** Two texts side by side; made when they are compared for the first time. */
  get compare() {
    if (!this.#compare) {
      this.#compare = new CompareView(this, [copyLink(this.pair.stores.a, () => this.address.copy())]);
      this.#compare.reader.fill();
    }
    return this.#compare;
  }

  get isComparing() {
    return this.#isComparing.value;
  }

  /** The text that is shown alone, or on the left. */
  get first() {
    return this.isComparing ? this.pair.stores.a : this.workspace.store;
  }

  /** @returns {ShownText[]} */
  get stores() {
    return this.isComparing ? SIDES.map((side) => this.pair.stores[side]) : [this.workspace.store];
  }

  /** @returns {LinkState} */
  get linkState() {
    const { linkState } = this.first;
    return this.isComparing ? { ...linkState, second: this.pair.stores.b.linkState } : linkState;
  }

  /** @param {ModelInfo[]} models */
  setModels(models) {
    this.models = models;
    this.#compare?.reader.fill();
  }

  /** @param {string} [address] of the text that is shown now; left out where the texts have one of their own */
  #changed(address) {
    if (address === undefined) this.address.push();
    else this.address.shown = address;
    this.router.record();
  }

  /** Pass the server's pointer to the text it concerns. @param {SentPointer | null} pointer */
  follow(pointer) {
    if (!pointer || (pointer.run && this.#closed.has(pointer.run))) return;
    const known = this.stores.find((store) => pointer.run && store.pointer.run === pointer.run);
    const of = pointer.branch?.of ?? pointer.beside;
    if (known) known.follow(pointer);
    else if (of && this.first.pointer.run) this.compareWith(pointer, of);
    else {
      // Another text was written or opened: the comparison belonged to the previous one.
      if (pointer.run && !this.first.isLate(pointer)) this.showAlone("a");
      this.first.follow(pointer);
    }
  }

  /**
   * Compare a text that is shown with the one that a pointer leads to.
   * @param {SentPointer} pointer
   * @param {string} [of] the run of the text that it is compared with, else the one on the left
   */
  compareWith(pointer, of) {
    const { a, b } = this.pair.stores;
    const { step, locked } = this.first.selection;
    if (!this.isComparing) {
      a.adopt(this.workspace.store);
      this.workspace.store.begin();
      this.#isComparing.value = true;
      this.element.replaceChildren(this.compare.element);
    } else if (of && b.pointer.run === of) {
      this.#close(a);
      a.adopt(b);
    } else if (b.pointer.run !== pointer.run) this.#close(b);
    this.pair.heads.viewB.choose(this.pair.view.open);
    b.begin(a.pointer);
    b.follow(pointer);
    this.pair.heads.link();
    if (pointer.state === "read") this.pair.restore(step, locked); // the selection in this text
    if (pointer.state !== "read") this.compare.heads.startMuting(false);
    this.compare.begin();
    if (this.compare.element.getBoundingClientRect().top < 0) this.compare.element.scrollIntoView();
    this.#changed();
  }

  /** Show another reading of the text on the right in its place. @param {SentPointer} pointer */
  replaceSecond(pointer) {
    const { b } = this.pair.stores;
    const { branch, beside, settings } = b.pointer;
    const open = this.pair.heads.isUnlinked ? b.open : null;
    b.follow({ ...pointer, branch, beside, settings });
    if (open) this.pair.heads.chooseB(open);
    this.#changed();
  }

  /**
   * The text that is shown is replaced by two new ones; closing their comparison returns to it.
   * @returns {(run: string) => void} to be called with the run of the first of the two
   */
  leave() {
    if (this.isComparing) return () => {};
    const { store } = this.workspace;
    const left = { address: this.address.shown, selected: store.selection.selected };
    this.#saved.adopt(store);
    return (run) => (this.#left = { ...left, run });
  }

  /** What closing the comparison returns to; null for text A. */
  get left() {
    return this.isComparing && this.#left?.run === this.pair.stores.a.pointer.run ? this.#left : null;
  }

  /** End the comparison, and return to what was shown before it. */
  close() {
    const { left } = this;
    if (!left) {
      this.showAlone("a");
      return;
    }
    const { a, b } = this.pair.stores;
    for (const store of [a, b]) this.#close(store, true);
    this.#isComparing.value = false;
    this.#left = null;
    this.compare.remember("");
    const { store } = this.workspace;
    store.adopt(this.#saved);
    this.#saved.begin();
    this.pair.clear();
    this.element.replaceChildren(this.workspace.element);
    store.selection.restore(left.selected.locked, left.selected.step);
    this.#changed(left.address);
  }

  /** Show one of two texts alone. @param {SideName} side */
  showAlone(side) {
    if (!this.isComparing) return;
    const { stores, view, heads } = this.pair;
    const remaining = stores[side];
    this.#close(stores[side === "a" ? "b" : "a"]);
    const { locked, step } = remaining.selection;
    this.#left = null;
    const open = /** @type {PictureId} */ ([...(side === "b" ? heads.viewB.open : view.open)]);
    this.#isComparing.value = false;
    this.compare.remember("");
    if (!isSamePicture(open, view.open)) view.choose(open);
    const { store } = this.workspace;
    store.adopt(remaining);
    this.pair.clear();
    this.element.replaceChildren(this.workspace.element);
    store.selection.restore(locked, step === null || step >= store.length - 1 ? null : step);
    this.#changed();
  }

  /** @param {ShownText} store @param {boolean} [isEither] whether the other side is closed too */
  #close(store, isEither = false) {
    const { run, state } = store.pointer;
    if (!run || (!isEither && SIDES.every((side) => this.pair.stores[side].pointer.run === run))) return;
    if (isBusy(state)) {
      this.#closed.add(run);
      void stopWriting(run);
    }
  }
}
