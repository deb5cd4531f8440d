// What the heads do at the step that is shown: where each looks, what each adds to the next word, and which words could
// come next; the same without the heads that are switched off.

import { whenever } from "../../lib/reactive.mjs";
import { headAt, headIndex, isSamePicture } from "../../lib/heads.mjs";
import { headsNamed, namesOf, withScale } from "../../lib/head_masks.mjs";
import { request } from "../../lib/http.mjs";
import { mostProbable, softmax } from "../../lib/sampling.mjs";
import { effectOn, originOf, strongestFor } from "../../lib/without_heads.mjs";
import { plainly } from "../../lib/words.mjs";
import { signal } from "../../vendor/signals.mjs";
import { copies, roleOf } from "../roles/head_roles.mjs";
import { askServer } from "../state/ask_server.mjs";
import { PREPARED, preparedAttribution } from "../state/prepared.mjs";
import { scaledLogits, vocabulary } from "../state/run_fetcher.mjs";
import { gainsOf, kindOf, looksOf, MATTERS, strongest } from "./gains.mjs";

/** @import { AttributionAnswer } from "../../lens.js" */
/** @import { Mask } from "../../lib/head_masks.mjs" */
/** @import { PictureId } from "../../types.js" */
/** @import { AskRequest } from "../state/ask_server.mjs" */
/** @import { RunFetcher } from "../state/run_fetcher.mjs" */
/** @import { ShownText } from "../state/shown_text.mjs" */
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
 * The heads of which something is said. `copied`: the word that all of them copy; null if they add most instead.
 * @typedef {{ heads: PictureId[], copied: string | null }} Group
 */

/**
 * Heads that are switched off, until all are on again or another text is shown. `place`: the text and the step at which
 * they were chosen.
 * @typedef {{ heads: PictureId[], mask: Mask, place: string }} Cut
 */

/**
 * What is known of the step that is shown. It is replaced as a whole, never changed.
 * @typedef {object} Known
 * @property {number} query the step; -1 for none
 * @property {boolean} isCurrent whether what is shown belongs to the text that the store has
 * @property {Step | null} whole
 * @property {Step | null} off without the heads that are off; null while none is
 * @property {Group | null} group of the step with all heads
 * @property {Cut | null} cut
 * @property {Kind[]} kinds
 */

/** @type {Known} */
const NOTHING = { query: -1, isCurrent: false, whole: null, off: null, group: null, cut: null, kinds: [] };

export class ShownStep {
  #known = signal(NOTHING);
  /** @type {RunFetcher | null} */
  #fetcher = null;
  /** @type {Map<string, Promise<AttributionAnswer>>} by step and mask; kept as long as the text is shown */
  #added = new Map();
  #turn = 0;
  #isAsking = false; // what the heads add, for this turn
  /** @type {string[]} */
  #texts = [];
  /** @type {number[]} of the text up to the step */
  #ids = [];
  #sha256 = "";

