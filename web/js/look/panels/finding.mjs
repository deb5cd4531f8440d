// What the open head looks at, in one sentence with the number, and the two questions that everybody has about it.

import { make } from "../../lib/dom.mjs";
import { wait } from "../../lib/latest.mjs";
import { share } from "../../lib/numbers.mjs";
import { pictureName, plainly, unitOf } from "../../lib/words.mjs";
import { withScale } from "../ask/head_masks.mjs";
import { copies, roleOf } from "../roles/head_roles.mjs";

/** @import { Focus, PictureId } from "../../types.js" */
/** @import { Mixer } from "../ask/mixer.mjs" */
/** @import { Store } from "../state/store.mjs" */

const ALIKE = 0.1; // of its attention: a copying head that gives a word this much brings it about
export const LOOKS = 0.3; // any other head that gives a word this much looks at it
const PATIENCE = 3000; // milliseconds that the question waits for what the heads do
const THIN = 0.1; // below it the strongest weight says that the head looks everywhere

export class Finding {
  /** @param {Store} store @param {Mixer} mixer */
  constructor(store, mixer) {
    this.store = store;
    this.mixer = mixer;
    this.words = make("p", { role: "status" });
    this.off = make("button", { type: "button", class: "hs-small", onclick: () => this.switchOff() });
    this.off.append("Switch such heads off");
    this.off.title = "Writes the text twice: with all heads, and without those that look at the same word";
    this.why = make("button", { type: "button", class: "hs-small", onclick: () => this.ask() });
    this.element = make("div", { class: "hs-finding" }, this.words);
    if (!store.view.isLookOnly) this.element.append(this.off, this.why);
    store.on("state tokens focus weights open", () => this.draw());
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
    this.off.disabled = this.why.disabled = !isKnown || store.isGrowing;
  }

  /** Why the model wrote, or would write, the token after the one that looks. */
  ask() {
    this.store.view.set({ ask: "why", askWith: "" });
  }

  /** Write the text twice: as it is, and without the heads that look at the same word. */
  async switchOff() {
    const { store, mixer } = this;
    const found = await withoutAlike(store);
    if (!found) return;
    mixer.set(found.mask);
    void mixer.writeBoth(found.mask, found.query + 1);
  }
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
 * The heads that do what the open one does at a token: if it copies, all copying heads that look at the same word;
 * otherwise, all that give this word much of their attention.
 * @param {Store} store
 * @param {Float32Array} weights of the query in every picture
 * @param {Focus} focus
 */
export function headsAlike(store, weights, { query, key }) {
  const { tokens, open, data } = store;
  const word = plainly(tokens[key ?? 0].text);
  const keys = tokens.slice(0, query + 1).flatMap(({ text }, i) => (plainly(text) === word ? [i] : []));
  const isCopying = copies(roleOf(store, open));
  /** @param {PictureId} head */
  const isAlike = (head) => {
    const start = data.index(head) * (query + 1);
    const weight = keys.reduce((sum, at) => sum + weights[start + at], 0);
    return isCopying ? weight >= ALIKE && copies(roleOf(store, head)) : weight >= LOOKS;
  };
  return data.heads.filter((head) => head.join() === open.join() || isAlike(head));
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
  const weight = store.weights.at(query, key);
  const word = make("b", {}, plainly(store.tokens[key].text));
  const part = make("b", {}, share(weight));
  const name = spelledName(store);
  if (key === query) return [`${name} looks at the ${unit} itself with `, part, " of its attention."];
  if (weight < THIN) return [`${name} spreads its attention: at most `, part, ", on ", word, "."];
  return [`${name} looks back at `, word, " with ", part, " of its attention."];
}
