// The open heads of two compared texts: the same place on both sides, unless the visitor chooses them separately.

import { View } from "../state/view.mjs";
import { onChange } from "../../lib/reactive.mjs";
import { signal } from "../../vendor/signals.mjs";

/** @import { PictureId } from "../../types.js" */
/** @import { Shape } from "../../lib/heads.mjs" */
/** @import { ShownText } from "../state/shown_text.mjs" */
/** @import { SideName } from "./alignment.mjs" */

export class LinkedHeads {
  #isUnlinked = signal(false);

  /**
   * @param {View} view of A
   * @param {() => Record<SideName, ShownText>} stores
   */
  constructor(view, stores) {
    this.view = view;
    this.viewB = new View();
    this.stores = stores;
    onChange(
      () => [view.options],
      () => this.viewB.set(view.options),
    );
    onChange(
      () => [view.open],
      () => !this.isUnlinked && this.link(),
    );
  }

  /** Whether B's head was chosen separately. */
  get isUnlinked() {
    return this.#isUnlinked.value;
  }

  /** All that decides what is open. */
  get opened() {
    return [this.view.options, this.view.open, this.viewB.open, this.isUnlinked];
  }

  /** Open a head on both sides. @param {PictureId} picture */
  choose(picture) {
    this.#isUnlinked.value = false;
    this.view.choose(picture);
    this.link();
  }

  /** Open another head on B than on A; null for the same one. @param {PictureId | null} picture */
  chooseB(picture) {
    this.#isUnlinked.value = picture !== null;
    if (picture) this.viewB.choose(picture);
    else this.link();
  }

  /** Whether B has no such head, so that the nearest one is shown instead. */
  get isStandIn() {
    const { a, b } = this.stores();
    if (this.isUnlinked || !a.pointer.run || !b.pointer.run) return false;
    return !hasPicture(this.view.open, a.pointer, b.pointer);
  }

  /** Open the head on B that corresponds to A's open head. */
  link() {
    const { a, b } = this.stores();
    this.#isUnlinked.value = false;
    this.viewB.set(this.view.options);
    if (a.pointer.run && b.pointer.run) this.viewB.choose(matchingPicture(this.view.open, a.pointer, b.pointer));
  }
}

/**
 * Whether another model has a picture in the same place.
 * @param {PictureId} picture
 * @param {Shape} from
 * @param {Shape} to
 */
export function hasPicture([layer, column], from, to) {
  if (layer >= from.n_layer) return true; // the mean of all heads
  return layer < to.n_layer && (column >= from.n_head || column < to.n_head);
}

/**
 * The same layer and head if there is one, else the nearest; a mean for a mean, a rollout for a rollout.
 * @param {PictureId} picture
 * @param {Shape} from
 * @param {Shape} to
 * @returns {PictureId}
 */
export function matchingPicture([layer, column], from, to) {
  if (layer >= from.n_layer) return [to.n_layer, to.n_head];
  const near = Math.min(layer, to.n_layer - 1);
  if (column >= from.n_head) return [near, to.n_head + column - from.n_head];
  return [near, Math.min(column, to.n_head - 1)];
}
