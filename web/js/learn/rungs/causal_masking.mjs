// Rung 7: no looking ahead, two ways, and dropout.

import { make } from "../../lib/dom.mjs";
import { fixed, number } from "../../lib/numbers.mjs";
import { Arithmetic, AXES, division, dotCell, looks, named, softmaxCell } from "../../widgets/arithmetic.mjs";
import { slider } from "../widgets/controls.mjs";
import { controls, heading, paragraph, rowOf, term } from "../widgets/elements.mjs";
import { formula, fraction, root, row, sub } from "../../widgets/formula.mjs";
import { Stamp } from "../../widgets/stamp.mjs";

/** @import { Rung } from "../rung.js" */

/** @type {Rung} */
export const causalMasking = {
  name: "Causal masking and dropout",
  options: () => ({ dropout: 0.5, seed: 1 }),
  question: {
    ask: "What is the first word's attention weight on itself, once the future is masked?",
    options: ["The same as before", "Exactly 1", "1 divided by the number of words"],
    right: 1,
    why: "It has nothing else to look at, and a row adds up to 1.",
  },
  build(lesson) {
    const stamp = new Stamp("mask after softmax and renormalise, minus infinity before softmax");
    const arithmetic = new Arithmetic();
    /** @type {any} */
    let data;
    const tables = makeTables(arithmetic, () => data);
    const dropout = slider({
      label: "dropout p",
      max: 0.9,
      step: 0.1,
      value: lesson.options.dropout,
      format: (value) => value.toFixed(1),
      change: (value) => lesson.set({ dropout: value }),
    });
    const drawAgain = () => lesson.set({ seed: lesson.options.seed + 1 });
    const again = make("button", { type: "button", class: "hs-small", onclick: drawAgain }, "Draw again");
    const sums = make("p", { class: "hl-count", role: "status" });
    return {
      text: [
        paragraph(
          "A model trained to predict the next word must not see it. ",
          term("Causal"),
          " attention hides the keys after the query. One way is to take the softmax first, set the future to 0 and ",
          "divide each row by what is left; another is to set the future's scores to minus infinity, whose exp is 0, ",
          "and take the softmax once. Both give the same weights. The scores are those of the linear layers of the ",
          "previous rung.",
        ),
      ],
      formula: formula(
        [
          sub("w", row("i", "j")),
          "=",
          "softmax",
          "(",
          fraction(sub("s", row("i", "j")), root("head_dim")),
          ")",
          ", ",
          sub("s", row("i", "j")),
          "=",
          "−∞",
          " where ",
          row("j", ">", "i"),
        ],
        [
          "dropout",
          "(",
          "w",
          ")",
          "=",
          fraction("w", row("1", "−", "p")),
          " with probability ",
          row("1", "−", "p"),
          ", else ",
          "0",
        ],
      ),
      picture: [
        rowOf(tables.scores.element),
        heading("First way: softmax, mask, renormalise"),
        rowOf(tables.all_weights.element, tables.cut.element, tables.renormalised.element),
        heading("Second way: minus infinity, softmax"),
        rowOf(tables.masked.element, tables.weights.element),
        stamp.element,
        heading("Dropout"),
        paragraph(
          "In training, some attention weights are dropped at random, so that the model relies on no word alone. The ",
          "rest are multiplied by 1 / (1 − p), so that on average a row stays the same.",
        ),
        controls(dropout.element, again),
        rowOf(tables.dropped.element),
        sums,
        arithmetic.element,
      ],
      update(found) {
        data = found;
        const { words } = data;
        for (const [name, table] of Object.entries(tables)) {
          table.show({ rows: words, columns: words, values: data[name] });
        }
        dropout.update(data.dropout);
        const rowSums = Array.from(data.row_sums, (/** @type {number} */ sum) => fixed(sum, 2)).join(", ");
        sums.textContent = `Kept weights × ${number(data.keep_scale, 2)}. The rows now add up to ${rowSums}.`;
        stamp.show(data.error);
        arithmetic.update(tables.renormalised, [1, 0]);
      },
    };
  },
};

/**
 * @param {Arithmetic} arithmetic
 * @param {() => any} current the server's answer
 */
function makeTables(arithmetic, current) {
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
  return {
    scores: arithmetic.table({ name: "Attention scores", axes: AXES, explain: score }),
    all_weights: arithmetic.table({
      name: "1a. Softmax over all keys",
      axes: "the future is still in it",
      explain: weight("all_terms", "all_weights"),
    }),
    cut: arithmetic.table({
      name: "1b. The future set to 0",
      axes: "rows no longer add up to 1",
      explain: (r, c) => {
        if (c > r) return future(r, c);
        const { cut, left } = current();
        const rest = ` with ${fixed(cut[r][c])}. What is left of the row adds up to ${fixed(left[r])}.`;
        return [paragraph("Kept: ", ...pair(r, c), rest)];
      },
    }),
    renormalised: arithmetic.table({
      name: "1c. Divided by what is left",
      axes: "attention weights",
      explain: (r, c) => {
        if (c > r) return future(r, c);
        const { cut, left, renormalised } = current();
        const quotient = division("weight / what is left of the row", cut[r][c], left[r], renormalised[r][c]);
        return [paragraph("Weight: ", ...pair(r, c)), quotient];
      },
    }),
    masked: arithmetic.table({
      name: "2a. Scores, the future at −∞",
      axes: "before softmax",
      hole: "−∞",
      explain: (r, c) => (c > r ? future(r, c) : score(r, c)),
    }),
    weights: arithmetic.table({
      name: "2b. Softmax",
      axes: "attention weights",
      explain: weight("weight_terms", "weights"),
    }),
    dropped: arithmetic.table({
      name: "After dropout",
      axes: "in training only",
      explain: (r, c) => [paragraph(...pair(r, c), ": ", explainDropout(current(), r, c))],
    }),
  };
}

/**
 * @param {any} data
 * @param {number} r
 * @param {number} c
 */
function explainDropout({ weights, dropped, keep_scale }, r, c) {
  const [before, after] = [weights[r][c], dropped[r][c]];
  if (before === 0) return "there is nothing to drop.";
  if (after === 0) return `the weight ${fixed(before)} was dropped.`;
  return `the weight ${fixed(before)} was kept, × ${number(keep_scale)} = ${fixed(after)}.`;
}
