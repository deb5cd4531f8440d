// One text of two: what it is, and its tokens with what both share in grey and marks where they differ.

import { make } from "../../../lib/dom.mjs";
import { isBusy } from "../../state/pointer.mjs";
import { clamp, counted, exact } from "../../../lib/numbers.mjs";
import { visible } from "../../../lib/words.mjs";
import { TextView } from "../../panels/text_view.mjs";
import { stepKeys } from "../../keyboard.mjs";
import { modelWords } from "../titles.mjs";
import { areReadDifferently, changeSentence, nats, tokenChanges } from "../token_changes.mjs";

/** @import { Pointer } from "../../../types.js" */
/** @import { SideName } from "../alignment.mjs" */
/** @import { Pair } from "../pair.mjs" */

const STRONG = 2; // nats that get the strongest line

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
    this.change = make("p", { class: "hs-hint hs-pair-change", hidden: true });
    this.change.title = "A line under a token: less probable in B. A dotted line: more probable.";
    this.element.append(this.view.announcement, this.problem, ...more);
    if (side === "a") stepKeys(this.view); // both texts follow
    if (side === "b") this.problem.before(this.change);
    store.on("state problem tokens", () => this.describe());
    pair.on("tokens", () => {
      this.mark();
      if (side === "b") this.markChanges();
    });
  }

  /** @param {string} title */
  name(title) {
    this.title.textContent = title;
    this.title.title = title;
    this.describe();
    this.element.setAttribute("aria-label", title);
  }

  describe() {
    const { pointer, problem, length, playback } = this.pair.stores[this.side];
    const model = modelWords(pointer.model);
    const said = [model === this.title.textContent ? "" : model, progress(pointer, length)];
    this.status.textContent = said.filter(Boolean).join(" · ");
    this.status.title = this.status.textContent;
    const end = playback.isBehind && pointer.state === "done" ? "" : (pointer.why ?? ""); // of what is not shown yet
    const messages = [...pointer.notices, pointer.note, end, problem].filter((message) => message !== "");
    this.problem.replaceChildren(...messages.map((message) => make("p", {}, message)));
  }

  /** Grey what both texts share, and mark where they part. */
  mark() {
    const { alignment, stores } = this.pair;
    const parts = alignment.partsAt(this.side);
    const { length, pointer } = stores[this.side];
    const changes = alignment.changes(this.side, length);
    const marked = [pointer.run, parts, length, alignment.shared, ...changes].join(" ");
    if (marked === this.#marked) return;
    this.#marked = marked;
    this.view.fit(); // the pair hears of a text before its view does
    this.view.fill();
    for (let i = 0; i < length; i++) {
      const span = this.view.span(i);
      span?.classList.toggle("hs-shared", parts !== null && alignment.isShared(this.side, i));
      span?.classList.toggle("hs-parting", changes.includes(i));
    }
    this.element.dataset.parts = String(parts);
  }

  /** Underline the tokens that are more or less probable in B than in A. */
  markChanges() {
    const { alignment, stores, isComplete } = this.pair;
    const { a, b } = stores;
    const isOther = isComplete && areReadDifferently(a.pointer, b.pointer);
    const changes = isOther ? tokenChanges(alignment, a.tokens, b.tokens) : [];
    const sentence = changeSentence(changes, alignment.partsAt("b"));
    this.change.textContent = sentence;
    this.change.hidden = !sentence;
    for (let i = 0; i < b.length; i++) {
      const span = this.view.span(i);
      const found = changes[i] ?? null;
      if (!span || span.dataset.change === String(found?.change)) continue;
      span.dataset.change = String(found?.change);
      span.classList.toggle("hs-changed-token", found !== null);
      span.classList.toggle("hs-likelier", (found?.change ?? 0) > 0);
      if (!found) {
        span.removeAttribute("title");
        continue;
      }
      span.style.setProperty("--hs-strength", String(clamp(Math.sqrt(Math.abs(found.change) / STRONG), 0, 1)));
      const [left, right] = [found.a, found.b].map((logprob) => exact(Math.exp(logprob)));
      span.title = `“${visible(b.tokens[i].text)}”: A ${left}, B ${right}, ${nats(found.change)} nats`;
    }
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
