// What the drawings of the rungs have in common.

import { Arithmetic } from "../../widgets/arithmetic.mjs";

/** @import { Lesson } from "../rung.js" */
/** @import { Data } from "../data.js" */

/**
 * The drawing of a rung.
 * @template {keyof Data} Key
 */
export class Drawing {
  /** The server's answer, which there is before anything is shown. */
  data = /** @type {Data[Key]} */ (/** @type {unknown} */ (null));

  /** @param {Lesson} lesson */
  constructor(lesson) {
    this.lesson = lesson;
  }
}

/**
 * A drawing of tables whose numbers explain themselves in one place.
 * @template {keyof Data} Key
 * @extends {Drawing<Key>}
 */
export class TableDrawing extends Drawing {
  arithmetic = new Arithmetic();
  explanation = this.arithmetic.element;
}
