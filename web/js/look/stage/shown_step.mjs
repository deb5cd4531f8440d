// What the heads do at the step that is shown: where each looks, what each adds to the next word, and which words could
// come next; the same without the heads that are switched off.

import { whenever } from "../../lib/reactive.mjs";
import { headAt, isSamePicture } from "../../lib/heads.mjs";
import { withScale } from "../../lib/head_masks.mjs";
import { request } from "../../lib/http.mjs";
import { mostProbable, softmax } from "../../lib/sampling.mjs";
import { effectOn, originOf, strongestFor } from "../../lib/without_heads.mjs";
import { plainly } from "../../lib/words.mjs";
import { signal } from "../../vendor/signals.mjs";
import { CLEAR_COPYING, copies, roleOf } from "../roles/head_roles.mjs";
import { headsAlike, MIN_LOOK } from "../roles/heads_alike.mjs";
import { askServer } from "../state/ask_server.mjs";
import { PREPARED, preparedAttribution } from "../state/prepared.mjs";
import { vocabulary } from "../state/run_fetcher.mjs";
import { gainsOf, kindOf, looksOf, MATTERS, strongest } from "./gains.mjs";

/** @import { Mask } from "../../lib/head_masks.mjs" */
/** @import { PictureId } from "../../types.js" */
/** @import { Mixer } from "../ask/mixer.mjs" */
/** @import { RunFetcher } from "../state/run_fetcher.mjs" */
/** @import { Store } from "../state/store.mjs" */
/** @import { Kind } from "./gains.mjs" */

/**
 * @typedef {object} Step
 * @property {Float32Array} logits of the next word; empty where there is no model
 * @property {Float64Array} probabilities
 * @property {number | null} target the next word that the gains are about; null where there is no model
 * @property {Float32Array[]} rows the weights of each head
 * @property {number[]} keys the word that each head looks at most
 * @property {number[] | null} adds what each head adds to the target's logit; null while or where that is not known
 * @property {number[]} gains
 * @property {boolean} isKnown whether the gains are known: they come from `adds`, or from the weights instead
 */

/**
 * Heads that are switched off together.
 * @typedef {{ heads: PictureId[], copied: string | null, mask: Mask }} Group `copied`: the word that all of them copy
 */

/**
 * What is known of the step that is shown. It is replaced as a whole, never changed.
 * @typedef {object} Known
 * @property {number} query the step; -1 for none
 * @property {boolean} isCurrent whether what is shown belongs to the text that the store has
 * @property {Step | null} whole
 * @property {Step | null} off without the group; null while it is on
 * @property {Group | null} group
 * @property {boolean} isOff
 * @property {Kind[]} kinds
 */

/** @type {Known} */
const NOTHING = { query: -1, isCurrent: false, whole: null, off: null, group: null, isOff: false, kinds: [] };

export class ShownStep {
  #known = signal(NOTHING);
  /** @type {RunFetcher | null} */
  #fetcher = null;
  /** @type {Map<string, Promise<number[]>>} what heads add, by step and mask; kept as long as the text is shown */
  #added = new Map();
  #turn = 0;
  #isAsking = false; // what the heads add, for this turn
  /** @type {string[]} */
  #texts = [];
  /** @type {number[]} */
  #ids = [];

  /**
   * @param {Store} store
   * @param {Pick<Mixer, "logitsOf">} mixer
   */
  constructor(store, mixer) {
    this.store = store;
    this.mixer = mixer;
    whenever(
      () => [...store.progress, store.rows, store.selection.selected],
      () => this.follow(),
    );
    whenever(
      () => [store.roles],
      () => this.#judge({}),
    );
  }

  /** What is known of the step that is shown. */
  get known() {
    return this.#known.value;
  }

