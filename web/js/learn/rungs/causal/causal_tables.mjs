// The tables of rung 7, each with what its numbers are made of.

import { fixed, number } from "../../../lib/numbers.mjs";
import { AXES, division, dotCell, looks, named, rowOf as cellsOf, softmaxCell } from "../../../widgets/arithmetic.mjs";
import { paragraph } from "../../widgets/elements.mjs";

/** @import { Arithmetic } from "../../../widgets/arithmetic.mjs" */

/**
 * @param {Arithmetic} arithmetic
 * @param {() => any} current the server's answer
 */
export function makeTables(arithmetic, current) {
  /** @typedef {[r: number, c: number]} At */
  /** @param {At} at */
  const pair = (...[r, c]) => looks(current().words[r], current().words[c]);
  /** @param {At} at */
  const future = (...[r, c]) => {
    const { words } = current();
    return [paragraph(named(words[c]), " comes after ", named(words[r]), ": the mask hides it.")];
  };
  /** @param {At} at */
  const score = (...[r, c]) => {
    const { score_terms: terms, scores } = current();
    return dotCell({ terms, r, c, total: scores[r][c], title: ["Score: ", ...pair(r, c)] });
  };
  /** @param {string} terms @param {string} values @returns {(...at: At) => Node[]} */
  const weight = (terms, values) => (r, c) => {
    const data = current();
    return softmaxCell({ terms: data[terms], r, c, total: data[values][r][c], title: ["Weight: ", ...pair(r, c)] });
  };
  /** @type {Record<string, import("../../../widgets/heat_table.mjs").HeatTable>} */
  const tables = {};
  /** @param {string} name @returns {(r: number) => import("../../../widgets/arithmetic.mjs").Operand[][]} */
  const rowIn = (name) => (r) => [cellsOf(tables[name], r)];
  /** @param {string} name @returns {(r: number, c: number) => import("../../../widgets/arithmetic.mjs").Operand[][]} */
  const cellIn = (name) => (r, c) => [[[tables[name], r, c]]];
  return Object.assign(tables, {
    scores: arithmetic.table({ name: "Attention scores", axes: AXES, explain: score }),
    mask: arithmetic.table({
      name: "The mask",
      axes: "1: may be looked at",
      digits: 0,
      explain: (r, c) =>
        c > r ? future(r, c) : [paragraph(named(current().words[c]), " is not after ", named(current().words[r]), ".")],
    }),
    added: arithmetic.table({
      name: "Scores + triu × −∞",
      axes: "every row is lost",
      hole: (r, c) => (c > r ? "−∞" : "NaN"),
      explain: (r, c) => [
        paragraph(
          c > r
            ? "1 × −∞ = −∞, added to a score: masked, as intended."
            : `0 × −∞ is not a number, and ${fixed(current().scores[r][c])} + NaN is none either.`,
        ),
      ],
    }),
    all_weights: arithmetic.table({
      name: "1a. Softmax over all keys",
      operands: rowIn("scores"),
      axes: "the future is still in it",
      sums: true,
      explain: weight("all_terms", "all_weights"),
    }),
    cut: arithmetic.table({
      name: "1b. The future set to 0",
      operands: cellIn("all_weights"),
      axes: "rows no longer add up to 1",
      sums: true,
      explain: (r, c) => {
        if (c > r) return future(r, c);
        const { cut, left } = current();
        const rest = ` with ${fixed(cut[r][c])}. What is left of the row adds up to ${fixed(left[r])}.`;
        return [paragraph("Kept: ", ...pair(r, c), rest)];
      },
    }),
    renormalised: arithmetic.table({
      name: "1c. Divided by what is left",
      operands: rowIn("cut"),
      axes: "attention weights",
      sums: true,
      explain: (r, c) => {
        if (c > r) return future(r, c);
        const { cut, left, renormalised } = current();
        const quotient = division("weight / what is left of the row", cut[r][c], left[r], renormalised[r][c]);
        return [paragraph("Weight: ", ...pair(r, c)), quotient];
      },
    }),
    masked: arithmetic.table({
      name: "2a. Scores, the future at −∞",
      operands: cellIn("scores"),
      axes: "before softmax",
      hole: "−∞",
      explain: (r, c) => (c > r ? future(r, c) : score(r, c)),
    }),
    weights: arithmetic.table({
      name: "2b. Softmax",
      operands: rowIn("masked"),
      axes: "attention weights",
      sums: true,
      explain: weight("weight_terms", "weights"),
    }),
    drawn: arithmetic.table({
      name: "The random numbers",
      axes: "kept where not below p",
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
 * @param {any} data
 * @param {number} r
 * @param {number} c
 */
function explainDropout({ before: all, drawn, dropped, dropout, keep_scale }, r, c) {
  const [before, after, random] = [all[r][c], dropped[r][c], fixed(drawn[r][c])];
  if (before === 0) return "there is nothing to drop.";
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
 * @param {() => any} current
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

/** @param {Arithmetic} arithmetic @param {() => any} current */
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
