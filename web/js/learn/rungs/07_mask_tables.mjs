// The tables of rung 7, each with an explanation of its numbers.

import { fixed, number } from "../../lib/numbers.mjs";
import { named, AXES, division, dotCell, looks, rowOf as cellsOf, softmaxCell } from "../../widgets/arithmetic.mjs";
import { paragraph } from "../widgets/elements.mjs";

/** @import { Data, Named } from "../data.js" */
/** @import { HeatTable } from "../../widgets/heat_table.mjs" */
/** @import { Arithmetic, SoftmaxTerms } from "../../widgets/arithmetic.mjs" */

/** @typedef {[r: number, c: number]} At */

/**
 * All of them, by the names of the server's numbers.
 * @param {Arithmetic} arithmetic
 * @param {() => Data["causal-masking"]} current the server's answer
 */
export function makeTables(arithmetic, current) {
  /** @type {Record<string, HeatTable>} */
  const tables = {};
  const explained = new MaskArithmetic(current);
  return Object.assign(tables, {
    ...scoreTables(arithmetic, explained, tables),
    ...weightTables(arithmetic, explained, tables),
    ...otherWays(arithmetic, explained, tables),
    ...dropoutTables(arithmetic, explained, tables),
  });
}

/** What several tables say of their cells. */
class MaskArithmetic {
  /** @param {() => Data["causal-masking"]} current */
  constructor(current) {
    this.current = current;
  }

  get data() {
    return this.current();
  }

  /** @param {At} at */
  pair(...[r, c]) {
    return looks(this.data.words[r], this.data.words[c]);
  }

  /** @param {At} at */
  isHidden(...[r, c]) {
    return !this.data.mask[r][c];
  }

  /** @param {At} at */
  hidden(...[r, c]) {
    const [query, key] = [r, c].map((i) => named(this.data.words[i]));
    const words =
      c > r
        ? paragraph(key, " comes after ", query, ": the mask hides it.")
        : paragraph("You have hidden ", key, " from ", query, ".");
    return [words];
  }

  /** @param {At} at */
  score(...[r, c]) {
    const { score_terms: terms, scores } = this.data;
    return dotCell({ terms, r, c, total: scores[r][c], title: ["Score: ", ...this.pair(r, c)] });
  }

  /**
   * @param {Named<"causal-masking", SoftmaxTerms>} terms
   * @param {Named<"causal-masking", number[][]>} values
   * @param {At} at
   */
  weight(terms, values, ...[r, c]) {
    const { data } = this;
    if (terms === "weight_terms" && this.isHidden(r, c)) return this.hidden(r, c);
    const score = fixed(data.scores[r][c]);
    const divided = `The score ${score} × ${number(data.scale)} (1 / √head_dim) goes into the softmax.`;
    const title = ["Weight: ", ...this.pair(r, c)];
    return [paragraph(divided), ...softmaxCell({ terms: data[terms], r, c, total: data[values][r][c], title })];
  }
}

/** @param {Arithmetic} arithmetic @param {MaskArithmetic} explained @param {Record<string, HeatTable>} tables */
const scoreTables = (arithmetic, explained, tables) => ({
  scores: arithmetic.table({
    name: "Attention scores",
    axes: AXES,
    digits: 2,
    explain: (r, c) => explained.score(r, c),
  }),
  mask: arithmetic.table({
    name: "The mask",
    axes: "1: may look",
    digits: 0,
    explain: (r, c) => {
      const { words } = explained.data;
      const may = explained.isHidden(r, c) ? " may not look at " : " may look at ";
      return [paragraph(named(words[r]), may, named(words[c]), ".")];
    },
  }),
  masked: arithmetic.table({
    name: "Masked scores",
    operands: (r, c) => [[[tables.scores, r, c]]],
    axes: "click one to hide or show a word",
    digits: 2,
    hole: "−∞",
    explain: (r, c) => {
      if (explained.isHidden(r, c)) return explained.hidden(r, c);
      const why = "A word always sees itself, so every row has a key left for the softmax.";
      return [...explained.score(r, c), ...(r === c ? [paragraph(why)] : [])];
    },
  }),
});

/** @param {Arithmetic} arithmetic @param {MaskArithmetic} explained @param {Record<string, HeatTable>} tables */
const weightTables = (arithmetic, explained, tables) => ({
  all_weights: arithmetic.table({
    name: "Weights without the mask",
    digits: 2,
    operands: (r) => [cellsOf(tables.scores, r)],
    axes: "softmax of score / √head_dim",
    sums: true,
    darkest: 1, // one scale for both tables, so that an unchanged row looks the same
    explain: (r, c) => explained.weight("all_terms", "all_weights", r, c),
  }),
  weights: arithmetic.table({
    name: "Attention weights",
    digits: 2,
    operands: (r) => [cellsOf(tables.masked, r)],
    axes: "softmax of masked score / √head_dim",
    sums: true,
    darkest: 1,
    explain: (r, c) => explained.weight("weight_terms", "weights", r, c),
  }),
});

/**
 * Masking after the softmax, and a way that fails.
 * @param {Arithmetic} arithmetic
 * @param {MaskArithmetic} explained
 * @param {Record<string, HeatTable>} tables
 */
const otherWays = (arithmetic, explained, tables) => ({
  added: arithmetic.table({
    name: "Scores + triu × −∞",
    axes: "every row is lost",
    hole: (r, c) => (c > r ? "−∞" : "NaN"),
    explain: (r, c) => [
      paragraph(
        c > r
          ? "1 × −∞ = −∞, added to a score: masked, as intended."
          : `0 × −∞ is not a number, and neither is ${fixed(explained.data.scores[r][c])} + NaN.`,
      ),
    ],
  }),
  cut: arithmetic.table({
    name: "1b. The hidden ones set to 0",
    operands: (r, c) => [[[tables.all_weights, r, c]]],
    axes: "rows no longer add up to 1",
    sums: true,
    explain: (r, c) => {
      if (explained.isHidden(r, c)) return explained.hidden(r, c);
      const { cut, left } = explained.data;
      const rest = ` with ${fixed(cut[r][c])}. The rest of the row adds up to ${fixed(left[r])}.`;
      return [paragraph("Kept: ", ...explained.pair(r, c), rest)];
    },
  }),
  renormalised: arithmetic.table({
    name: "1b, divided by the sum of the rest",
    operands: (r) => [cellsOf(tables.cut, r)],
    axes: "attention weights",
    sums: true,
    explain: (r, c) => {
      if (explained.isHidden(r, c)) return explained.hidden(r, c);
      const { cut, left, renormalised } = explained.data;
      const quotient = division("weight / sum of the rest of the row", cut[r][c], left[r], renormalised[r][c]);
      return [paragraph("Weight: ", ...explained.pair(r, c)), quotient];
    },
  }),
});

/** @param {Arithmetic} arithmetic @param {MaskArithmetic} explained @param {Record<string, HeatTable>} tables */
const dropoutTables = (arithmetic, explained, tables) => ({
  drawn: arithmetic.table({
    name: "The random numbers",
    axes: "a weight is kept if its number is not below p",
    explain: (r, c) => [paragraph(...explained.pair(r, c), ": ", explainDropout(explained.data, r, c))],
  }),
  dropped: arithmetic.table({
    name: "After dropout",
    operands: (r, c) => [[[tables.drawn, r, c]], [[tables.weights, r, c]]],
    axes: "in training only",
    sums: true,
    explain: (r, c) => [paragraph(...explained.pair(r, c), ": ", explainDropout(explained.data, r, c))],
  }),
});

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