  /** @param {ShownText} store */
  constructor(store) {
    this.store = store;
    whenever(
      () => [...store.progress, store.rows, store.selection.selected],
      () => this.follow(),
    );
    whenever(
      () => [store.roles],
      () => this.#judge({}),
    );
    whenever(
      () => [store.view.options.off],
      () => this.#turnOffChosen(),
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

  /** The step without the heads that are off; null while none is. */
  get off() {
    return this.known.off;
  }

  get group() {
    return this.known.group;
  }

  get cut() {
    return this.known.cut;
  }

  get isOff() {
    return this.cut !== null;
  }

  /** The numbers of the heads that the sentence names: those that are off, or else the group. */
  get named() {
    return ((this.cut ?? this.group)?.heads ?? []).map((head) => headIndex(head, this.store.pointer));
  }

  /** Whether the heads were switched off at another step. */
  get isStillOff() {
    return this.cut !== null && this.cut.place !== this.#place;
  }

  get #place() {
    return `${this.query} ${this.store.pointer.run}`;
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

  /** What switching heads off does to the next word; null while all are on. */
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
    const isSame =
      query === this.query &&
      pointer.state === "snapshot" &&
      String(this.#ids) === String(store.ids.slice(0, query + 1));
    // What is switched off stays off in a text that goes on, or is shown up to another word.
    const isSameModel = this.#sha256 === pointer.sha256;
    const goesOn = !length || isSame || (isSameModel && store.ids.every((id, i) => id === (this.#ids[i] ?? id)));
    this.#fetcher = fetcher;
    if (length) [this.#ids, this.#sha256] = [store.ids.slice(0, query + 1), pointer.sha256];
    this.#turn++;
    this.#isAsking = false;
    const { whole, off, kinds, group, cut } = this.known;
    if (cut && !goesOn) store.view.set({ off: "" });
    this.#change({ ...NOTHING, query, cut: goesOn ? cut : null, ...(isSame && { whole, off, kinds, group }) });
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
      const { cut } = this;
      const off = cut && (await this.#without(cut.mask));
      if (turn !== this.#turn) return;
      if (!this.whole || off) this.#judge({ isCurrent: true, whole: step, off });
      await this.#attribute(step, null);
      if (turn === this.#turn) this.#turnOffChosen();
      if (off && turn === this.#turn) await this.#attribute(off, cut.mask);
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
    if (adds && step.target !== null && !mask) {
      this.store.attribution = { position: this.query, token: step.target, heads: adds };
    }
    this.#judge(mask ? { off: known } : { whole: known, isCurrent: true });
  }

  /** What every part of the model adds to the next word, and how that is asked. Throws an `Error` with the reason. */
  async parts() {
    const { shown, isOff, cut } = this;
    if (shown?.target == null) throw new Error("There is no model to ask.");
    const asked = this.#attribution(shown.target, isOff ? (cut?.mask ?? null) : null);
    return { asked, answer: await this.#answerTo(asked) };
  }

  /** @param {number} token @param {Mask} mask */
  #attribution(token, mask) {
    const { store, query } = this;
    const { model, head_mask } = store.pointer;
    const used = mask ?? head_mask;
    const tokens = store.ids.slice(0, query + 1);
    const body = { model, tokens, position: query, token, ...(used && { head_mask: used }) };
    return { route: /** @type {const} */ ("attribution"), body };
  }

  /** @param {AskRequest} asked @returns {Promise<AttributionAnswer>} */
  #answerTo(asked) {
    const key = JSON.stringify(asked.body);
    const answer = this.#added.get(key) ?? askServer(asked);
    this.#added.set(key, answer);
    answer.catch(() => this.#added.delete(key));
    return answer;
  }

  /** @param {number} token @param {Mask} mask @returns {Promise<number[]>} */
  async #addsTo(token, mask) {
    return (await this.#answerTo(this.#attribution(token, mask))).heads.flat();
  }

  /** More is known: decide what the heads do, and of which something is said. @param {Partial<Known>} changes */
  #judge(changes) {
    const { store } = this;
    const known = { ...this.#known.peek(), ...changes };
    const { query, whole, off, cut } = known;
    if (!whole || store.length <= query) return this.#change(changes);
    const copying = this.#copying(whole);
    const kindsOf = (/** @type {Step} */ step, /** @type {number[]} */ heads) =>
      step.rows.map((row, i) => kindOf(roleOf(store, headAt(i, store.pointer)), row, heads.includes(i)));
    const before = kindsOf(whole, copying);
    const after = off && kindsOf(off, this.#copying(off));
    const kinds = before.map((kind, i) => (after && !isAmong(cut?.heads, headAt(i, store.pointer)) ? after[i] : kind));
    return this.#change({ ...changes, kinds, group: whole.isKnown ? this.#groupOf(whole, copying) : null });
  }

  /**
   * The heads that copy the next word: those that do copy, look at this word most, and matter for it. They alone are
   * counted, labelled and coloured as copying.
   * @param {Step} step
   */
  #copying({ target, gains, keys, isKnown }) {
    const { store } = this;
    const word = plainly(this.#texts[target ?? -1] ?? "");
    return [...gains.keys()].filter(
      (i) =>
        isKnown &&
        gains[i] >= MATTERS &&
        keys[i] < this.query &&
        plainly(store.tokens[keys[i]].text) === word &&
        copies(roleOf(store, headAt(i, store.pointer))),
    );
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
    return isAmong(this.cut?.heads, head);
  }

  /** @param {number} head its number */
  isCutAt(head) {
    return this.isCut(headAt(head, this.store.pointer));
  }

  /**
   * The heads that copy the next word from where it stood before, if one of them adds most to it; else those that do.
   * @param {Step} step
   * @param {number[]} copying
   * @returns {Group | null}
   */
  #groupOf({ adds, gains, target }, copying) {
    const { pointer } = this.store;
    const values = adds ?? gains;
    const most = Math.max(...values);
    if (copying.some((i) => values[i] === most)) {
      return { heads: copying.map((i) => headAt(i, pointer)), copied: this.#texts[target ?? -1] };
    }
    const layers = Array.from({ length: pointer.n_layer }, (_, layer) =>
      values.slice(layer * pointer.n_head, (layer + 1) * pointer.n_head),
    );
    const heads = strongestFor(layers).map(({ picture }) => picture);
    return heads.length ? { heads, copied: null } : null;
  }

  /** The heads that a link or an entry of the history has switched off are off. */
  #turnOffChosen() {
    const { pointer, view } = this.store;
    const { off } = view.options;
    if (!this.whole || off === namesOf(this.cut?.heads ?? [])) return;
    void this.turnOff(headsNamed(off, pointer));
  }

  /** Exactly these heads are off from now on. @param {PictureId[]} heads */
  async turnOff(heads) {
    const { store } = this;
    const { pointer } = store;
    const turn = ++this.#turn;
    this.#isAsking = false;
    const mask = withScale(pointer.head_mask, pointer, heads, 0);
    const cut = heads.length ? { heads, mask, place: this.#place } : null;
    this.#judge({ cut, ...(!cut && { off: null }) });
    store.view.set({ off: namesOf(heads) });
    if (!cut) return;
    try {
      const off = await this.#without(mask);
      if (turn !== this.#turn) return;
      this.#judge({ off });
      await this.#attribute(off, mask);
    } catch (error) {
      if (turn !== this.#turn) return;
      store.report(`Could not switch the heads off: ${/** @type {Error} */ (error).message}`);
      this.#judge({ cut: null, off: null });
      store.view.set({ off: "" });
    }
  }

  /** The step without some heads. @param {Mask} mask */
  async #without(mask) {
    const { store, query } = this;
    const { sha256, n_prompt } = store.pointer;
    const body = { sha256, n_prompt, ids: store.ids.slice(0, query + 1), head_mask: mask };
    const [answer, logits] = await Promise.all([
      request(`look/again/queries/${query}`, { body }),
      scaledLogits(store, mask, query),
    ]);
    return this.#stepOf(new Float32Array(await answer.arrayBuffer()), logits, null);
  }
}

/** @param {PictureId[] | undefined} heads @param {PictureId} head */
const isAmong = (heads, head) => heads?.some((other) => isSamePicture(other, head)) ?? false;
