// Two texts on one screen: both texts, one clock, one head on each side with their difference, and the next token.

import { make } from "../../lib/dom.mjs";
import { onThemeChange } from "../../lib/drawing/palette.mjs";
import { icon } from "../../lib/icons.mjs";
import { colourControls } from "../panels/view_controls.mjs";
import { SecondReader } from "./panels/second_reader.mjs";
import { differencePanel, sideHead } from "./panels/pair_head.mjs";
import { PairHeads } from "./panels/pair_heads.mjs";
import { PairNext } from "./panels/pair_next.mjs";
import { pairScrubber } from "./panels/pair_scrubber.mjs";
import { textsTable } from "./panels/pair_table.mjs";
import { PairText } from "./panels/pair_text.mjs";
import { Ranking } from "./ranking.mjs";
import { sideTitles } from "./titles.mjs";

/** @import { Reading, TextActions } from "../../types.js" */
/** @import { SideName } from "./alignment.mjs" */
/** @import { Pair } from "./pair.mjs" */

export class CompareView {
  /**
   * @param {Pair} pair
   * @param {object} actions
   * @param {(side: SideName) => void} actions.keep show one text alone
   * @param {(reading: Reading) => void} actions.readAgain read A's text once more as B
   * @param {(mask: number[][] | null) => void} actions.scaleHeads read B's text with heads scaled
   * @param {TextActions["writeScaled"]} actions.writeScaled write both texts from the prompt, B with heads scaled
   * @param {HTMLElement[]} buttons beside those that end the comparison
   */
  constructor(pair, { keep, readAgain, scaleHeads, writeScaled }, buttons) {
    this.pair = pair;
    this.ranking = new Ranking(pair);
    this.reader = new SecondReader(pair, readAgain);
    this.heads = new PairHeads(pair, this.ranking, scaleHeads, writeScaled);
    this.texts = { a: new PairText(pair, "a"), b: new PairText(pair, "b", this.reader.element) };
    const table = textsTable(pair);
    const clock = pairScrubber(pair);
    clock.append(table.element);
    const bar = make("div", { class: "hs-compare-bar" });
    const end = (/** @type {string} */ words, /** @type {SideName} */ side) =>
      make("button", { type: "button", class: "hs-small", onclick: () => keep(side) }, words);
    const close = end("Close compare", "a");
    close.prepend(icon("close"), " ");
    close.title = "Back to the text on the left";
    this.finding = make("span", {});
    const back = end("Back to the answer", "a");
    this.why = make("p", { class: "hs-compare-why" }, this.finding, " ", back);
    this.why.hidden = true;
    const heading = make("h2", {}, "Compare");
    const settings = make("div", { class: "hs-controls" }, ...colourControls(pair.view));
    const tools = make("div", { class: "hs-compare-tools" }, table.toggle, ...buttons);
    bar.append(heading, settings, tools, end("Keep left", "a"), end("Keep right", "b"), close);
    const next = new PairNext(pair);
    this.grid = make("div", { class: "hs-compare-grid" }, this.texts.a.element, this.texts.b.element, clock);
    this.grid.append(this.heads.element, sideHead(pair, "a"), differencePanel(pair), sideHead(pair, "b"), next.element);
    this.element = make("div", { class: "hs-compare", role: "region", "aria-label": "Compare" }, bar);
    this.element.append(this.why, this.grid);
    pair.on("state tokens view", () => {
      this.grid.classList.toggle("hs-apart", pair.isApart || pair.heads.isStandIn);
      this.name();
    });
    onThemeChange(() => {
      for (const store of Object.values(pair.stores)) store.redraw();
      this.heads.draw();
    });
  }

  /** The answer of Ask that the comparison came from; "" for none. @param {string} finding */
  remember(finding) {
    this.finding.textContent = finding;
    this.why.hidden = !finding;
  }

  name() {
    const { pair, texts } = this;
    const [a, b] = sideTitles(pair.stores.a, pair.stores.b, pair.alignment);
    texts.a.name(a);
    texts.b.name(b);
    this.element.dataset.state = pair.isGrowing ? "writing" : "done";
  }
}
