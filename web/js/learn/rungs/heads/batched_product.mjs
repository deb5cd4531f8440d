// A part of rung 8: the product of all heads at once, on the numbers that the book prints.

import { dotCell, rowOf as cellsOf } from "../../../widgets/arithmetic.mjs";
import { code, heading, paragraph, rowOf } from "../../widgets/elements.mjs";
import { Stamp } from "../../../widgets/stamp.mjs";

/** @import { Arithmetic } from "../../../widgets/arithmetic.mjs" */

const HEADS = [0, 1];
const [TOKENS, NUMBERS] = [
  ["0", "1", "2"],
  ["0", "1", "2", "3"],
];

/** @param {Arithmetic} arithmetic */
export function batchedProduct(arithmetic) {
  /** @type {any} */
  let data;
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
      operands: (r, c) => [cellsOf(operands[head], r), cellsOf(operands[head], c)],
    }),
  );
  return {
    elements: [
      heading("All heads in one product"),
      paragraph(
        "A product of tensors ",
        code("(B, n_head, T, head_dim)"),
        " is one matrix product for each head, done together.",
      ),
      rowOf(...operands.map((table) => table.element)),
      rowOf(...products.map((table) => table.element)),
      batched.element,
    ],
    /** @param {any} found */
    update(found) {
      data = found;
      operands.forEach((table, head) => table.show({ rows: TOKENS, columns: NUMBERS, values: data.heads[head] }));
      products.forEach((table, head) => table.show({ rows: TOKENS, columns: TOKENS, values: data.product[head] }));
      batched.show(data.product_error);
    },
  };
}
