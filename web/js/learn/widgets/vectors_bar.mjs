// The choice of where the three numbers of each word come from, and the visitor's changes to them.

import { make } from "../../lib/dom.mjs";
import { counted } from "../../lib/numbers.mjs";
import { choice, paragraph } from "./elements.mjs";
import { named } from "../../widgets/arithmetic.mjs";
import { smallButton } from "../../widgets/controls.mjs";

/** @import { Arithmetic } from "../../widgets/arithmetic.mjs" */
/** @import { Lesson } from "../rung.js" */

const EXPLAINED = 5; // the rung that tells how embeddings become three numbers: the first with their dot products
/** @type {Record<string, string>} */
const NAMES = { book: "made up", trained: "trained", random: "random" };

/**
 * @param {Lesson} lesson
 * @param {string} [rest] a sentence on what the choice does not change
 */
export function vectorsBar(lesson, rest = "") {
  const box = make("div", { class: "hl-controls" });
  const origin = make("p", { class: "hl-count", role: "status" });
  const back = smallButton("Reset the numbers");
  back.addEventListener("click", () => lesson.share({ x: null }));
  let shown = "";

  /**
   * @param {{ choices?: string[], vectors?: string, origin?: string, reduced?: string, edited?: number }} data
   */
  function update({ choices = [], vectors = "", origin: from = "", reduced = "", edited = 0 }) {
    const key = `${choices} ${vectors}`;
    if (key !== shown) {
      const picker = choice({
        label: "The numbers of each word",
        options: Object.fromEntries(choices.map((name) => [name, NAMES[name]])),
        value: vectors,
        change: (name) => lesson.share({ vectors: name, x: null }),
      });
      box.replaceChildren(picker.element, back);
      shown = key;
    }
    back.hidden = !edited;
    const changed = edited ? `You have changed ${counted(edited, "number")}; all that follows is recomputed.` : "";
    const isHere = lesson.rung === EXPLAINED;
    const how = make("a", { href: `#learn/${EXPLAINED}`, class: "hl-page-link" }, `Rung ${EXPLAINED} tells how.`);
    const parts = [`They are ${from}.`, isHere ? reduced : reduced && how, changed, rest].filter(Boolean);
    origin.replaceChildren(...parts.flatMap((part) => [part, " "]));
  }

  return { element: make("div", {}, box, origin), update };
}

/**
 * A function that changes a number of a word, on all rungs.
 * @param {Lesson} lesson
 * @param {() => { x: number[][] }} current the server's answer
 */
export const changeNumbers =
  (lesson, current) =>
  (/** @type {number[]} */ ...[r, c, value]) => {
    const x = (lesson.shared.x ?? current().x).map((/** @type {number[]} */ line) => [...line]);
    x[r][c] = value;
    lesson.share({ x });
  };

/**
 * The table of the words' numbers, which the visitor can change.
 * @param {{ arithmetic: Arithmetic, lesson: Lesson, data: { words: string[], x: number[][], origin: string } }} drawing
 * @param {string} axes
 * @param {(r: number, c: number, value: number) => void} [edit]
 */
export const wordsTable = (drawing, axes, edit = changeNumbers(drawing.lesson, () => drawing.data)) =>
  drawing.arithmetic.table({
    name: "The words x",
    digits: 2,
    axes,
    edit,
    explain: (r, c) => [paragraph(`Number ${c} of `, named(drawing.data.words[r]), `: ${drawing.data.origin}.`)],
  });
