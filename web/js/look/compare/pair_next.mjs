// What both models predict next at the step of the clock.

import { make, setText } from "../../lib/dom.mjs";
import { maskWords } from "../../lib/head_masks.mjs";
import { LatestLoader, pauseFor } from "../../lib/latest.mjs";
import { exact, share, signed } from "../../lib/numbers.mjs";
import { logSoftmax, mostProbable } from "../../lib/sampling.mjs";
import { plainly, spokenInWord, visible } from "../../lib/words.mjs";
import { vocabulary } from "../state/run_fetcher.mjs";
import { nextRows } from "./difference.mjs";
import { findingWords, likeliestOf } from "./finding.mjs";
import { SIDES } from "./pair.mjs";
import { badge, LETTERS } from "./names.mjs";
import { fillRows, makeCell, makeRow, makeTable, makeTitle } from "../../widgets/table.mjs";
import { bar } from "../../widgets/controls.mjs";
import { whenever } from "../../lib/reactive.mjs";

/** @import { RunFetcher } from "../state/run_fetcher.mjs" */
/** @import { SideName } from "./alignment.mjs" */
/** @import { NextRow, Prediction } from "./difference.mjs" */
/** @import { Pair } from "./pair.mjs" */

const MAX_SHOWN_ROWS = 8;
const BARS = 4; // of words; the numbers below them have more

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
    this.finding = make("p", { class: "hs-compare-finding", role: "status" });
    this.bars = make("div", { class: "hs-pair-bars" });
    const fold = make("details", {}, make("summary", {}, "Numbers"), this.table);
    this.element = make("section", { class: "hs-pair-next", "aria-label": "Next token of both" });
    this.element.append(this.finding, this.bars, fold);
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

  /** The token whose next word is asked for; null if the side has ended before it. @param {SideName} side */
  position(side) {
    const store = this.pair.stores[side];
    const position = this.pair.asked(side);
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

  /** Whether both sides' logits belong together; they may lag behind while more is written. */
  get isOneStep() {
    const { pair } = this;
    const { a, b } = this.#predictions;
    if (!a || !b) return false;
    if (a.position === pair.asked("a") && b.position === pair.asked("b")) return true;
    for (let step = pair.chosen ?? -1; step >= 0; step--) {
      const [inA, inB] = SIDES.map((side) => pair.tokenAt(side, step) - 1);
      if (inA === a.position && inB === b.position) return true;
    }
    return false;
  }

  draw() {
    const { pair } = this;
    const { a, b } = this.#predictions;
    const isKnown = a !== null && b !== null;
    this.element.classList.toggle("hs-unknown-next", !isKnown);
    if (!isKnown) setText(this.finding, this.#why());
    if (!isKnown || !this.isOneStep) return; // wait for the other side's logits, so that both bars belong to one step
    const written = [a, b].map(({ position }, at) => pair.stores[SIDES[at]].tokens[position + 1]?.id ?? null);
    this.caption.textContent = `Token ${a.position + 1}: the model’s own probabilities`;
    const rows = nextRows(a, b, written, MAX_SHOWN_ROWS);
    fillRows(
      this.table,
      rows.map((row) => this.row(row, written)),
    );
    this.bars.replaceChildren(...rows.slice(0, BARS).map(bars));
    this.#say(rows, a, b);
  }

  /** Why nothing is known of the next word. */
  #why() {
    const { pair } = this;
    if (!pair.isAligned || SIDES.every((side) => pair.asked(side) < 0)) return "";
    const ended = SIDES.filter((side) => this.position(side) === null).map((side) => LETTERS[side]);
    if (!ended.length) return ""; // not known yet
    return `${ended.join(" and ")} cannot be asked for ${ended.length > 1 ? "their" : "its"} next word at this step.`;
  }

  /**
   * @param {NextRow[]} rows
   * @param {Prediction & { position: number }} a
   * @param {Prediction & { position: number }} b
   */
  #say(rows, a, b) {
    const { stores } = this.pair;
    if (!stores.a.tokens[a.position] || !stores.b.tokens[b.position]) return; // another text has begun
    const likeliest = likeliestOf(rows, a.most[0], b.most[0]);
    const before = [a, b].map(({ position }, at) =>
      spokenInWord(stores[SIDES[at]].tokens.slice(0, position + 1), position),
    );
    const masks = SIDES.map((side) => maskWords(stores[side].pointer.head_mask));
    const read = masks.map((words) => words || "with all heads");
    const words = !likeliest
      ? []
      : masks[0] === masks[1]
        ? findingWords(likeliest, [before[0], before[1]])
        : findingWords(likeliest, [before[0], before[1]], [read[0], read[1]]);
    if (words.join("") === this.finding.textContent) return;
    this.finding.replaceChildren(...words.map((word, at) => (at % 2 ? make("b", {}, word) : word)));
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

/** The bars of a word: that of A above that of B. @param {NextRow} row */
function bars({ text, a, b }) {
  const sides = [a, b].map((probability, at) => {
    const number = probability === null ? "no such token" : share(probability).replace("under ", "<");
    const amount = make("i", {}, bar(probability ?? 0, `hs-amount hs-amount-${SIDES[at]}`));
    return make("span", {}, badge(SIDES[at]), amount, make("span", {}, number));
  });
  return make("div", {}, make("b", {}, plainly(text)), ...sides);
}

/** @param {SideName} side @param {number | null} probability null for a token that this side lacks */
function probabilityCell(side, probability) {
  const amount = bar(probability ?? 0, `hs-amount hs-amount-${side}`);
  const number = make("span", {}, probability === null ? "no such token" : exact(probability));
  const parts = side === "a" ? [amount, number] : [number, amount];
  return makeCell(make("div", {}, ...parts), { class: `hs-next-${side}` });
}
