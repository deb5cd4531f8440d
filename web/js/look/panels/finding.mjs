// What the open head looks at, in one sentence with the number, and the two questions that everybody has about it.

import { isHead, isSame } from "../../lib/heads.mjs";
import { areSquares } from "../../lib/triangle.mjs";
import { make, setText } from "../../lib/dom.mjs";
import { wait } from "../../lib/latest.mjs";
import { share } from "../../lib/numbers.mjs";
import { pictureName, plainly, spoken, unitOf, wordUpTo } from "../../lib/words.mjs";
import { scaleOf, withScale } from "../../lib/head_masks.mjs";
import { copies, roleOf } from "../roles/head_roles.mjs";
import { isComplete } from "../roles/text_patterns.mjs";

/** @import { Focus, PictureId } from "../../types.js" */
/** @import { PlainAnswer } from "../answers/plain_answer.mjs" */
/** @import { Store } from "../state/store.mjs" */

const ALIKE = 0.1; // of its attention: a copying head that gives a word this much makes it likely
export const LOOKS = 0.3; // of its attention: any other head that gives a word this much looks at it
const ROLES_TIMEOUT = 10_000; // milliseconds that the question waits for the heads' roles
const NEAR = 24; // tokens back that are usually in view with the looking one
const THIN = 0.1; // if the strongest weight is below this, the head is said to look everywhere
const COUNTED_AFTER = 200; // milliseconds for which the place must stay the same
const OFF = "Writes the text twice: with all heads, and without those that are outlined";

export class Finding {
  #awaited = ""; // the run that is being written, or that an address led to
  #isAsking = false; // whether the first question is pointed at
  #placed = ""; // the run that was shown where a head looks back
  #counted = { of: "", heads: 0 }; // how many do what the open head does at a token; 0 until that is known

