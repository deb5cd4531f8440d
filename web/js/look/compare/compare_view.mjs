// Two texts on one screen: both texts, one scrubber, one head on each side with their difference, and the next token.

import { make } from "../../lib/dom.mjs";
import { onThemeChange } from "../../lib/drawing/palette.mjs";
import { icon } from "../../lib/icons.mjs";
import { LatestLoader, pauseFor } from "../../lib/latest.mjs";
import { exact, signed } from "../../lib/numbers.mjs";
import { logSoftmax, mostProbable } from "../../lib/sampling.mjs";
import { visible } from "../../lib/words.mjs";
import { Scrubber } from "../panels/scrubber.mjs";
import { colourControls } from "../panels/view_controls.mjs";
import { vocabulary } from "../state/run_fetcher.mjs";
import { nextRows } from "./difference.mjs";
import { sideTitles } from "./names.mjs";
import { SIDES } from "./pair.mjs";
import { differencePanel, sideHead } from "./pair_head.mjs";
import { PairHeads, Ranking } from "./pair_heads.mjs";
import { badge, LETTERS, PairText, SecondModel, textsTable } from "./pair_text.mjs";

/** @import { RunFetcher } from "../state/run_fetcher.mjs" */
/** @import { SideName } from "./alignment.mjs" */
/** @import { NextRow, Prediction } from "./difference.mjs" */
/** @import { Pair } from "./pair.mjs" */
/** @import { Texts } from "./texts.mjs" */

export class CompareView {
  /** @param {Texts} texts @param {HTMLElement[]} buttons next to those that end the comparison */
  constructor(texts, buttons) {
    const { pair } = texts;
    this.pair = pair;
    this.ranking = new Ranking(pair);
    this.reader = new SecondModel(texts);
    this.heads = new PairHeads(texts, this.ranking);
    this.texts = { a: new PairText(pair, "a"), b: new PairText(pair, "b", this.reader.element) };
    const table = textsTable(pair);
    const clock = pairScrubber(pair);
    clock.append(table.element);
    const bar = make("div", { class: "hs-compare-bar" });
    const end = (/** @type {string} */ words, /** @type {() => void} */ onclick) =>
      make("button", { type: "button", class: "hs-small", onclick }, words);
    const close = end("Close compare", () => texts.close());
    close.prepend(icon("close"), " ");
    close.title = "Back to the text as it was before";
    this.finding = make("span", {});
    const back = end("Back to the answer", () => texts.close());
    this.why = make("p", { class: "hs-compare-why" }, this.finding, " ", back);
    this.why.hidden = true;
    const heading = make("h2", {}, "Compare");
    const settings = make("div", { class: "hs-controls hs-detail" }, ...colourControls(pair.view));
    const [keepLeft, keepRight] = [
      end("Keep left", () => texts.showAlone("a")),
      end("Keep right", () => texts.showAlone("b")),
    ];
    const tools = make("div", { class: "hs-compare-tools" }, table.toggle, ...buttons);
    for (const part of [table.toggle, keepLeft, keepRight]) part.classList.add("hs-detail");
    bar.append(heading, settings, tools, keepLeft, keepRight, close);
    const next = new PairNext(pair);
    this.grid = make("div", { class: "hs-compare-grid" }, this.texts.a.element, this.texts.b.element, clock);
    this.grid.append(this.heads.element, sideHead(pair, "a"), differencePanel(pair), sideHead(pair, "b"), next.element);
    this.element = make("div", { class: "hs-compare", role: "region", "aria-label": "Compare" }, bar);
    this.element.append(this.why, this.grid);
    pair.on("state tokens view", () => {
      this.grid.classList.toggle("hs-apart", pair.isApart || pair.heads.isStandIn);
      this.name();
    });
    pair.on("step", () => this.showDivergence());
    onThemeChange(() => {
      for (const store of Object.values(pair.stores)) store.redraw();
      this.heads.draw();
    });
  }

  /** Show the answer of Ask that led to the comparison; "" for none. @param {string} finding */
  remember(finding) {
    this.finding.textContent = finding;
    this.why.hidden = !finding;
  }

  /** Until a step is chosen, complete texts show where they diverge, both on the same line. */
  showDivergence() {
    const { step, isGrowing, isComplete, leading, alignment } = this.pair;
    if (step !== null || leading || isGrowing || !isComplete) return;
    /** @param {number} line */
    const show = (line) => SIDES.map((side) => this.texts[side].view.scrollTo(alignment.divergesAt(side) ?? 0, line));
    const [a, b] = show(1);
    if (a !== b) show(Math.max(a, b));
    const parts = alignment.divergesAt("a");
    if (parts !== null && !this.pair.view.options.details) this.pair.goto(alignment.stepOf("a", parts));
  }