  /** @param {Partial<Known>} changes */
  #change(changes) {
    this.#known.value = Object.freeze({ ...this.#known.peek(), ...changes });
  }

  get query() {
    return this.known.query;
  }

  /** The step with all heads. */
  get whole() {
    return this.known.whole;
  }

  /** The step without the group; null while it is on. */
  get off() {
    return this.known.off;
  }

  get group() {
    return this.known.group;
  }

  get isOff() {
    return this.known.isOff;
  }

  get kinds() {
    return this.known.kinds;
  }

  /** What is shown of the step: with all heads, or without some. */
  get shown() {
    return this.off ?? this.whole;
  }

  /** The texts of the vocabulary. */
  get texts() {
    return this.#texts;
  }

  /** The token in the text after the step; null where it ends. */
  get written() {
    return this.store.tokens[this.query + 1]?.id ?? null;
  }

  /** What switching the group off does to the next word; null while it is on. */
  get effect() {
    const { whole, off, written } = this;
    if (!whole || !off) return null;
    return effectOn(whole.logits, off.logits, this.#texts, written, originOf(this.store.pointer, this.query + 1));
  }

  /** The text or the place in it may be another one. */
  follow() {
    const { store } = this;
    const { fetcher, isGrowing, length, selection, pointer } = store;
    if (pointer.state === "snapshot" && !length) {
      if (this.known.isCurrent) this.#change({ isCurrent: false }); // the same text is about to come
      return;
    }
    const query = isGrowing || !length || !pointer.run ? -1 : Math.min(selection.predictor, length - 1);
    if (fetcher === this.#fetcher && query === this.query) {
      if (this.known.isCurrent && this.whole && !this.whole.isKnown && !this.#isAsking)
        void this.#attribute(this.whole, null);
      return;
    }
    if (fetcher !== this.#fetcher) this.#added.clear();
    // The same text read by the model at another step of its training replaces what is shown once it is known.
    const isSame = query === this.query && pointer.state === "snapshot" && String(this.#ids) === String(store.ids);
    this.#fetcher = fetcher;
    this.#ids = store.ids;
    this.#turn++;
    this.#isAsking = false;
    const { whole, kinds, group } = this.known;
    this.#change({ ...NOTHING, query, ...(isSame && { whole, kinds, group }) });
    if (query >= 0) void this.#load();
  }

  async #load() {
    const { query, store } = this;
    const turn = this.#turn;
    try {
      const [weights, logits, texts] = await Promise.all([
        store.fetcher.query(query),
        store.fetcher.logits(query),
        vocabulary(store.pointer.sha256),
      ]);
      if (turn !== this.#turn) return;
      this.#texts = texts;
      const step = this.#stepOf(weights, logits, this.written);
      if (!this.whole) this.#judge({ isCurrent: true, whole: step });
      await this.#attribute(step, null);
    } catch (error) {
      if (turn === this.#turn) store.report(`Could not read this step: ${/** @type {Error} */ (error).message}`);
    }
  }

  /**
   * @param {Float32Array} weights of the query in every picture
   * @param {Float32Array} logits
   * @param {number | null} written
   * @returns {Step}
   */
  #stepOf(weights, logits, written) {
    const { data } = this.store;
    const length = this.query + 1;
    const rows = data.heads.map((head) => {
      const start = data.index(head) * length;
      return weights.subarray(start, start + length);
    });
    const target = logits.length ? (written ?? mostProbable(logits, 1)[0]) : null;
    const probabilities = logits.length ? softmax(logits) : new Float64Array(0);
    const gains = rows.map(() => 0);
    return { logits, probabilities, target, rows, keys: rows.map(strongest), adds: null, gains, isKnown: false };
  }

  /**
   * Fetch what each head adds, once per step; where it cannot be had, the weights stand in.
   * @param {Step} step
   * @param {Mask} mask
   */
  async #attribute(step, mask) {
    const turn = this.#turn;
    const { pointer, view } = this.store;
    const prepared = mask ? null : preparedAttribution(pointer.sha256, this.query, step.target);
    if (!prepared && pointer.run === PREPARED && !view.isLookOnly) return; // asked again once the server has the text
    this.#isAsking = true;
    const adds = prepared ?? (step.target === null ? null : await this.#addsTo(step.target, mask).catch(() => null));
    if (turn !== this.#turn) return;
    this.#isAsking = false;
    const known = { ...step, adds, gains: gainsOf(adds ?? looksOf(step.rows)), isKnown: true };
    this.#judge(mask ? { off: known } : { whole: known, isCurrent: true });
  }

  /** @param {number} token @param {Mask} mask @returns {Promise<number[]>} */
  #addsTo(token, mask) {
    const { store, query } = this;
    const { model, head_mask } = store.pointer;
    const key = [query, token, JSON.stringify(mask)].join();
    const used = mask ?? head_mask;
    const body = {
      model,
      tokens: store.ids.slice(0, query + 1),
      position: query,
      token,
      ...(used && { head_mask: used }),
    };
    const asked = this.#added.get(key) ?? askServer({ route: "attribution", body }).then(({ heads }) => heads.flat());
    this.#added.set(key, asked);
    asked.catch(() => this.#added.delete(key));
    return asked;
  }

  /** More is known: decide what the heads do, and which are switched off together. @param {Partial<Known>} changes */
  #judge(changes) {
    const { store } = this;
    const { query, whole, isOff, group } = { ...this.#known.peek(), ...changes };
    if (!whole || store.length <= query) return this.#change(changes);
    const kinds = whole.rows.map((row, i) => kindOf(roleOf(store, headAt(i, store.pointer)), row, CLEAR_COPYING));
    const judged = whole.isKnown ? this.#groupOf(whole, query) : null;
    return this.#change({ ...changes, kinds, group: isOff ? group : judged });
  }

  /** The number of a head that is on and matters most; -1 if none does. */
  get leading() {
    const { shown } = this;
    if (!shown) return -1;
    const first = strongest(shown.gains);
    return shown.gains[first] >= MATTERS ? first : -1;
  }

  /** Whether a head is switched off. @param {PictureId} head */
  isCut(head) {
    return this.isOff && (this.group?.heads.some((other) => isSamePicture(other, head)) ?? false);
  }

  /** @param {number} head its number */
  isCutAt(head) {
    return this.isCut(headAt(head, this.store.pointer));
  }

  /**
   * The heads that copy the next word from where it stood before; else those that add most to it.
   * @param {Step} step
   * @param {number} query
   * @returns {Group | null}
   */
  #groupOf(step, query) {
    const { store } = this;
    const { pointer, tokens } = store;
    const word = plainly(this.#texts[step.target ?? -1] ?? "");
    const byGain = step.gains.map((_, i) => i).sort((a, b) => step.gains[b] - step.gains[a]);
    const first = byGain.find((i) => {
      const [head, key] = [headAt(i, pointer), step.keys[i]];
      const looks = step.rows[i][key] >= MIN_LOOK && plainly(tokens[key].text) === word;
      return step.gains[i] >= MATTERS && looks && copies(roleOf(store, head));
    });
    const mask = (/** @type {PictureId[]} */ heads) => withScale(pointer.head_mask, pointer, heads, 0);
    if (first !== undefined) {
      const weights = this.#allRows(step, query);
      const heads = headsAlike(store, weights, { query, key: step.keys[first] }, headAt(first, pointer));
      return { heads, copied: tokens[step.keys[first]].text, mask: mask(heads) };
    }
    const values = step.adds ?? step.gains;
    const layers = Array.from({ length: pointer.n_layer }, (_, layer) =>
      values.slice(layer * pointer.n_head, (layer + 1) * pointer.n_head),
    );
    const heads = strongestFor(layers).map(({ picture }) => picture);
    return heads.length ? { heads, copied: null, mask: mask(heads) } : null;
  }

  /** The weights of all heads, where those of all pictures have them. @param {Step} step @param {number} query */
  #allRows(step, query) {
    const { data } = this.store;
    const length = query + 1;
    const all = new Float32Array((data.index([data.n_layer, 0]) + 1) * length);
    data.heads.forEach((head, i) => all.set(step.rows[i], data.index(head) * length));
    return all;
  }

  /** Switch the group off, or on again. @param {boolean} isOff */
  async switch(isOff) {
    const { store, query, group } = this;
    if (isOff === this.isOff || (isOff && !group)) return;
    const turn = ++this.#turn;
    this.#isAsking = false;
    this.#change({ isOff, off: null });
    if (!isOff || !group) return;
    const { sha256, n_prompt } = store.pointer;
    const body = { sha256, n_prompt, ids: store.ids.slice(0, query + 1), head_mask: group.mask };
    try {
      const [answer, logits] = await Promise.all([
        request(`look/again/queries/${query}`, { body }),
        this.mixer.logitsOf(group.mask, query),
      ]);
      const weights = new Float32Array(await answer.arrayBuffer());
      if (turn !== this.#turn) return;
      const off = this.#stepOf(weights, logits, null);
      this.#change({ off });
      await this.#attribute(off, group.mask);
    } catch (error) {
      if (turn !== this.#turn) return;
      store.report(`Could not switch the heads off: ${/** @type {Error} */ (error).message}`);
      this.#change({ isOff: false });
    }
  }
}
