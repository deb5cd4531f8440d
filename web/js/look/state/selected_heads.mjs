// Heads that are selected in addition to the open one: where all of them look together, their weights averaged.

import { isSamePicture } from "../../lib/heads.mjs";
import { LatestLoader } from "../../lib/latest.mjs";
import { onChange } from "../../lib/reactive.mjs";
import { keysOf } from "../../lib/triangle.mjs";
import { signal } from "../../vendor/signals.mjs";

/** @import { PictureId } from "../../types.js" */
/** @import { RunFetcher } from "./run_fetcher.mjs" */
/** @import { ShownText } from "./shown_text.mjs" */

export class SelectedHeads {
  #chosen = signal(/** @type {PictureId[]} */ ([]));
  #pointed = signal(/** @type {PictureId[]} */ ([]));
  /** Weights of all pictures. */
  #known = signal(/** @type {{ fetcher: RunFetcher, query: number, weights: Float32Array } | null} */ (null));
  /** @type {LatestLoader<RunFetcher, Float32Array<ArrayBuffer>>} */
  #loader = new LatestLoader({
    load: async (fetcher, query) => [await fetcher.query(query)],
    show: (weights, query) => {
      if (this.#known.peek()?.weights !== weights) this.#known.value = { fetcher: this.store.fetcher, query, weights };
    },
    report: (error) => this.store.report(`Could not fetch the attention weights: ${error.message}`),
  });

  /** @param {ShownText} store */
  constructor(store) {
    this.store = store;
    onChange(
      () => [store.pointer.sha256],
      () => this.choose([]),
    );
    onChange(
      () => [...this.heads, store.fetcher, store.isGrowing, store.selection.focus?.query],
      () => this.#fetch(),
    );
  }

  /** The open head and those chosen with it; only the open one if no others are chosen. */
  get chosen() {
    return this.#withOpen(this.#chosen.value);
  }

  /** The heads that are shown: those pointed at or, if there are none, the chosen ones. */
  get heads() {
    return this.#withOpen(this.#pointed.value.length ? this.#pointed.value : this.#chosen.value);
  }

  /** @param {PictureId[]} others */
  #withOpen(others) {
    const { open } = this.store;
    return [open, ...others.filter((head) => !isSamePicture(head, open))];
  }

  /** What decides which heads are shown, and where they look. */
  get shown() {
    return [this.store.open, this.#chosen.value, this.#pointed.value, this.#known.value];
  }

  /** Choose heads in addition to the open one. @param {PictureId[]} heads */
  choose(heads) {
    if (heads.length || this.#chosen.peek().length) this.#chosen.value = heads;
  }

  /** @param {PictureId} head */
  toggle(head) {
    const chosen = this.#chosen.peek();
    const others = chosen.filter((other) => !isSamePicture(other, head));
    this.choose(others.length < chosen.length ? others : [...others, head]);
  }

  /** Show heads with the open one until none are named. @param {PictureId[]} heads */
  point(heads) {
    if (heads.length || this.#pointed.peek().length) this.#pointed.value = heads;
  }

  #fetch() {
    const { fetcher, selection, isGrowing } = this.store;
    const query = this.heads.length > 1 && !isGrowing ? selection.focus?.query : undefined;
    this.#loader.want(fetcher, query ?? null, 0);
  }

  /**
   * The mean of the heads' weights from a token; null if there is only the open one or it is not known yet.
   * @param {number} query
   */
  meanRow(query) {
    const { heads, store } = this;
    const known = this.#known.value;
    if (heads.length < 2 || known?.query !== query || known.fetcher !== store.fetcher) return null;
    const length = keysOf(query);
    const mean = new Float32Array(length);
    for (const head of heads) {
      const start = store.data.index(head) * length;
      for (let key = 0; key < length; key++) mean[key] += known.weights[start + key] / heads.length;
    }
    return mean;
  }
}
