// Two texts on one screen: both texts, one scrubber, one head on each side with their difference, and the next token.

import { make } from "../../lib/dom.mjs";
import { onThemeChange } from "../../lib/drawing/palette.mjs";
import { share } from "../../lib/numbers.mjs";
import { icon } from "../../lib/icons.mjs";
import { visible } from "../../lib/words.mjs";
import { Scrubber } from "../panels/scrubber.mjs";
import { colourControls } from "../panels/view_controls.mjs";
import { isBusy } from "../state/pointer.mjs";
import { Fork } from "./fork.mjs";
import { badge, LETTERS, sideTitles } from "./names.mjs";
import { differencePanel, sideHead } from "./open_heads.mjs";
import { SIDES } from "./pair.mjs";
import { PairNext } from "./pair_next.mjs";
import { PairText, SecondModel, textsTable } from "./pair_text.mjs";
import { RankedHeads } from "./ranked_heads.mjs";
import { Ranking } from "./ranking.mjs";
import { wipe } from "./wipe.mjs";
import { quietAction, smallButton } from "../../widgets/controls.mjs";
import { Popover } from "../../widgets/popover.mjs";
import { effect, onChange, whenever } from "../../lib/reactive.mjs";

/** @import { SideName } from "./alignment.mjs" */
/** @import { Pair } from "./pair.mjs" */
/** @import { Texts } from "./texts.mjs" */

export class CompareView {
  /** @param {Texts} texts @param {HTMLElement[]} buttons next to those that end the comparison */
  constructor(texts, buttons) {
    const { pair } = texts;
    this.pair = pair;
    this.ranking = new Ranking(pair);
    this.reader = new SecondModel(texts);
    this.heads = new RankedHeads(texts, this.ranking);
    this.texts = { a: new PairText(pair, "a"), b: new PairText(pair, "b", this.reader.element) };
    const table = textsTable(pair);
    const clock = pairScrubber(pair);
    clock.append(table.element);
    const bar = make("div", { class: "hs-compare-bar" });
    const close = smallButton("← Back to the text", () => texts.close());
    close.title = "Show the text as it was before";
    this.finding = make("span", {});
    const back = smallButton("Back to the answer", () => texts.close());
    this.why = make("p", { class: "hs-compare-why" }, this.finding, " ", back);
    this.why.hidden = true;
    const keep = [smallButton("Keep A", () => texts.showAlone("a")), smallButton("Keep B", () => texts.showAlone("b"))];
    keep.forEach((button, at) => (button.title = `Show text ${"AB"[at]} alone`));
    bar.append(close, moreMenu([...keep, ...buttons, table.toggle, ...colourControls(pair.view)]));
    const next = new PairNext(pair);
    this.fork = new Fork(pair);
    const head = wipe(pair, sideHead(pair, "a"), differencePanel(pair), sideHead(pair, "b"));
    const both = [this.texts.a.element, this.texts.b.element];
    this.grid = make("div", { class: "hs-compare-grid" }, next.element, this.fork.element, this.heads.element);
    this.grid.append(head, clock, ...both, this.fork.chance);
    this.element = make("div", { class: "hs-compare", role: "region", "aria-label": "Compare" }, bar);
    this.element.append(this.why, this.grid);
    whenever(
      () => [...pair.progress, ...pair.heads.opened, pair.stores.b.problem],
      () => this.name(),
    );
    onChange(
      () => [...pair.progress, ...pair.place],
      () => this.showDivergence(),
    );
    onThemeChange(() => {
      for (const store of Object.values(pair.stores)) store.redraw();
      this.heads.draw();
    });
  }

  /** Another comparison begins: it is seen once it is known how the texts align, so that nothing on it moves. */
  begin() {
    this.grid.classList.add("hs-unaligned");
    this.ranking.begin();
    this.name();
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
  }

  name() {
    const { pair, texts } = this;
    const [a, b] = sideTitles(pair.stores.a, pair.stores.b, pair.alignment);
    texts.a.name(a);
    texts.b.name(b);
    this.fork.name("a", a);
    this.fork.name("b", b);
    const isWritten = SIDES.some((side) => isBusy(pair.stores[side].pointer.state));
    if (isWritten || (pair.isComplete && pair.isAligned && !pair.isGrowing)) this.grid.classList.remove("hs-unaligned");
    this.element.dataset.state = pair.isGrowing ? "writing" : "done";
  }
}

/** What is needed now and then. @param {HTMLElement[]} parts */
function moreMenu(parts) {
  const more = quietAction(icon("more"), null, { "aria-label": "More" });
  const panel = make("div", { class: "hs-popover hs-stage-menu", hidden: true }, ...parts);
  const element = make("div", { class: "hs-popover-anchor hs-compare-more" }, more, panel);
  new Popover(element, more, (isOpen) => (panel.hidden = !isOpen));
  return element;
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
  effect(() => {
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
  const number = token.logprob == null ? "given" : `probability ${share(Math.exp(token.logprob))}`;
  return `“${visible(token.text)}” token ${at}, ${number}`;
}
