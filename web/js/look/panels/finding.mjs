// What the open head looks at, in one sentence with the number, and the two questions that everybody has about it.

import { areSquares } from "../../lib/triangle.mjs";
import { make } from "../../lib/dom.mjs";
import { wait } from "../../lib/latest.mjs";
import { share } from "../../lib/numbers.mjs";
import { pictureName, plainly, spoken, unitOf } from "../../lib/words.mjs";
import { withScale } from "../ask/head_masks.mjs";
import { effectOf } from "../answers/effect.mjs";
import { copies, roleOf } from "../roles/head_roles.mjs";
import { isComplete } from "../roles/text_patterns.mjs";

/** @import { Focus, PictureId } from "../../types.js" */
/** @import { PlainAnswer } from "../answers/plain_answer.mjs" */
/** @import { Store } from "../state/store.mjs" */

const ALIKE = 0.1; // of its attention: a copying head that gives a word this much brings it about
export const LOOKS = 0.3; // any other head that gives a word this much looks at it
const PATIENCE = 3000; // milliseconds that the question waits for what the heads do
const NEAR = 24; // tokens back that are in view with the one that looks
const THIN = 0.1; // below it the strongest weight says that the head looks everywhere
const RESTING = 400; // milliseconds that a selection stays before its heads are weighed
const LEAST = 0.01; // of the probability: a smaller change makes no difference
const OFF = "Writes the text twice: with all heads, and without those that look at the same word";

export class Finding {
  #place = ""; // of the selection that was weighed last
  #isIdle = false; // whether switching the heads off changes hardly anything there
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #awaited = ""; // the run that is being written, or that an address led to
  #isAsking = false; // whether the first question is pointed at
  #landed = ""; // the run that was shown where the open head looks back

  /** @param {Store} store @param {PlainAnswer} answer */
  constructor(store, answer) {
    this.store = store;
    this.answer = answer;
    this.words = make("p", { role: "status" });
    this.off = make("button", { type: "button", class: "hs-small", onclick: () => void answer.open("without") });
    this.off.append("What if these heads were off?");
    for (const event of ["pointerenter", "focus"]) this.off.addEventListener(event, () => void this.#showAlike());
    for (const event of ["pointerleave", "blur", "click"]) this.off.addEventListener(event, () => this.#hideAlike());
    this.why = make("button", { type: "button", class: "hs-small", onclick: () => void answer.open("why") });
    this.element = make("div", { class: "hs-finding" }, this.words);
    if (!store.view.isLookOnly) this.element.append(this.off, this.why);
    store.on("state tokens focus weights open", () => {
      this.#weigh();
      this.draw();
    });
    store.on("state tokens weights", () => this.#land());
    store.on("together", () => this.draw());
    this.draw();
  }

  draw() {
    const { store } = this;
    const { focus } = store;
    const isKnown = focus !== null && focus.key !== null;
    const parts = isKnown ? describeFocus(store, focus.query, /** @type {number} */ (focus.key)) : [];
    const text = parts.map((part) => (typeof part === "string" ? part : part.textContent)).join("");
    if (text !== this.words.textContent) this.words.replaceChildren(...parts);
    const why = `Why this ${unitOf(store)}?`;
    if (this.why.textContent !== why) this.why.textContent = why;
    this.why.disabled = !isKnown || store.isGrowing;
    this.off.disabled = this.why.disabled || !isLook(store) || this.#isIdle;
    this.off.title = this.#isIdle ? "Here they make no difference to the next word" : OFF;
  }

  /** Without details, a text that was written or shared shows where the open head looks back most clearly. */
  #land() {
    const { store } = this;
    const { run, state } = store.pointer;
    if (run !== this.#landed && (store.isGrowing || state === "linked")) this.#awaited = run;
    if (this.#awaited !== run || !isComplete(store)) return;
    this.#landed = run;
    this.#awaited = "";
    if (store.view.options.details || store.step !== null || store.locked.length || isLook(store, LOOKS)) return;
    const at = clearestLook(store);
    if (at !== null) store.look(at);
  }

  /** Which heads "these" are, while the question is pointed at. */
  async #showAlike() {
    if (this.off.disabled || !this.off.matches(":hover, :focus-visible")) return;
    this.#isAsking = true;
    const found = await withoutAlike(this.store);
    if (found && this.#isAsking) this.store.together.select(found.heads);
  }

  #hideAlike() {
    this.#isAsking = false;
    this.store.together.select([]);
  }

  /** What makes no difference is not offered; that is known once the selection has rested for a while. */
  #weigh() {
    const { store, mixer } = this.answer;
    if (store.view.isLookOnly || store.view.options.details || store.isGrowing || store.hover || !isLook(store)) return;
    const place = [store.pointer.sha256, store.ids, store.currentRow, store.open].join();
    if (place === this.#place) return;
    this.#place = place;
    this.#isIdle = false;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(async () => {
      const found = await withoutAlike(store);
      if (!found || place !== this.#place || found.query !== store.currentRow) return;
      const effect = await effectOf(store, mixer, found.mask, found.query).catch(() => null);
      if (!effect || place !== this.#place) return;
      this.#isIdle = Math.abs(effect.to - effect.from) < LEAST;
      this.draw();
    }, RESTING);
  }
}

/**
 * The written word from which the open head looks back most clearly at one not far away, best of all at the one that
 * comes next; null if there is none.
 * @param {Store} store
 */
function clearestLook({ tokens, weights, firstStep, count }) {
  const isWord = tokens.map(({ text }) => /[\p{L}\p{N}]/u.test(text));
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

/**
 * Whether the open picture is a head that looks at another token, and that is not switched off.
 * @param {Store} store
 * @param {number} [least] of its attention
 */
function isLook({ open: [layer, head], pointer, focus, weights }, least = THIN) {
  if (layer >= pointer.n_layer || head >= pointer.n_head || pointer.head_mask?.[layer]?.[head] === 0) return false;
  const { query, key } = focus ?? {};
  return query !== undefined && key != null && key !== query && weights.at(query, key) >= least;
}

/**
 * The heads that do what the open one does at the token in focus, and the mask without them; null if that is not known.
 * @param {Store} store
 */
export async function withoutAlike(store) {
  const { focus, fetcher, pointer } = store;
  if (!focus || focus.key === null) return null;
  try {
    const weights = await fetcher.query(focus.query);
    // On a page that has just been opened, what the heads do is not known yet.
    const rolesCame = new Promise((resolve) => store.on("roles", () => store.roles && resolve(null)));
    if (!store.roles) await Promise.race([rolesCame, wait(PATIENCE)]);
    if (fetcher !== store.fetcher) return null;
    const heads = headsAlike(store, weights, focus);
    return { heads, mask: withScale(pointer.head_mask, pointer, heads, 0), query: focus.query };
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
  return data.heads.filter((head) => head.join() === like.join() || isAlike(head));
}

/** "Layer 5, head 1", or the name of another picture. @param {Store} store */
function spelledName({ open, pointer }) {
  const [layer, head] = open;
  return layer < pointer.n_layer && head < pointer.n_head ? `Layer ${layer}, head ${head}` : pictureName(open, pointer);
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
  if (!isMost) return [`${name} gives `, word, " ", part, " of its attention."];
  if (key === query) return [`${name} looks at the ${unit} itself with `, part, " of its attention."];
  if (weight < THIN) return [`${name} spreads its attention: at most `, part, ", on ", word, "."];
  return [`${name} ${areSquares() ? "looks at" : "looks back at"} `, word, " with ", part, " of its attention."];
}
