// The first half of rung 4: a product with ones, with a triangle of ones, and with a triangle whose rows add up to 1.

import { make } from "../../lib/dom.mjs";
import { Arithmetic, columnOf, dotCell, rowOf as cellsOf } from "../../widgets/arithmetic.mjs";
import { choice } from "../widgets/controls.mjs";
import { code, controls, heading, paragraph, rowOf } from "../widgets/elements.mjs";

/** @import { Lesson } from "../rung.js" */

const MEANING = {
  ones: "every row adds up all rows of b",
  tril: "each row adds up the rows of b so far",
  normalised: "each row averages the rows of b so far",
};

/** @param {Lesson} lesson */
export function toyProduct(lesson) {
  const arithmetic = new Arithmetic();
  /** @type {any} */
  let data;
  const kind = choice({
    label: "a is",
    options: { ones: "all ones", tril: "a triangle of ones", normalised: "a triangle, rows / their sums" },
    value: lesson.options.toy ?? "normalised",
    change: (toy) => lesson.set({ toy }),
  });
  const [a, b] = ["a", "b"].map((name) =>
    arithmetic.table({
      name,
      axes: name === "a" ? "3 × 3" : "3 × 2",
      sums: name === "a",
      explain: (r, c) => [
        paragraph(
          name === "a" ? explainWeight(data.kind, r, c) : `Number ${c} of token ${r}, drawn at random (seed 42).`,
        ),
      ],
    }),
  );
  const product = arithmetic.table({
    name: "a · b",
    explain: (r, c) => {
      const title = [`Row ${r} of a × column ${c} of b: `, MEANING[/** @type {keyof typeof MEANING} */ (data.kind)]];
      return dotCell({ terms: data.terms, r, c, total: data.product[r][c], title });
    },
    operands: (r, c) => [cellsOf(a, r), columnOf(b, c)],
  });
  return {
    elements: [
      heading("A product that averages"),
      paragraph(
        "Three tokens with two numbers each, ",
        code("b"),
        ". A product with ones adds them up; with a triangle of ones it adds up those so far; and with rows " +
          "that add up ",
        "to 1 it averages them. That last one is all that attention does, with better weights.",
      ),
      controls(kind.element),
      rowOf(a.element, b.element, product.element),
      make("div", {}, arithmetic.element),
    ],
    /** @param {any} found */
    update(found) {
      data = found;
      kind.show(data.kind);
      const [tokens, numbers] = [
        ["0", "1", "2"],
        ["0", "1"],
      ];
      a.show({ rows: tokens, columns: tokens, values: data.a });
      b.show({ rows: tokens, columns: numbers, values: data.b });
      product.show({ rows: tokens, columns: numbers, values: data.product });
      arithmetic.update(product, [2, 0]);
    },
  };
}

/** @param {string} kind @param {number} r @param {number} c */
function explainWeight(kind, r, c) {
  if (kind === "ones") return "1: every token counts once.";
  if (c > r) return `0: token ${c} comes after token ${r}.`;
  return kind === "tril" ? "1: this token is not after the row's own." : `1 / ${r + 1}: each of ${r + 1} so far.`;
}