  /** @param {Store} store @param {PlainAnswer} answer */
  constructor(store, answer) {
    this.store = store;
    this.answer = answer;
    this.words = make("p", { role: "status" });
    this.off = make("button", { type: "button", class: "hs-small", onclick: () => void answer.open("without") });
    this.off.title = OFF;
    for (const event of ["pointerenter", "focus"]) this.off.addEventListener(event, () => void this.#showAlike());
    for (const event of ["pointerleave", "blur", "click"]) this.off.addEventListener(event, () => this.#hideAlike());
    this.why = make("button", { type: "button", class: "hs-small", onclick: () => void answer.open("why") });
    this.element = make("div", { class: "hs-finding" }, this.words);
    if (!store.view.isLookOnly) this.element.append(this.off, this.why);
    store.on("state tokens focus weights open together", () => this.draw());
    store.on("state tokens weights", () => this.#place());
    store.on("roles", () => {
      this.#counted.of = "";
      this.draw();
    });
    this.draw();
  }

  draw() {
    const { store } = this;
    const { focus } = store;
    const isKnown = focus !== null && focus.key !== null;
    const parts = isKnown ? describeFocus(store, focus.query, /** @type {number} */ (focus.key)) : [];
    const pointedAt = store.hover ?? store.locked.at(-1);
    const areSeen = isKnown && !store.view.options.details && pointedAt && pointedAt.key === undefined;
    if (areSeen && focus.query < store.count - 1) parts.push(` Orange ${unitOf(store)}s look at it.`);
    const text = parts.map((part) => (typeof part === "string" ? part : part.textContent)).join("");
    if (text !== this.words.textContent) this.words.replaceChildren(...parts);
    const why = `Why this ${unitOf(store)}?`;
    if (this.why.textContent !== why) this.why.textContent = why;
    this.why.disabled = !isKnown || store.isGrowing;
    this.off.disabled = this.why.disabled || !isOn(store);
    const areSeveral = isLook(store) || store.together.chosen.length > 1;
    if (!store.hover && !this.off.disabled && !store.view.options.details) void this.#count();
    const heads = this.#counted.of === this.#selection ? this.#counted.heads : 0;
    const these = heads > 1 ? `these ${heads} heads` : "these heads";
    setText(this.off, `What if ${areSeveral && heads !== 1 ? these : "this head"} were off?`);
  }

  get #selection() {
    const { pointer, open, focus, together } = this.store;
    return [pointer.run, open, focus?.query, together.chosen].join(";");
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
    const isLeft = () => !store.view.options.details && store.step === null && !store.locked.length;
    if (!isLeft()) return;
    const query = store.firstStep - 1;
    const weights = state === "linked" ? null : await store.fetcher.query(query).catch(() => null);
    if (run !== store.pointer.run || !isLeft()) return;
    const head = weights && headLookingBack(store, weights, query);
    if (head) store.view.choose(head);
    const at = head ? query : isLook(store, LOOKS) ? null : queryLookingBack(store);
    if (at !== null) store.look(at);
    store.markAutomatic();
  }

  /** Which heads "these" are, while the question is pointed at. */
  async #showAlike() {
    if (this.off.disabled || !this.off.matches(":hover, :focus-visible")) return;
    this.#isAsking = true;
    const removal = await withoutAlike(this.store);
    if (removal && this.#isAsking) this.store.together.point(removal.heads);
  }

  #hideAlike() {
    this.#isAsking = false;
    this.store.together.point([]);
  }
}

/** Which tokens are words, or parts of them. @param {Store} store */
const wordsOf = ({ tokens }) => tokens.map(({ text }) => /[\p{L}\p{N}]/u.test(text));

/**
 * The head that looks back most clearly at a word from a token, best of all at the one that comes next, and best of
 * those a head that copies; null for none.
 * @param {Store} store
 * @param {Float32Array} weights of the token in every picture
 * @param {number} query
 */
function headLookingBack(store, weights, query) {
  const isWord = wordsOf(store);
  const { tokens } = store;
  let [best, most] = [/** @type {PictureId | null} */ (null), LOOKS];
  for (const head of store.data.heads) {
    const start = store.data.index(head) * (query + 1);
    for (let key = 1; key < query - 1; key++) {
      const weight = isWord[key] ? weights[start + key] : 0;
      const isNext = tokens[key].id === tokens[query + 1]?.id;
      const clarity = weight < LOOKS ? 0 : weight + (isNext ? 1 : 0) + (isNext && copies(roleOf(store, head)) ? 1 : 0);
      if (clarity > most) [best, most] = [head, clarity];
    }
  }
  return best;
}

/**
 * The written word from which the open head looks back most clearly at one not far away, best of all at the one that
 * comes next; null if there is none.
 * @param {Store} store
 */
function queryLookingBack(store) {
  const { tokens, weights, firstStep, count } = store;
  const isWord = wordsOf(store);
  let [best, most] = [/** @type {number | null} */ (null), LOOKS];
  for (let query = firstStep - 1; query < count - 1; query++) {
    for (let key = Math.max(query - NEAR, 1); isWord[query] && key < query; key++) {
      const weight = isWord[key] ? weights.at(query, key) : 0;
      const clarity = weight < LOOKS ? 0 : weight + (tokens[key].id === tokens[query + 1].id ? 1 : 0);
      if (clarity > most) [best, most] = [query, clarity];
    }
  }
  return best;
}

/** Whether the open picture is a head that is not switched off. @param {Store} store */
const isOn = ({ open, pointer }) => isHead(open, pointer) && scaleOf(pointer.head_mask, open) !== 0;

/**
 * Whether the open head looks at another token.
 * @param {Store} store
 * @param {number} [least] of its attention
 */
function isLook(store, least = THIN) {
  const { query, key } = store.focus ?? {};
  const isElsewhere = query !== undefined && key != null && key !== query;
  return isElsewhere && isOn(store) && store.weights.at(query, key) >= least;
}

/**
 * The heads that are selected together; else those that do what the open one does at the token in focus. With the mask
 * without them; null if that is not known.
 * @param {Store} store
 */
export async function withoutAlike(store) {
  const { focus, fetcher, pointer } = store;
  if (!focus || focus.key === null) return null;
  const { query } = focus;
  const without = (/** @type {PictureId[]} */ heads) => ({
    heads,
    mask: withScale(pointer.head_mask, pointer, heads, 0),
    query,
  });
  const { chosen } = store.together;
  if (chosen.length > 1) return without(chosen);
  if (!isLook(store)) return without([store.open]);
  try {
    const weights = await fetcher.query(focus.query);
    // On a page that has just been opened, what the heads do is not known yet.
    if (!store.roles) await Promise.race([store.next("roles"), wait(ROLES_TIMEOUT)]);
    if (fetcher !== store.fetcher) return null;
    return without(headsAlike(store, weights, focus));
  } catch (error) {
    store.report(`Could not fetch the attention weights: ${/** @type {Error} */ (error).message}`);
    return null;
  }
}

/**
 * The heads that do what one head does at a token: if it copies, all copying heads that look at the same word;
 * otherwise, all that give this word much of their attention.
 * @param {Store} store
 * @param {Float32Array} weights of the query in every picture
 * @param {Focus} focus
 * @param {PictureId} [like] the one head
 */
export function headsAlike(store, weights, { query, key }, like = store.open) {
  const { tokens, data } = store;
  const word = plainly(tokens[key ?? 0].text);
  const keys = tokens.slice(0, query + 1).flatMap(({ text }, i) => (plainly(text) === word ? [i] : []));
  const isCopying = copies(roleOf(store, like));
  /** @param {PictureId} head */
  const isAlike = (head) => {
    const start = data.index(head) * (query + 1);
    const weight = keys.reduce((sum, at) => sum + weights[start + at], 0);
    return isCopying ? weight >= ALIKE && copies(roleOf(store, head)) : weight >= LOOKS;
  };
  return data.heads.filter((head) => isSame(head, like) || isAlike(head));
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
  const together = store.together.row(query);
  if (together) {
    const first = store.view.options.hideFirst ? 1 : 0;
    const most = together.reduce((best, weight, at) => (at >= first && weight > together[best] ? at : best), first);
    const those = `These ${store.together.heads.length} heads look back at `;
    const said = [make("b", {}, spoken(store.tokens[most].text)), " with ", make("b", {}, share(together[most]))];
    return [those, ...said, " of their attention on average."];
  }
  const weight = store.weights.at(query, key);
  const word = make("b", {}, spoken(store.tokens[key].text));
  const part = make("b", {}, share(weight));
  const name = spelledName(store);
  const isMost = key === store.weights.strongest(query, store.view.options.hideFirst ? 1 : 0);
  const from = wordUpTo(store.tokens, query);
  if (!isMost) return [`${name}: “${from}” gives `, word, " ", part, " of its attention."];
  if (key === query) return [`${name} looks at the ${unit} itself with `, part, " of its attention."];
  if (weight < THIN) return [`${name} spreads its attention: at most `, part, ", on ", word, "."];
  // While a text is written, a sentence that takes one more line would move what is below it.
  const mayBeLong = !areSquares() && !store.isGrowing;
  const isAfterSame = mayBeLong && key > 0 && store.tokens[key - 1].id === store.tokens[query].id;
  const which = isAfterSame ? `, which came after “${from}” before,` : "";
  const looks = areSquares() ? "looks at" : "looks back at";
  return [`${name} ${looks} `, word, `${which} with `, part, " of its attention."];
}
