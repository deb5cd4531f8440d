// Heads that are selected in addition to the open one: where all of them look together, their weights averaged.

import { isSamePicture } from "../../lib/heads.mjs";
import { LatestLoader } from "../../lib/latest.mjs";
import { keysOf } from "../../lib/triangle.mjs";

/** @import { PictureId } from "../../types.js" */
/** @import { RunFetcher } from "./run_fetcher.mjs" */
/** @import { Store } from "./store.mjs" */

export class SelectedHeads {
  /** @type {PictureId[]} */
  #chosen = [];
  /** @type {PictureId[]} */
  #pointed = [];
  /** @type {{ fetcher: RunFetcher, query: number, weights: Float32Array } | null} weights of all pictures */
  #known = null;
  #model = "";
  /** @type {LatestLoader<RunFetcher, Float32Array<ArrayBuffer>>} */
  #loader = new LatestLoader({
    load: async (fetcher, query) => [await fetcher.query(query)],
    show: (weights, query) => {
      const isNew = this.#known?.weights !== weights;
      this.#known = { fetcher: this.store.fetcher, query, weights };
      if (isNew) this.changed();
    },
    report: (error) => this.store.report(`Could not fetch the attention weights: ${error.message}`),
  });

  /** @param {Store} store @param {() => void} changed called when other heads are selected, or their weights arrive */
  constructor(store, changed) {
    this.store = store;
    this.changed = changed;
    store.on("state", () => {
      const { sha256 } = store.pointer;
      if (this.#model !== sha256) this.choose([]);
      this.#model = sha256;
    });
    store.on("state focus", () => this.#fetch());
  }

  /** The open head and those chosen with it; only the open one if no others are chosen. */
  get chosen() {
    return this.#withOpen(this.#chosen);
  }

  /** The heads that are shown: those pointed at or, if there are none, the chosen ones. */
  get heads() {
    return this.#withOpen(this.#pointed.length ? this.#pointed : this.#chosen);
  }

  /** @param {PictureId[]} others */
  #withOpen(others) {
    const { open } = this.store;
    return [open, ...others.filter((head) => !isSamePicture(head, open))];
  }

  /** Choose heads in addition to the open one. @param {PictureId[]} heads */
  choose(heads) {
    if (!heads.length && !this.#chosen.length) return;
    this.#chosen = heads;
    this.#show();
  }

  /** @param {PictureId} head */
  toggle(head) {
    const others = this.#chosen.filter((other) => !isSamePicture(other, head));
    this.choose(others.length < this.#chosen.length ? others : [...others, head]);
  }

  /** Show heads with the open one until none are named. @param {PictureId[]} heads */
  point(heads) {
    if (!heads.length && !this.#pointed.length) return;
    this.#pointed = heads;
    this.#show();
  }

  #show() {
    this.#fetch();
    this.changed();
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
    const known = this.#known;
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
