// What a visitor has set: for each rung, for all of them, and what of it a link for a class fixes.

/** @import { Rung, Settings } from "./rung.js" */
/** @typedef {{ options?: Settings, choices?: Settings, shared?: Settings }} Linked what a link fixes of a rung */

const MAX_LINKED_TEXT = 3000; // characters of a text in a link; programs that pass links on cut long ones off

export class VisitorSettings {
  /** @type {Record<number, Settings>} changed options, by rung */
  #changes = {};
  /** @type {Record<number, Record<string, any>>} state that a rung keeps while others are open, by rung */
  #kept = {};
  /** @type {Settings} settings that all rungs share */
  shared = {};

  /** @param {Rung<any>[]} rungs */
  constructor(rungs) {
    this.rungs = rungs;
  }

  /** @param {number} rung */
  options(rung) {
    return { ...this.rungs[rung - 1].options(), ...this.#changes[rung] };
  }

  /** What the rung keeps, beginning with its first choices. @param {number} rung */
  kept(rung) {
    return (this.#kept[rung] ??= { ...this.rungs[rung - 1].choices?.() });
  }

  /** @param {number} rung @param {Settings} changes of its options */
  remember(rung, changes) {
    this.#changes[rung] = { ...this.#changes[rung], ...changes };
  }

  /** Another sentence is used: forget what means nothing for it. */
  forgetSentence() {
    this.shared = {};
    this.rungs.forEach(({ ofSentence = [] }, i) => {
      for (const name of ofSentence) delete this.#changes[i + 1]?.[name];
    });
  }

  /** Another model is used, with other heads. */
  forgetModel() {
    this.rungs.forEach(({ followsModel }, i) => followsModel && delete this.#changes[i + 1]);
  }

  forget() {
    this.#changes = {};
    this.#kept = {};
    this.shared = {};
  }

  /**
   * What a link to a rung fixes, and whether a text is left out because it is too long.
   * @param {number} rung
   * @param {Settings} options
   * @returns {Linked & { isCut: boolean }}
   */
  link(rung, options) {
    const [first, kept] = [this.rungs[rung - 1].choices?.() ?? {}, this.kept(rung)];
    const changed = Object.keys(first).filter((name) => JSON.stringify(kept[name]) !== JSON.stringify(first[name]));
    const all = [options, Object.fromEntries(changed.map((name) => [name, kept[name]]))];
    const [linked, choices] = all.map((settings) =>
      Object.fromEntries(Object.entries(settings).filter(([, value]) => !isLong(value))),
    );
    return {
      options: linked,
      choices,
      shared: this.shared,
      isCut: all.some((each) => Object.values(each).some(isLong)),
    };
  }

  /** Take over what a link fixes. @param {number} rung @param {Linked} linked */
  follow(rung, { options = {}, choices = {}, shared = {} }) {
    this.shared = shared;
    this.#changes[rung] = options;
    this.#kept[rung] = ofKind(this.rungs[rung - 1].choices?.() ?? {}, choices);
  }
}

/** @param {unknown} value */
const isLong = (value) => typeof value === "string" && value.length > MAX_LINKED_TEXT;

/**
 * `first` with the values of `given` that are of the same kind: an address can be typed by anyone.
 * @param {any} first
 * @param {any} given
 * @returns {any}
 */
function ofKind(first, given) {
  if (typeof first !== typeof given || given === null) return first;
  if (typeof first !== "object") return given;
  return Object.fromEntries(Object.entries(first).map(([name, value]) => [name, ofKind(value, given[name])]));
}
