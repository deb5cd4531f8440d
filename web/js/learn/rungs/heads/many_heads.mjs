// Rung 8: several heads, one after the other and all at once.

import {
  Arithmetic,
  AXES,
  columnOf,
  dotCell,
  dotProduct,
  named,
  rowOf as cellsOf,
  softmaxCell,
} from "../../../widgets/arithmetic.mjs";
import { code, heading, paragraph, rowOf, term } from "../../widgets/elements.mjs";
import { formula, row, sub } from "../../../widgets/formula.mjs";
import { Stamp } from "../../../widgets/stamp.mjs";
import { twoHeads } from "../../widgets/two_heads.mjs";
import { changeNumbers, vectorsBar } from "../../widgets/vectors_bar.mjs";
import { randomHeads } from "../weights/random_heads.mjs";
import { batchedProduct } from "./batched_product.mjs";
import { headTimes } from "./head_times.mjs";
import { shapesOfHeads } from "./shapes.mjs";
import { outputProjection } from "./output_projection.mjs";

/** @import { Rung } from "../../rung.js" */

const HEAD_DIM = 2; // numbers of a head in the book's case
const HEADS = [0, 1];

/** @type {Rung} */
export const manyHeads = {
  name: "Many heads",
  learned:
    "Several heads look at several things; one wide projection, split, computes them all, and another mixes them.",
  options: () => ({ d_out: 2 }),
  question: {
    ask: "Eight heads of 8 numbers, or one head of 64: which needs more weights for its queries?",
    options: ["Eight heads", "One head", "Neither"],
    right: 2,
    why:
      "Eight matrices for 8 numbers each, stacked, are one matrix for 64. That is why one projection, split " +
      "afterwards, can compute all heads.",
  },
  build(lesson) {
    const stamp = new Stamp("stacked heads and weight splits, after the transfer of the weights");
    const arithmetic = new Arithmetic();
    const vectors = vectorsBar(
      lesson,
      "This choice changes only the words: the matrices of the heads stay as they are.",
    );
    const x = arithmetic.table({
      name: "The words x",
      axes: "words × 3",
      edit: changeNumbers(lesson, () => data),
      explain: (r, c) => [paragraph(`Number ${c} of `, named(data.words[r]), `: ${data.origin}.`)],
    });
    /** @type {any} */
    let data;
    /** @param {number} r @param {number} c */
    const explainContext = (r, c) => {
      const [head, i] = [Math.floor(c / HEAD_DIM), c % HEAD_DIM];
      const { left, right, products } = data.merged_terms[head];
      const words = `Head ${head}, number ${i} of the context of `;
      return dotProduct({
        title: [words, named(data.words[r]), ": each attention weight × value"],
        left: left[r],
        right: right[i],
        products: products[r][i],
        total: data.merged[r][c],
      });
    };
    const weights = HEADS.map((head) =>
      arithmetic.table({
        name: `Attention weights, head ${head}`,
        axes: AXES,
        sums: true,
        explain: (r, c) => {
          const title = [named(data.words[r]), " (query) looks at ", named(data.words[c]), ` (key) in head ${head}`];
          return softmaxCell({
            terms: data.head_weight_terms[head],
            r,
            c,
            total: data.head_weights[head][r][c],
            title,
          });
        },
      }),
    );
    const headValues = HEADS.map((head) =>
      arithmetic.table({
        name: `Values, head ${head}`,
        axes: "words × 2",
        explain: (r, c) => {
          const title = ["Value of ", named(data.words[r]), ` in head ${head}, number ${c}: x · W value`];
          return dotCell({ terms: data.value_terms[head], r, c, total: data.values[head][r][c], title });
        },
        operands: (r) => [cellsOf(x, r)],
      }),
    );
    /** @param {number} r @param {number} c @returns {import("../../../widgets/arithmetic.mjs").Operand[][]} */
    const contextOperands = (r, c) => {
      const head = Math.floor(c / HEAD_DIM);
      return [cellsOf(weights[head], r), columnOf(headValues[head], c % HEAD_DIM)];
    };
    const randoms = randomHeads(
      arithmetic,
      () => data,
      () => "seed 123, as in the small case below",
    );
    const trained = twoHeads(lesson, arithmetic, {
      words:
        "Two heads whose matrices are random (seed 123), as a model's are before its training: both spread their " +
        "weights almost evenly over the words so far.",
      tables: randoms.map(({ element }) => element),
    });
    const wide = arithmetic.table({
      name: "Queries in one piece",
      axes: "(T, 4): x · W query",
      explain: (r, c) => {
        const title = ["Query of ", named(data.words[r]), `, number ${c}`];
        return dotCell({ terms: data.wide_terms, r, c, total: data.wide[r][c], title });
      },
    });
    const split = HEADS.map((head) =>
      arithmetic.table({
        name: `Queries of head ${head}`,
        axes: "(T, 2), after view and transpose",
        explain: (r, c) => [
          paragraph(
            `Number ${c} of head ${head} is number ${HEAD_DIM * head + c} of the wide query of `,
            named(data.words[r]),
            ": nothing is computed, the numbers are only looked at in another order.",
          ),
        ],
        operands: (r, c) => [[[wide, r, HEAD_DIM * head + c]]],
      }),
    );
    const merged = {
      stacked: arithmetic.table({
        name: "Stacked heads",
        axes: "head 0 | head 1",
        explain: explainContext,
        operands: contextOperands,
      }),
      merged: arithmetic.table({
        name: "Weight splits",
        axes: "head 0 | head 1",
        explain: explainContext,
        operands: contextOperands,
      }),
    };
    const projection = outputProjection(arithmetic, lesson);
    const batched = batchedProduct(arithmetic);
    return {
      text: [
        paragraph(
          "The weights in a row add up to 1, so one head makes a single mixture: what it takes from the word before ",
          "and from the first word ends up in one sum. Several heads, each with matrices of its own, keep them ",
          "apart, and their context vectors are put side by side.",
        ),
        paragraph(
          "Computed one after the other they are ",
          term("stacked heads"),
          ". Put their matrices side by side instead, and one projection serves all: its result is split into heads, ",
          "and all scores are one batched product. These are ",
          term("weight splits"),
          ". An ",
          term("output projection"),
          " then mixes what the heads found.",
        ),
      ],
      formula: formula(
        [
          ...["(", "B", ",", "T", ",", "C", ")", "→"],
          ...["(", "B", ",", "n_head", ",", "T", ",", "head_dim", ")", "→"],
          ...["(", "B", ",", "T", ",", "C", ")"],
        ],
        ["Z", "=", row("[", sub("Z", "0"), ";", "…", ";", sub("Z", "n"), "]"), sub("W", "out"), "+", sub("b", "out")],
      ),
      picture: [
        heading("Two heads on your sentence"),
        ...trained.elements,
        heading("A small case, step by step: two random heads of 2 numbers"),
        paragraph(
          "Small enough to follow every number. The matrices are drawn at random (seed 123), so these two heads look ",
          "alike: it is training that makes them differ.",
        ),
        shapesOfHeads({
          x: x.element,
          wide: wide.element,
          split: split[0].element,
          weights: weights[0].element,
          merged: merged.merged.element,
          projected: projection.place,
        }),
        vectors.element,
        rowOf(x.element, ...headValues.map((table) => table.element)),
        rowOf(...weights.map((table) => table.element)),
        heading("One projection, split into heads"),
        paragraph(
          "The wide projection gives each word 4 numbers. ",
          code(".view(T, 2, 2)"),
          " reads them as 2 heads of 2 numbers, and ",
          code(".transpose(0, 1)"),
          " puts the heads first, so that each has a table of its own. In a batch the shapes begin with B as well.",
        ),
        rowOf(wide.element, ...split.map((table) => table.element)),
        heading("What the heads found, side by side"),
        rowOf(merged.stacked.element, merged.merged.element),
        stamp.element,
        ...projection.elements,
        ...batched.elements,
        heading("Where the time goes"),
        ...headTimes(),
        arithmetic.element,
      ],
      update(found) {
        data = found;
        const rows = data.words;
        vectors.update(data);
        x.show({ rows, columns: ["0", "1", "2"], values: data.x });
        wide.show({ rows, columns: ["0", "1", "2", "3"], values: data.wide });
        split.forEach((table, head) => table.show({ rows, columns: ["0", "1"], values: data.split[head] }));
        headValues.forEach((table, head) => table.show({ rows, columns: ["0", "1"], values: data.values[head] }));
        weights.forEach((table, head) => table.show({ rows, columns: rows, values: data.head_weights[head] }));
        merged.stacked.show({ rows, columns: ["0", "1", "0", "1"], values: data.stacked });
        merged.merged.show({ rows, columns: ["0", "1", "0", "1"], values: data.merged });
        projection.update(data);
        batched.update(data);
        stamp.show(data.error);
        randoms.forEach((table, i) => table.show({ rows, columns: rows, values: data.random[i].weights }));
        trained.update(data.trained);
        arithmetic.update(merged.merged, [1, 0]);
      },
    };
  },
};
