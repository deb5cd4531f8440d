// What both models predict next at the step of the clock.

import { make } from "../../lib/dom.mjs";
import { LatestLoader, pauseFor } from "../../lib/latest.mjs";
import { exact, signed } from "../../lib/numbers.mjs";
import { logSoftmax, mostProbable } from "../../lib/sampling.mjs";
import { visible } from "../../lib/words.mjs";
import { vocabulary } from "../state/run_fetcher.mjs";
import { nextRows } from "./difference.mjs";
import { SIDES } from "./pair.mjs";
import { badge } from "./names.mjs";
import { fillRows, makeCell, makeRow, makeTable, makeTitle } from "../../widgets/table.mjs";
import { bar } from "../../widgets/controls.mjs";
import { whenever } from "../../lib/reactive.mjs";

/** @import { RunFetcher } from "../state/run_fetcher.mjs" */
/** @import { SideName } from "./alignment.mjs" */
/** @import { NextRow, Prediction } from "./difference.mjs" */
/** @import { Pair } from "./pair.mjs" */

const MAX_SHOWN_ROWS = 8;

export class PairNext {
  /** @type {Record<SideName, (Prediction & { position: number }) | null>} */
  #predictions = { a: null, b: null };

  /** @param {Pair} pair */
  constructor(pair) {
    this.pair = pair;
    this.caption = make("caption", {});
    const [a, b] = SIDES.map((side) =>
      makeTitle([badge(side), make("span", { class: "hs-next-word" }, " probability")], { class: `hs-next-${side}` }),
    );
    const token = makeTitle("token", { class: "hs-next-token" });
    const change = makeTitle("Δ nats", { title: "Log-probability in B minus that in A, in nats" });
    this.table = makeTable({ caption: this.caption, titles: [a, token, b, change] });
    const top = make("div", { class: "hs-top" }, make("h2", {}, "Next token"));
    this.element = make(
      "section",
      { class: "hs-panel hs-pair-next", "aria-label": "Next token of both" },
      top,
      this.table,
    );
    this.loaders = { a: this.loader("a"), b: this.loader("b") };
    whenever(
      () => [...pair.progress, ...pair.place],
      () => this.want(),
    );
  }

  /** @param {SideName} side @returns {LatestLoader<RunFetcher, Prediction>} */
  loader(side) {
    const store = this.pair.stores[side];
    return new LatestLoader({
      load: async (fetcher, position) => {
        const { sha256 } = store.pointer;
        const [logits, texts] = await Promise.all([fetcher.logits(position), vocabulary(sha256)]);
        const logprobs = logSoftmax(logits);
        return [/** @type {Prediction} */ ({ logprobs, most: mostProbable(logits, MAX_SHOWN_ROWS), texts })];
      },
      show: (prediction, position) => {
        this.#predictions[side] = { ...prediction, position };
        this.draw();
      },
      report: (error) => store.report(`Could not fetch the logits: ${error.message}`),
    });
  }

  /**
   * The token whose logits predict the clock's step; null if the side has ended before it.
   * @param {SideName} side
   */
  position(side) {
    const { chosen } = this.pair;
    const store = this.pair.stores[side];
    const position = chosen === null ? -1 : this.pair.tokenAt(side, chosen) - 1;
    const readable = Math.min(store.length, store.pointer.context_length);
    return store.pointer.run && position >= 0 && position < readable ? position : null;
  }

  want() {
    for (const side of SIDES) {
      const store = this.pair.stores[side];
      const position = this.position(side);
      if (position === null && this.#predictions[side]) {
        this.#predictions[side] = null;
        this.draw();
      }
      this.loaders[side].want(store.fetcher, position, pauseFor(store.pointer.state === "writing"));
    }
  }

  /** The step of both sides' logits, which may lag behind while more is written; null for none. */
  get step() {
    const { pair } = this;
    const { a, b } = this.#predictions;
    for (let step = pair.chosen ?? -1; a && b && step >= 0; step--) {
      const [inA, inB] = SIDES.map((side) => pair.tokenAt(side, step) - 1);
      if (inA === a.position && inB === b.position) return step;
    }
    return null;
  }

  draw() {
    const { pair, step } = this;
    const { a, b } = this.#predictions;
    this.element.hidden = pair.chosen === null || !(a && b);
    if (step === null || !a || !b) return; // wait for the other side's logits, so that both bars belong to one step
    const written = SIDES.map((side) => pair.stores[side].tokens[pair.tokenAt(side, step)]?.id ?? null);
    this.caption.textContent = `Token ${pair.tokenAt("a", step)}: the model’s own probabilities`;
    const rows = nextRows(a, b, written, MAX_SHOWN_ROWS);
    fillRows(
      this.table,
      rows.map((row) => this.row(row, written)),
    );
  }

  /** @param {NextRow} row @param {(number | null)[]} written ids */
  row({ text, ids, a, b, difference }, written) {
    const marks = SIDES.flatMap((side, i) => (written[i] !== null && written[i] === ids[i] ? badge(side) : []));
    marks.forEach((mark) => (mark.title = "written there"));
    const words = [...marks.slice(0, 1), visible(text), ...marks.slice(1)];
    const token = makeTitle(words, { scope: "row", class: "hs-next-token" });
    const change = difference === null ? "" : signed(difference, 3);
    const cells = [
      probabilityCell("a", a),
      token,
      probabilityCell("b", b),
      makeCell(change, { class: "hs-next-change" }),
    ];
    return makeRow(cells, { class: marks.length ? "hs-is-written" : null });
  }
}

/** @param {SideName} side @param {number | null} probability null for a token that this side lacks */
function probabilityCell(side, probability) {
  const amount = bar(probability ?? 0, `hs-amount hs-amount-${side}`);
  const number = make("span", {}, probability === null ? "no such token" : exact(probability));
  const parts = side === "a" ? [amount, number] : [number, amount];
  return makeCell(make("div", {}, ...parts), { class: `hs-next-${side}` });
}