  name() {
    const { pair, texts } = this;
    const [a, b] = sideTitles(pair.stores.a, pair.stores.b, pair.alignment);
    texts.a.name(a);
    texts.b.name(b);
    this.element.dataset.state = pair.isGrowing ? "writing" : "done";
  }
}

/** @param {Pair} pair */
function pairScrubber(pair) {
  const scrubber = new Scrubber(pair, pair, (step) => {
    const words = SIDES.map((side) => `${LETTERS[side]} ${describe(pair, side, step)}`);
    return { text: `Token ${pair.tokenAt("a", step)}`, numbers: words.join(", ") };
  });
  /** @type {Record<SideName, HTMLElement>} */
  const values = { a: make("span", {}), b: make("span", {}) };
  const line = make("p", { class: "hs-pair-step", "aria-hidden": true });
  line.append(...SIDES.map((side) => make("span", {}, badge(side), " ", values[side])));
  pair.on("state tokens step", () => {
    const step = pair.chosen;
    for (const side of SIDES) values[side].textContent = step === null ? "" : describe(pair, side, step);
  });
  const box = make("section", { class: "hs-panel hs-pair-clock", "aria-label": "Step of both texts" });
  scrubber.element.append(line);
  box.append(scrubber.element);
  return box;
}

/** The token of a side at a step. @param {Pair} pair @param {SideName} side @param {number} step */
function describe(pair, side, step) {
  if (pair.alignment.isGap(side, step)) return "no such token";
  const at = pair.tokenAt(side, step);
  const token = pair.stores[side].tokens[at];
  if (!token) return "has ended";
  const number = token.logprob == null ? "given" : `probability ${exact(Math.exp(token.logprob))}`;
  return `“${visible(token.text)}” token ${at}, ${number}`;
}

const MAX_SHOWN_ROWS = 8;

class PairNext {
  /** @type {Record<SideName, (Prediction & { position: number }) | null>} */
  #predictions = { a: null, b: null };

  /** @param {Pair} pair */
  constructor(pair) {
    this.pair = pair;
    this.caption = make("caption", {});
    this.body = make("tbody", {});
    const change = make("th", { scope: "col", title: "Log-probability in B minus that in A, in nats" }, "Δ nats");
    const sides = SIDES.map((side) =>
      make(
        "th",
        { scope: "col", class: `hs-next-${side}` },
        badge(side),
        make("span", { class: "hs-next-word" }, " probability"),
      ),
    );
    const head = make(
      "tr",
      {},
      sides[0],
      make("th", { scope: "col", class: "hs-next-token" }, "token"),
      sides[1],
      change,
    );
    this.table = make("table", {}, this.caption, make("thead", {}, head), this.body);
    const top = make("div", { class: "hs-top" }, make("h2", {}, "Next token"));
    this.element = make(
      "section",
      { class: "hs-panel hs-pair-next", "aria-label": "Next token of both" },
      top,
      this.table,
    );
    this.loaders = { a: this.loader("a"), b: this.loader("b") };
    pair.on("state tokens step", () => this.want());
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
    const texts = SIDES.map((side) => pair.stores[side].tokens[pair.tokenAt(side, step)]?.text ?? null);
    this.caption.textContent = `Token ${pair.tokenAt("a", step)}: the model’s own probabilities`;
    const rows = nextRows(a, b, written, MAX_SHOWN_ROWS);
    this.body.replaceChildren(...rows.map((row) => this.row(row, texts)));
  }

  /** @param {NextRow} row @param {(string | null)[]} written */
  row({ text, a, b, difference }, written) {
    const marks = SIDES.flatMap((side, i) => (written[i] === text ? badge(side) : []));
    marks.forEach((mark) => (mark.title = "written there"));
    const token = make(
      "th",
      { scope: "row", class: "hs-next-token" },
      ...marks.slice(0, 1),
      visible(text),
      ...marks.slice(1),
    );
    const change = difference === null ? "" : signed(difference, 3);
    const cells = [
      probabilityCell("a", a),
      token,
      probabilityCell("b", b),
      make("td", { class: "hs-next-change" }, change),
    ];
    return make("tr", { class: marks.length ? "hs-is-written" : null }, ...cells);
  }
}

/** @param {SideName} side @param {number | null} probability null for a token that this side lacks */
function probabilityCell(side, probability) {
  const amount = make("span", { class: `hs-amount hs-amount-${side}`, "aria-hidden": true });
  amount.style.setProperty("--part", String(probability ?? 0));
  const number = make("span", {}, probability === null ? "no such token" : exact(probability));
  return make(
    "td",
    { class: `hs-next-${side}` },
    make("div", {}, ...(side === "a" ? [amount, number] : [number, amount])),
  );
}
