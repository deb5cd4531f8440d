// What the open head looks at, in one sentence with the number, and the two questions that everybody has about it.

import { isHead } from "../../lib/heads.mjs";
import { areSquares } from "../../lib/triangle.mjs";
import { make, setText } from "../../lib/dom.mjs";
import { wait } from "../../lib/latest.mjs";
import { share } from "../../lib/numbers.mjs";
import { pictureName, spokenAt, unitOf, wordUpTo } from "../../lib/words.mjs";
import { effect, untracked } from "../../vendor/signals.mjs";
import {
  headLookingBack,
  isOn,
  looksElsewhere,
  MIN_FOCUSED,
  MIN_LOOK,
  queryLookingBack,
  withoutAlike,
} from "../roles/heads_alike.mjs";
import { isComplete } from "../roles/text_patterns.mjs";
import { smallButton } from "../../widgets/controls.mjs";

/** @import { PlainAnswer } from "../answers/plain_answer.mjs" */
/** @import { Store } from "../state/store.mjs" */

const COUNTED_AFTER = 200; // milliseconds for which the place must stay the same
const WITHOUT_TITLE = "Writes the text twice: with all heads, and without those that are outlined";

export class FocusSentence {
  #awaited = ""; // the run that is being written, or that an address led to
  #isAsking = false; // whether the first question is pointed at
  #placed = ""; // the run that was shown where a head looks back
  #counted = { of: "", heads: 0 }; // how many do what the open head does at a token; 0 until that is known

  /** @param {Store} store @param {PlainAnswer} answer */
  constructor(store, answer) {
    this.store = store;
    this.answer = answer;
    this.words = make("p", { role: "status" });
    this.off = smallButton("", () => void answer.open("without"));
    this.off.title = WITHOUT_TITLE;
    for (const event of ["pointerenter", "focus"]) this.off.addEventListener(event, () => void this.#showAlike());
    for (const event of ["pointerleave", "blur", "click"]) this.off.addEventListener(event, () => this.#hideAlike());
    this.why = smallButton("", () => void answer.open("why"));
    this.element = make("div", { class: "hs-finding" }, this.words);
    if (!store.view.isLookOnly) this.element.append(this.off, this.why);
    store.on("state tokens focus weights open heads", () => this.draw());
    store.on("state tokens weights", () => this.#place());
    effect(() => {
      void store.roles;
      this.#counted.of = "";
      untracked(() => this.draw());
    });
  }

  draw() {
    const { store } = this;
    const { focus, hover, locked } = store.selection;
    const isKnown = focus !== null && focus.key !== null;
    const parts = isKnown ? describeFocus(store, focus.query, /** @type {number} */ (focus.key)) : [];
    const pointedAt = hover ?? locked.at(-1);
    const areSeen = isKnown && !store.view.options.details && pointedAt && pointedAt.key === undefined;
    if (areSeen && focus.query < store.count - 1) parts.push(` Orange ${unitOf(store)}s look at it.`);
    const text = parts.map((part) => (typeof part === "string" ? part : part.textContent)).join("");
    if (text !== this.words.textContent) this.words.replaceChildren(...parts);
    const why = `Why this ${unitOf(store)}?`;
    if (this.why.textContent !== why) this.why.textContent = why;
    this.why.disabled = !isKnown || store.isGrowing;
    this.off.disabled = this.why.disabled || !isOn(store);
    const areSeveral = looksElsewhere(store) || store.selectedHeads.chosen.length > 1;
    if (!hover && !this.off.disabled && !store.view.options.details) void this.#count();
    const heads = this.#counted.of === this.#selection ? this.#counted.heads : 0;
    const these = heads > 1 ? `these ${heads} heads` : "these heads";
    setText(this.off, `What if ${areSeveral && heads !== 1 ? these : "this head"} were off?`);
  }

  get #selection() {
    const { pointer, open, selectedHeads } = this.store;
    const { focus } = this.store.selection;
    return [pointer.run, open, focus?.query, selectedHeads.chosen].join(";");
  }

  /** Count the heads that the first question is about, once the text is at rest. */
  async #count() {
    const of = this.#selection;
    if (of === this.#counted.of) return;
    this.#counted = { of, heads: 0 };
    await wait(COUNTED_AFTER);
    if (of !== this.#selection || this.store.isGrowing) return;
    const removal = await withoutAlike(this.store);
    if (this.#counted.of !== of || !removal) return;
    this.#counted.heads = removal.heads.length;
    this.draw();
  }

  /**
   * Without details, a text that was written shows the head that looks back most clearly from the end of its prompt.
   * One that was shared, or without such a head, shows where the open head looks back most clearly.
   */
  async #place() {
    const { store } = this;
    const { run, state } = store.pointer;
    if (run !== this.#placed && (store.isGrowing || state === "linked")) this.#awaited = run;
    if (this.#awaited !== run || !isComplete(store)) return;
    this.#placed = run;
    this.#awaited = "";
    const isLeft = () => !store.view.options.details && store.selection.isEmpty;
    if (!isLeft()) return;
    const query = store.firstStep - 1;
    const weights = state === "linked" ? null : await store.fetcher.query(query).catch(() => null);
    if (run !== store.pointer.run || !isLeft()) return;
    const head = weights && headLookingBack(store, weights, query);
    if (head) store.view.choose(head);
    const at = head ? query : looksElsewhere(store, MIN_LOOK) ? null : queryLookingBack(store);
    if (at !== null) store.selection.look(at);
    store.selection.markAutomatic();
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

/** "Layer 5, head 1", or the name of another picture. @param {Store} store */
export function spelledName({ open, pointer }) {
  return isHead(open, pointer) ? `Layer ${open[0]}, head ${open[1]}` : pictureName(open, pointer);
}

/**
 * @param {Store} store
 * @param {number} query
 * @param {number} key
 * @returns {(string | HTMLElement)[]}
 */
export function describeFocus(store, query, key) {
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
  const name = spelledName(store);
  const isMost = key === store.weights.strongest(query, store.view.options.hideFirst ? 1 : 0);
  const from = wordUpTo(store.tokens, query);
  if (!isMost) return [`${name}: “${from}” gives `, word, " ", part, " of its attention."];
  if (key === query) return [`${name} looks at the ${unit} itself with `, part, " of its attention."];
  if (weight < MIN_FOCUSED) return [`${name} spreads its attention: at most `, part, ", on ", word, "."];
  // While a text is written, a sentence that takes one more line would move what is below it.
  const mayBeLong = !areSquares() && !store.isGrowing;
  const isAfterSame = mayBeLong && key > 0 && store.tokens[key - 1].id === store.tokens[query].id;
  const which = isAfterSame ? `, which came after “${from}” before,` : "";
  const looks = areSquares() ? "looks at" : "looks back at";
  return [`${name} ${looks} `, word, `${which} with `, part, " of its attention."];
}
