// The heads that both sides have, ordered by how differently they attend.

import { headEntries } from "../../lib/heads.mjs";
import { request } from "../../lib/http.mjs";
import { LatestRequest } from "../../lib/latest.mjs";
import { SIDES } from "./pair.mjs";
import { whenever } from "../../lib/reactive.mjs";
import { signal } from "../../vendor/signals.mjs";

/** @import { PictureId } from "../../types.js" */
/** @import { SideName } from "./alignment.mjs" */
/** @import { Pair } from "./pair.mjs" */

/** @typedef {{ picture: PictureId, difference: number }} RankedHead */

const REQUEST_PAUSE = 80; // milliseconds, to collect changes that arrive together
export const MIN_DIFFERENCE = 0.00005; // difference that four decimals show

export class Ranking {
  #asked = { runs: "", key: "" };
  #hasOpened = true; // a head of this comparison
  #request = new LatestRequest();
  #heads = signal(/** @type {number[][] | null} */ (null));

  /** @param {Pair} pair */
  constructor(pair) {
    this.pair = pair;
    whenever(
      () => pair.progress,
      () => void this.update(),
    );
  }

  /** The difference of each layer and head that both sides have; null while it is not known. */
  get heads() {
    return this.#heads.value;
  }

  /** A comparison begins: once its heads are ranked, one that differs is opened. */
  begin() {
    this.#hasOpened = false;
  }

  /** Open a head that differs, if the open one does not. */
  openMostDifferent() {
    const { pair, heads } = this;
    const [layer, head] = pair.stores.a.open;
    const [most] = this.sorted;
    if (!most || this.#hasOpened) return;
    this.#hasOpened = true;
    const open = heads?.[layer]?.[head];
    if (open !== undefined && open < MIN_DIFFERENCE && most.difference >= MIN_DIFFERENCE)
      pair.heads.choose(most.picture);
  }

  /** The heads of both sides, the most different first. @returns {RankedHead[]} */
  get sorted() {
    const all = headEntries(this.heads ?? []).map(({ picture, value }) => ({ picture, difference: value }));
    return all.sort((one, other) => other.difference - one.difference);
  }

  /** Ask the server, once both texts are complete. */
  async update() {
    const { pair } = this;
    const texts = SIDES.map((side) => this.#text(side));
    const pieces = pair.alignment.pieces.filter(({ a1, b1 }) => a1 <= texts[0].rows && b1 <= texts[1].rows);
    const { divergence, shared } = pair.alignment;
    const runs = texts.map(({ run }) => run).join();
    const key = [runs, pieces.length, divergence, shared].join(";");
    if (!pair.isComplete || pair.isGrowing || !pair.isAligned || !pieces.length) {
      if (runs !== this.#asked.runs) {
        this.#asked = { runs: "", key: "" }; // the same two may come back
        if (this.heads) this.#show(null);
      }
      return;
    }
    if (this.#asked.key === key) return;
    this.#asked = { runs, key };
    const [a, b] = texts.map(({ rows, ...text }) => ({ ...text, ids: text.ids.slice(0, rows) }));
    const body = {
      a,
      b,
      first: pair.firstRow,
      pieces: pieces.map(({ a0, a1, b0, b1, same }) => [a0, a1, b0, b1, same]),
    };
    try {
      const send = (/** @type {AbortSignal} */ aborted) => request("look/differences", { body, signal: aborted });
      const response = await this.#request.send(send, REQUEST_PAUSE);
      if (response) this.#show((await response.json()).heads);
    } catch (error) {
      this.#asked = { runs: "", key: "" };
      pair.stores.b.report(`Could not compare the heads: ${/** @type {Error} */ (error).message}`);
    }
  }

  /** @param {SideName} side */
  #text(side) {
    const { pointer, ids, rows } = this.pair.stores[side];
    const { run, sha256, n_prompt, head_mask } = pointer;
    return { run, sha256, ids, n_prompt, head_mask, rows };
  }

  /** @param {number[][] | null} heads */
  #show(heads) {
    this.#heads.value = heads;
  }
}
