// The tables of rung 7, each with an explanation of its numbers.

import { fixed, number } from "../../lib/numbers.mjs";
import { named, AXES, division, dotCell, looks, rowOf as cellsOf, softmaxCell } from "../../widgets/arithmetic.mjs";
import { paragraph } from "../widgets/elements.mjs";

/** @import { Data, Named } from "../data.js" */
/** @import { Arithmetic, SoftmaxTerms } from "../../widgets/arithmetic.mjs" */

/**
 * @param {Arithmetic} arithmetic
 * @param {() => Data["causal-masking"]} current the server's answer
 */
export function makeTables(arithmetic, current) {
  /** @typedef {[r: number, c: number]} At */
  /** @param {At} at */
  const pair = (...[r, c]) => looks(current().words[r], current().words[c]);
  /** @param {At} at */
  const hidden = (...[r, c]) => {
    const [query, key] = [r, c].map((i) => named(current().words[i]));
    return [
      c > r
        ? paragraph(key, " comes after ", query, ": the mask hides it.")
        : paragraph("You have hidden ", key, " from ", query, "."),
    ];
  };
  /** @param {At} at */
  const isHidden = (...[r, c]) => !current().mask[r][c];
  /** @param {At} at */
  const score = (...[r, c]) => {
    const { score_terms: terms, scores } = current();
    return dotCell({ terms, r, c, total: scores[r][c], title: ["Score: ", ...pair(r, c)] });
  };
  /**
   * @param {Named<"causal-masking", SoftmaxTerms>} terms
   * @param {Named<"causal-masking", number[][]>} values
   * @returns {(...at: At) => Node[]}
   */
  const weight = (terms, values) => (r, c) => {
    const data = current();
    if (terms === "weight_terms" && isHidden(r, c)) return hidden(r, c);
    const { scores, scale } = data;
    const divided = `The score ${fixed(scores[r][c])} × ${number(scale)} (1 / √head_dim) goes into the softmax.`;
    const share = softmaxCell({
      terms: data[terms],
      r,
      c,
      total: data[values][r][c],
      title: ["Weight: ", ...pair(r, c)],
    });
    return [paragraph(divided), ...share];
  };
  /** @type {Record<string, import("../../widgets/heat_table.mjs").HeatTable>} */
  const tables = {};
  /** @param {string} name @returns {(r: number) => import("../../widgets/arithmetic.mjs").Operand[][]} */
  const rowIn = (name) => (r) => [cellsOf(tables[name], r)];
  /** @param {string} name @returns {(r: number, c: number) => import("../../widgets/arithmetic.mjs").Operand[][]} */
  const cellIn = (name) => (r, c) => [[[tables[name], r, c]]];
  return Object.assign(tables, {
    scores: arithmetic.table({ name: "Attention scores", axes: AXES, digits: 2, explain: score }),
    mask: arithmetic.table({
      name: "The mask",
      axes: "1: may look",
      digits: 0,
      explain: (r, c) => {
        const may = isHidden(r, c) ? " may not look at " : " may look at ";
        return [paragraph(named(current().words[r]), may, named(current().words[c]), ".")];
      },
    }),
    masked: arithmetic.table({
      name: "Masked scores",
      operands: cellIn("scores"),
      axes: "click one to hide or show a word",
      digits: 2,
      hole: "−∞",
      explain(r, c) {
        if (isHidden(r, c)) return hidden(r, c);
        const why = "A word always sees itself, so every row has a key left for the softmax.";
        return [...score(r, c), ...(r === c ? [paragraph(why)] : [])];
      },
    }),
    all_weights: arithmetic.table({
      name: "Weights without the mask",
      digits: 2,
      operands: rowIn("scores"),
      axes: "softmax of score / √head_dim",
      sums: true,
      explain: weight("all_terms", "all_weights"),
    }),
    weights: arithmetic.table({
      name: "Attention weights",
      digits: 2,
      operands: rowIn("masked"),
      axes: "softmax of masked score / √head_dim",
      sums: true,
      explain: weight("weight_terms", "weights"),
    }),
    added: arithmetic.table({
      name: "Scores + triu × −∞",
      axes: "every row is lost",
      hole: (r, c) => (c > r ? "−∞" : "NaN"),
      explain: (r, c) => [
        paragraph(
          c > r
            ? "1 × −∞ = −∞, added to a score: masked, as intended."
            : `0 × −∞ is not a number, and neither is ${fixed(current().scores[r][c])} + NaN.`,
        ),
      ],
    }),
    cut: arithmetic.table({
      name: "1b. The hidden ones set to 0",
      operands: cellIn("all_weights"),
      axes: "rows no longer add up to 1",
      sums: true,
      explain: (r, c) => {
        if (isHidden(r, c)) return hidden(r, c);
        const { cut, left } = current();
        const rest = ` with ${fixed(cut[r][c])}. The rest of the row adds up to ${fixed(left[r])}.`;
        return [paragraph("Kept: ", ...pair(r, c), rest)];
      },
    }),
    renormalised: arithmetic.table({
      name: "1b, divided by the sum of the rest",
      operands: rowIn("cut"),
      axes: "attention weights",
      sums: true,
      explain: (r, c) => {
        if (isHidden(r, c)) return hidden(r, c);
        const { cut, left, renormalised } = current();
        const quotient = division("weight / sum of the rest of the row", cut[r][c], left[r], renormalised[r][c]);
        return [paragraph("Weight: ", ...pair(r, c)), quotient];
      },
    }),
    drawn: arithmetic.table({
      name: "The random numbers",
      axes: "a weight is kept if its number is not below p",
      explain: (r, c) => [paragraph(...pair(r, c), ": ", explainDropout(current(), r, c))],
    }),
    dropped: arithmetic.table({
      name: "After dropout",
      operands: (r, c) => [[[tables.drawn, r, c]], [[tables.weights, r, c]]],
      axes: "in training only",
      sums: true,
      explain: (r, c) => [paragraph(...pair(r, c), ": ", explainDropout(current(), r, c))],
    }),
  });
}

