// What the drawings of most rungs have in common.

import { Arithmetic } from "../../widgets/arithmetic.mjs";

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
