// What the open head looks at, in one sentence with the number, and the two questions that everybody has about it.

import { areRectangles } from "../../lib/triangle.mjs";
import { make, setText } from "../../lib/dom.mjs";
import { share } from "../../lib/numbers.mjs";
import { capitalised, spokenAt, unitOf, wordUpTo } from "../../lib/words.mjs";
import { isOn, looksElsewhere, MIN_FOCUSED, withoutAlike } from "../roles/heads_alike.mjs";
import { smallButton } from "../../widgets/controls.mjs";
import { whenever } from "../../lib/reactive.mjs";

/** @import { Writing } from "../../types.js" */
/** @import { ShownText } from "../state/shown_text.mjs" */

export class FocusSentence {
  #isAsking = false; // whether the first question is pointed at

  /** @param {ShownText} store @param {Writing | null} writing null in a file */
  constructor(store, writing) {
    this.store = store;
    this.words = make("p", { role: "status" });
    this.off = smallButton("", async () => {
      const removal = await withoutAlike(store);
      if (removal) writing?.writeScaled(removal.mask, removal.query + 1);
    });
    this.off.title = "Writes the text twice: with all heads, and without those that are outlined";
    for (const event of ["pointerenter", "focus"]) this.off.addEventListener(event, () => void this.#showAlike());
    for (const event of ["pointerleave", "blur", "click"]) this.off.addEventListener(event, () => this.#hideAlike());
    this.why = smallButton("", () => store.view.set({ ask: "attribution", askWith: "" }));
    this.element = make("div", { class: "hs-finding" }, this.words);
    if (!store.view.isLookOnly) this.element.append(this.off, this.why);
    whenever(
      () => [
        ...store.progress,
        store.count,
        store.open,
        store.view.options,
        store.selection.selected,
        ...store.selectedHeads.shown,
      ],
      () => this.draw(),
    );
  }

  draw() {
    const { store } = this;
    const { focus } = store.selection;
    const isKnown = focus !== null && focus.key !== null;
    const parts = isKnown ? describeFocus(store, focus.query, /** @type {number} */ (focus.key)) : [];
    const text = parts.map((part) => (typeof part === "string" ? part : part.textContent)).join("");
    if (text !== this.words.textContent) this.words.replaceChildren(...parts);
    setText(this.why, `Why this ${unitOf(store)}?`);
    this.why.disabled = !isKnown || store.isGrowing;
    this.off.disabled = this.why.disabled || !isOn(store);
    const areSeveral = looksElsewhere(store) || store.selectedHeads.chosen.length > 1;
    setText(this.off, `What if ${areSeveral ? "these heads" : "this head"} were off?`);
  }

  /** Which heads "these" are, while the question is pointed at. */
  async #showAlike() {
    if (this.off.disabled || !this.off.matches(":hover, :focus-visible")) return;
    this.#isAsking = true;
    const removal = await withoutAlike(this.store);
    if (removal && this.#isAsking) this.store.selectedHeads.point(removal.heads);
  }

  #hideAlike() {
    this.#isAsking = false;
    this.store.selectedHeads.point([]);
  }
}

/**
 * @param {ShownText} store
 * @param {number} query
 * @param {number} key
 * @returns {(string | HTMLElement)[]}
 */
function describeFocus(store, query, key) {
  const unit = unitOf(store);
  const mean = store.selectedHeads.meanRow(query);
  if (mean) {
    const first = store.view.options.hideFirst ? 1 : 0;
    const most = mean.reduce((best, weight, at) => (at >= first && weight > mean[best] ? at : best), first);
    const those = `These ${store.selectedHeads.heads.length} heads look back at `;
    const said = [make("b", {}, spokenAt(store.tokens, most)), " with ", make("b", {}, share(mean[most]))];
    return [those, ...said, " of their attention on average."];
  }
  const weight = store.weights.at(query, key);
  const word = make("b", {}, spokenAt(store.tokens, key));
  const part = make("b", {}, share(weight));
  const name = capitalised(store.openName);
  const isMost = key === store.weights.strongest(query, store.view.options.hideFirst ? 1 : 0);
  const from = wordUpTo(store.tokens, query);
  if (!isMost) return [`${name}: “${from}” gives `, word, " ", part, " of its attention."];
  if (key === query) return [`${name} looks at the ${unit} itself with `, part, " of its attention."];
  if (weight < MIN_FOCUSED) return [`${name} spreads its attention: at most `, part, ", on ", word, "."];
  // While a text is written, a sentence that takes one more line would move what is below it.
  const mayBeLong = !areRectangles() && !store.isGrowing;
  const isAfterSame = mayBeLong && key > 0 && store.tokens[key - 1].id === store.tokens[query].id;
  const which = isAfterSame ? `, which came after “${from}” before,` : "";
  const looks = areRectangles() ? "looks at" : "looks back at";
  return [`${name} ${looks} `, word, `${which} with `, part, " of its attention."];
}
