// Two texts on one screen: both texts, one scrubber, one head on each side with their difference, and the next token.

import { make, PHONE, setText } from "../../lib/dom.mjs";
import { onThemeChange } from "../../lib/drawing/palette.mjs";
import { isSameMask } from "../../lib/head_masks.mjs";
import { share } from "../../lib/numbers.mjs";
import { icon } from "../../lib/icons.mjs";
import { visible } from "../../lib/words.mjs";
import { Scrubber } from "../panels/scrubber.mjs";
import { colourControls } from "../panels/view_controls.mjs";
import { isBusy, isGiven } from "../state/pointer.mjs";
import { OwnText } from "./compare_menu.mjs";
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
/** @import { TableView } from "../../widgets/table_view.mjs" */

export class CompareView {
  /** @param {Texts} texts @param {HTMLElement[]} buttons next to those that end the comparison */
  constructor(texts, buttons) {
    const { pair } = texts;
    this.pair = pair;
    this.ranking = new Ranking(pair);
    this.reader = new SecondModel(texts);
    this.heads = new RankedHeads(texts, this.ranking);
    this.texts = { a: new PairText(pair, "a"), b: new PairText(pair, "b") };
    this.compared = { a: make("span", {}), b: make("span", {}) };
    this.change = smallButton("Change B", () => this.changeSecond());
    this.own = new OwnText(pair.stores.b, texts, () => this.change.focus());
    this.finding = make("span", {});
    const back = smallButton("Back to the answer", () => texts.close());
    this.why = make("p", { class: "hs-compare-why" }, this.finding, " ", back);
    this.why.hidden = true;
    const inFull = textsInFull(pair, this.texts);
    const next = new PairNext(pair);
    this.fork = new Fork(pair);
    const head = wipe(pair, sideHead(pair, "a"), differencePanel(pair), sideHead(pair, "b"));
    this.grid = make("div", { class: "hs-compare-grid" }, next.element, this.fork.element, this.heads.element);
    this.grid.append(head, inFull.element);
    this.element = make("div", { class: "hs-compare", role: "region", "aria-label": "Compare" });
    this.element.append(this.#bar(texts, buttons, inFull.table), this.own.element, this.why, this.grid);
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

  /**
   * The way back, what is compared, and what else can be done.
   * @param {Texts} texts
   * @param {HTMLElement[]} buttons
   * @param {TableView} table of both texts
   */
  #bar(texts, buttons, table) {
    const { pair, heads, reader } = this;
    const close = smallButton("← Back to the text", () => texts.close());
    close.title = "Show the text as it was before";
    const keep = [smallButton("Keep A", () => texts.showAlone("a")), smallButton("Keep B", () => texts.showAlone("b"))];
    keep.forEach((button, at) => (button.title = `Show text ${"AB"[at]} alone`));
    const mute = smallButton("Mute heads in B", () => heads.muteHere());
    const tables = [heads.table.toggle, table.toggle];
    for (const toggle of tables) setText(toggle, toggle.ariaLabel ?? ""); // both are in one menu
    const more = moreMenu([...keep, mute, ...tables], [...buttons, ...colourControls(pair.view)]);
    const sides = SIDES.map((side) => make("span", {}, badge(side), " ", this.compared[side]));
    const compared = make("p", { class: "hs-compared" }, ...sides);
    return make("div", { class: "hs-compare-bar" }, close, compared, reader.element, this.change, more);
  }

  /** Another text B, or other heads that are off in it, in its place. */
  changeSecond() {
    const { a, b } = this.pair.stores;
    if (isSameMask(a.pointer.head_mask, b.pointer.head_mask)) this.own.open();
    else this.heads.muteHere();
  }

  /** Another comparison begins: it is seen once it is known how the texts align, so that nothing on it moves. */
  begin() {
    this.element.classList.add("hs-unaligned");
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
    setText(this.compared.a, a);
    setText(this.compared.b, b);
    this.change.hidden = pair.stores.a.pointer.sha256 !== pair.stores.b.pointer.sha256; // its model is chosen there
    const isBegun = pair.alignment.pieces.length > 0 && SIDES.some((side) => isBusy(pair.stores[side].pointer.state));
    if (isBegun || (pair.isComplete && pair.isAligned && !pair.isGrowing))
      this.element.classList.remove("hs-unaligned");
    this.element.classList.toggle(
      "hs-written-here",
      SIDES.some((side) => !isGiven(pair.stores[side].pointer.state)),
    );
    this.element.dataset.state = pair.isGrowing ? "writing" : "done";
  }
}

/**
 * What is needed now and then.
 * @param {HTMLElement[]} acts whose results are seen elsewhere: the menu closes
 * @param {HTMLElement[]} parts
 */
function moreMenu(acts, parts) {
  const more = quietAction(icon("more"), null, { "aria-label": "More" });
  const panel = make("div", { class: "hs-popover hs-stage-menu", hidden: true }, ...acts, ...parts);
  const element = make("div", { class: "hs-popover-anchor hs-compare-more" }, more, panel);
  const popover = new Popover(element, more, (isOpen) => (panel.hidden = !isOpen));
  for (const act of acts) act.addEventListener("click", () => popover.toggle(false), { capture: true });
  return element;
}

/**
 * Both texts with all tokens, their clock, and their table. A phone shows them when they are asked for.
 * @param {Pair} pair
 * @param {Record<SideName, PairText>} texts
 */
function textsInFull(pair, texts) {
  const table = textsTable(pair);
  const clock = pairScrubber(pair);
  clock.append(table.element);
  const both = make("div", { class: "hs-compare-both" }, clock, texts.a.element, texts.b.element);
  const element = make(
    "details",
    { class: "hs-compare-texts" },
    make("summary", {}, "Both texts, token by token"),
    both,
  );
  element.open = !matchMedia(PHONE).matches;
  table.toggle.addEventListener("click", () => {
    element.open = true;
    table.element.scrollIntoView({ block: "nearest" });
  });
  return { element, table };
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