/**
 * @param {Data["causal-masking"]} data
 * @param {number} r
 * @param {number} c
 */
function explainDropout({ before: all, drawn, dropped, dropout, keep_scale }, r, c) {
  const [before, after, random] = [all[r][c], dropped[r][c], fixed(drawn[r][c])];
  if (before === 0) return "the weight is 0 already.";
  if (after === 0) return `the random number ${random} is below p = ${dropout}, so ${fixed(before)} was dropped.`;
  return (
    `the random number ${random} is not below p = ${dropout}: ${fixed(before)} × ${number(keep_scale)} = ` +
    `${fixed(after)}.`
  );
}

/**
 * The context vectors of a text of the batch.
 * @param {Arithmetic} arithmetic
 * @param {string} name
 * @param {() => Data["causal-masking"]} current
 */
export function contextOf(arithmetic, name, current) {
  return arithmetic.table({
    name,
    axes: "T × 2",
    explain: (r, c) => {
      const { words, batch, batch_terms: terms } = current();
      const title = ["Context of ", named(words[r]), `, number ${c}: attention weight × value`];
      return dotCell({ terms, r, c, total: batch[0][r][c], title });
    },
  });
}

/** @param {Arithmetic} arithmetic @param {() => Data["causal-masking"]} current */
export function lectureHead(arithmetic, current) {
  return arithmetic.table({
    name: "Attention weights, not scaled",
    axes: "8 tokens × 8 tokens",
    sums: true,
    explain: (r, c) => {
      const { terms, weights } = current().lecture;
      return softmaxCell({ terms, r, c, total: weights[r][c], title: [`Weight: token ${r} looks at token ${c}`] });
    },
  });
}
