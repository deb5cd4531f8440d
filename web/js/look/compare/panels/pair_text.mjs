// One text of two: what it is, and its tokens with what both begin with in grey and a mark where they part.

import { make } from "../../../lib/dom.mjs";
import { isBusy } from "../../../lib/states.mjs";
import { counted } from "../../../lib/numbers.mjs";
import { TextView } from "../../panels/text/text_view.mjs";
import { modelWords } from "../titles.mjs";

/** @import { Pointer } from "../../../types.js" */
/** @import { SideName } from "../alignment.mjs" */
/** @import { Pair } from "../pair.mjs" */

/** @type {Record<SideName, string>} */
export const LETTERS = { a: "A", b: "B" };

/** The letter of a side, in its colour. @param {SideName} side */
export const badge = (side) => make("span", { class: `hs-badge hs-badge-${side}`, "aria-hidden": true }, LETTERS[side]);

export class PairText {
  #marked = "";

  /**
   * @param {Pair} pair
   * @param {SideName} side
   * @param {...HTMLElement} more below the text
   */
  constructor(pair, side, ...more) {
    this.pair = pair;
    this.side = side;
    const store = pair.stores[side];
    this.view = new TextView(store, { label: `Text ${LETTERS[side]}` });
    this.title = make("h2", {});
    this.status = make("p", { class: "hs-status", role: "status" });
    this.problem = make("div", { class: "hs-notices", role: "status" });
    const top = make("div", { class: "hs-top" }, badge(side), this.title, this.status);
    this.element = make("section", { class: `hs-panel hs-pair-text hs-side-${side}` }, top, this.view.element);
    this.element.append(this.view.announcement, this.problem, ...more);
    store.on("state problem tokens", () => this.describe());
    pair.on("tokens", () => this.mark());
  }

  /** @param {string} title */
  name(title) {
    this.title.textContent = title;
    this.title.title = title;
    this.describe();
    this.element.setAttribute("aria-label", title);
  }

  describe() {
    const { pointer, problem, length } = this.pair.stores[this.side];
    const model = modelWords(pointer.model);
    const said = [model === this.title.textContent ? "" : model, progress(pointer, length)];
    this.status.textContent = said.filter(Boolean).join(" · ");
    this.status.title = this.status.textContent;
    const messages = [...pointer.notices, pointer.why ?? "", problem].filter((message) => message !== "");
    this.problem.replaceChildren(...messages.map((message) => make("p", {}, message)));
  }

  /** Grey what both texts begin with, and mark where they part. */
  mark() {
    const { alignment, stores } = this.pair;
    const parts = alignment.partsAt(this.side) ?? Infinity;
    const { length, pointer } = stores[this.side];
    const marked = `${pointer.run} ${parts} ${length}`;
    if (marked === this.#marked) return;
    this.#marked = marked;
    for (let i = 0; i < length; i++) {
      const span = this.view.span(i);
      span?.classList.toggle("hs-shared", parts < length && i < parts);
      span?.classList.toggle("hs-parting", i === parts);
    }
    this.element.dataset.parts = String(parts);
  }
}

/** @param {Readonly<Pointer>} pointer @param {number} length */
function progress({ state, settings }, length) {
  const seed = typeof settings.seed === "number" ? `seed ${settings.seed}` : "";
  const tokens = counted(length, "token");
  return [isBusy(state) ? `writing: ${tokens}` : state === "failed" ? "failed" : tokens, seed]
    .filter(Boolean)
    .join(" · ");
}
