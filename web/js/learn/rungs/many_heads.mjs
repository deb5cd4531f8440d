// Rung 8: several heads, one after the other and all at once.

import { make } from "../../lib/dom.mjs";
import { fixed } from "../../lib/numbers.mjs";
import { Arithmetic, AXES, dotCell, dotProduct, named } from "../../widgets/arithmetic.mjs";
import { code, heading, paragraph, rowOf, term } from "../widgets/elements.mjs";
import { formula, row, sub } from "../../widgets/formula.mjs";
import { Stamp } from "../../widgets/stamp.mjs";
import { headTimes } from "./head_times.mjs";

/** @import { Rung } from "../rung.js" */

const HEAD_DIM = 2; // numbers of a head in the book's case
const HEADS = [0, 1];

/** @type {Rung} */
export const manyHeads = {
  name: "Many heads",
  options: () => ({}),
  question: {
    ask: "Eight heads of 8 numbers, or one head of 64: which needs more weights for its queries?",
    options: ["Eight heads", "One head", "Neither"],
    right: 2,
    why:
      "Eight matrices for 8 numbers each, stacked, are one matrix for 64. That is why one projection, split " +
      "afterwards, can compute all heads.",
  },
  build() {
    const stamp = new Stamp("stacked heads and weight splits, after the transfer of the weights");
    const arithmetic = new Arithmetic();
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
        explain: (r, c) => {
          const weight = ` (key) with ${fixed(data.head_weights[head][r][c])} in head ${head}.`;
          return [paragraph(named(data.words[r]), " (query) looks at ", named(data.words[c]), weight)];
        },
      }),
    );
    const merged = {
      stacked: arithmetic.table({ name: "Stacked heads", axes: "head 0 | head 1", explain: explainContext }),
      merged: arithmetic.table({ name: "Weight splits", axes: "head 0 | head 1", explain: explainContext }),
    };
    const context = arithmetic.table({
      name: "Before the output projection",
      axes: "2 heads × 1 number",
      explain: (r, c) => [
        paragraph(`Head ${c} says `, make("b", {}, fixed(data.context[r][c])), " about ", named(data.words[r]), "."),
      ],
    });
    const projected = arithmetic.table({
      name: "After the output projection",
      axes: "the book's own weight splits",
      explain: (r, c) => {
        const words = `: what both heads say × row ${c} of the projection, and its bias`;
        const title = [`Output ${c} of `, named(data.words[r]), words];
        return dotCell({ terms: data.projected_terms, r, c, total: data.projected[r][c], title, bias: data.bias[c] });
      },
    });
    const batched = new Stamp("a product of all heads at once, and head by head");
    const operands = HEADS.map((head) =>
      arithmetic.table({
        name: `Head ${head}`,
        axes: "3 tokens × 4 numbers",
        explain: (r, c) => [paragraph(`Number ${c} of token ${r} in head ${head}.`)],
      }),
    );
    const products = HEADS.map((head) =>
      arithmetic.table({
        name: `Head ${head} × itself, transposed`,
        axes: "3 × 3 tokens",
        explain: (r, c) => {
          const title = [`Head ${head}: token ${r} · token ${c}`];
          return dotCell({ terms: data.product_terms[head], r, c, total: data.product[head][r][c], title });
        },
      }),
    );
    return {
      text: [
        paragraph(
          "One head gives one picture of which words look at which. Several heads, each with its own matrices, give ",
          "several, and their context vectors are put side by side. Computed one after the other they are ",
          term("stacked heads"),
          ". Stack their matrices instead, and one projection serves all: its result is split into heads, and all ",
          "scores are one batched product. These are ",
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
        rowOf(...weights.map((table) => table.element)),
        rowOf(merged.stacked.element, merged.merged.element),
        stamp.element,
        heading("The output projection"),
        paragraph(
          "The book's own weight splits have d_out = 2 for both heads together, so each of the two heads has 1 number ",
          "here, not 2. The output projection is a matrix of 2 × 2 and a bias, which mixes the two heads.",
        ),
        rowOf(context.element, projected.element),
        heading("All heads in one product"),
        paragraph(
          "A product of tensors ",
          code("(B, n_head, T, head_dim)"),
          " is one matrix product for each head, done together.",
        ),
        rowOf(...operands.map((table) => table.element)),
        rowOf(...products.map((table) => table.element)),
        batched.element,
        arithmetic.element,
        heading("Where the time goes"),
        ...headTimes(),
      ],
      update(found) {
        data = found;
        const rows = data.words;
        weights.forEach((table, head) => table.show({ rows, columns: rows, values: data.head_weights[head] }));
        merged.stacked.show({ rows, columns: ["0", "1", "0", "1"], values: data.stacked });
        merged.merged.show({ rows, columns: ["0", "1", "0", "1"], values: data.merged });
        context.show({ rows, columns: ["head 0", "head 1"], values: data.context });
        projected.show({ rows, columns: ["0", "1"], values: data.projected });
        const [tokens, numbers] = [
          ["0", "1", "2"],
          ["0", "1", "2", "3"],
        ];
        operands.forEach((table, head) => table.show({ rows: tokens, columns: numbers, values: data.heads[head] }));
        products.forEach((table, head) => table.show({ rows: tokens, columns: tokens, values: data.product[head] }));
        stamp.show(data.error);
        batched.show(data.product_error);
        arithmetic.update(merged.merged, [1, 0]);
      },
    };
  },
};
