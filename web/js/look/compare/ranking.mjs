// How differently each head attends on the two sides, from the server, which has the exact weights of all of them.

import { request } from "../../lib/http.mjs";
import { LatestRequest } from "../../lib/latest.mjs";
import { Topics } from "../../lib/topics.mjs";
import { SIDES } from "./pair.mjs";

/** @import { PictureId } from "../../types.js" */
/** @import { SideName } from "./alignment.mjs" */
/** @import { Pair } from "./pair.mjs" */

/** @typedef {{ place: PictureId, difference: number }} RankedHead */

const PAUSE = 80; // milliseconds for what else may change at once

/** Topics: ranking. */
export class Ranking extends Topics {
  #asked = "";
  #request = new LatestRequest();
  /** @type {number[][] | null} of each layer and head that both sides have; null while it is not known */
  heads = null;
  wasLooked = true; // whether a head was opened for what the ranking of this comparison says

  /** @param {Pair} pair */
  constructor(pair) {
    super();
    this.pair = pair;
    pair.on("state tokens", () => this.update());
  }

  /** The heads of both sides, the most different first. @returns {RankedHead[]} */
  get sorted() {
    const all = (this.heads ?? []).flatMap((row, layer) =>
      row.map((difference, head) => ({ place: /** @type {PictureId} */ ([layer, head]), difference })),
    );
    return all.sort((one, other) => other.difference - one.difference);
  }

  /** Ask the server, once both texts are there. */
  async update() {
    const { pair } = this;
    const texts = SIDES.map((side) => this.#text(side));
    const pieces = pair.alignment.pieces.filter(({ a1, b1 }) => a1 <= texts[0].rows && b1 <= texts[1].rows);
    const { parting, shared } = pair.alignment;
    const asked = JSON.stringify([texts.map(({ run }) => run), pieces.length, parting, shared]);
    if (!pair.isComplete || pair.isGrowing || !pieces.length) {
      if (this.heads && texts.map(({ run }) => run).join() !== this.#asked.split(";")[0]) this.#show(null);
      return;
    }
    if (this.#asked === `${texts.map(({ run }) => run).join()};${asked}`) return;
    this.#asked = `${texts.map(({ run }) => run).join()};${asked}`;
    const [a, b] = texts.map(({ rows, ...text }) => ({ ...text, ids: text.ids.slice(0, rows) }));
    const body = {
      a,
      b,
      first: pair.firstRow,
      pieces: pieces.map(({ a0, a1, b0, b1, same }) => [a0, a1, b0, b1, same]),
    };
    try {
      const response = await this.#request.send((signal) => request("look/differences", { body, signal }), PAUSE);
      if (response) this.#show((await response.json()).heads);
    } catch (error) {
      this.#asked = "";
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
    this.heads = heads;
    this.emit("ranking");
  }
}
