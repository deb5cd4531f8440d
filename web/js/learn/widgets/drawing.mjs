// What the drawings of most rungs have in common.

import { Arithmetic, named } from "../../widgets/arithmetic.mjs";
import { paragraph } from "./elements.mjs";

/** @import { Lesson } from "../rung.js" */
/** @import { Data } from "../data.js" */

/**
 * The drawing of a rung: tables whose numbers explain themselves in one place.
 * @template {keyof Data} Key
 */
export class Drawing {
  /** The server's answer, which there is before anything is explained. */
  data = /** @type {Data[Key]} */ (/** @type {unknown} */ (null));

  /** @param {Lesson} lesson */
  constructor(lesson) {
    this.lesson = lesson;
    this.arithmetic = new Arithmetic();
    this.explanation = this.arithmetic.element;
  }
}

/**
 * Where a number of a word comes from.
 * @param {{ words: string[], origin: string }} data
 * @param {number} r
 * @param {number} c
 */
export const originOf = ({ words, origin }, r, c) => [paragraph(`Number ${c} of `, named(words[r]), `: ${origin}.`)];
