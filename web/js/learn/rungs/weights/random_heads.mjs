// Two heads that nothing has trained, to compare with trained ones.

import { AXES, dotProduct, looks, softmaxCell } from "../../../widgets/arithmetic.mjs";

/** @import { Arithmetic } from "../../../widgets/arithmetic.mjs" */

/**
 * @param {Arithmetic} arithmetic
 * @param {() => any} current the server's answer
 * @param {(side: number) => string} recipe how the matrices of a head are made
 */
export const randomHeads = (arithmetic, current, recipe) =>
  [0, 1].map((side) =>
    arithmetic.table({
      name: `Random head ${side}`,
      axes: `${recipe(side)}; ${AXES}`,
      sums: true,
      explain(r, c) {
        const { words, random } = current();
        const { weights, weight_terms: terms, score_terms: scores } = random[side];
        const [left, right, products] = [scores.left[r], scores.right[c], scores.products[r][c]];
        const total = products.reduce((/** @type {number} */ sum, /** @type {number} */ value) => sum + value, 0);
        const title = [`Score in random head ${side}: `, ...looks(words[r], words[c])];
        const share = [`It is divided by √${left.length} and goes into the softmax:`];
        return [
          ...dotProduct({ title, left, right, products, total }),
          ...softmaxCell({ terms, r, c, total: weights[r][c], title: share }),
        ];
      },
    }),
  );
