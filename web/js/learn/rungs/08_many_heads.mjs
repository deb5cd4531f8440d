// Rung 8: several heads, one after the other and all at once.

import {
  Arithmetic,
  AXES,
  columnOf,
  dotCell,
  dotProduct,
  looks,
  named,
  rowOf as cellsOf,
  softmaxCell,
} from "../../widgets/arithmetic.mjs";
import { fixed } from "../../lib/numbers.mjs";
import { formula, row, sub } from "../../widgets/formula.mjs";
import { Stamp } from "../../widgets/stamp.mjs";
import { content } from "../content/08_many_heads.mjs";
import { code, heading, paragraph, rowOf, choice, controls, remarks } from "../widgets/elements.mjs";
import { looksMost } from "../widgets/steps.mjs";
import { dotTolerance } from "../widgets/exercises.mjs";
import { TwoHeads } from "../widgets/two_heads.mjs";
import { changeNumbers, vectorsBar } from "../widgets/vectors_bar.mjs";
import { batchedProduct, FOUR, HEADS, headTimes, shapesOfHeads } from "./08_head_shapes.mjs";
import { weightOfHead } from "./06_trainable_weights.mjs";
import { twoJobs } from "./06_08_watch_learning.mjs";

/** @import { Rung, Lesson } from "../rung.js" */
/** @import { Data } from "../data.js" */

const HEAD_DIM = 2; // numbers of a head in the book's example
/** The head of a number of both, and its place in that head. @param {number} c */
const placeOf = (c) => [Math.floor(c / HEAD_DIM), c % HEAD_DIM];

/** @type {Rung<"many-heads">} */
export const manyHeads = {
  ...content,
  key: "many-heads",
  options: () => ({ d_out: 2 }),
  choices: () => ({ jobs: { seed: 1 }, times: { n_head: 8, n_tokens: 64 }, heads: "trained" }),
  own({ words, random, values, merged }) {
    if (words.length < 2) return null;
    const [a, b] = random[0].weights[1];
    const [v, w] = [values[0][0][0], values[0][1][0]];
    return {
      kind: "number",
      ask:
        `In head 0, “${words[1]}” gives ${fixed(a)} to “${words[0]}”, whose value 0 is ${fixed(v)}, and ` +
        `${fixed(b)} to itself, with ${fixed(w)}. What is number 0 of its context vector?`,
      right: merged[1][0],
      tolerance: dotTolerance([a, b], [v, w]),
      mistakes: [
        { number: v + w, reply: "That leaves the weights out." },
        { number: (v + w) / 2, reply: "That gives both words the same weight." },
        { number: a * w + b * v, reply: "The two values have changed places." },
        { number: a * v, reply: `That is the part of “${words[0]}” alone.` },
        { number: b * w, reply: `That is the part of “${words[1]}” alone.` },
      ],
      hint: "Each attention weight times the value, added up.",
      second: `The part of “${words[0]}” is ${fixed(a * v)}.`,
      why: `${fixed(a)} × ${fixed(v)} + ${fixed(b)} × ${fixed(w)}.`,
    };
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
      digits: 2,
      axes: "words × 3",
      edit: changeNumbers(lesson, () => data),
      explain: (r, c) => [paragraph(`Number ${c} of `, named(data.words[r]), `: ${data.origin}.`)],
    });
    /** @type {Data["many-heads"]} */
    let data;
    /** @param {number} r @param {number} c */
    const explainContext = (r, c) => {
      const [head, i] = placeOf(c);
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
    /** @param {number} head @param {number} r @param {number} c */
    const explainWeight = (head, r, c) =>
      c > r
        ? [paragraph(named(data.words[c]), " comes after ", named(data.words[r]), ": it is masked.")]
        : weightOfHead(data.words, data.random[head], [r, c], `head ${head}`);
    const weights = HEADS.map((head) =>
      arithmetic.table({
        name: `Attention weights, head ${head}`,
        digits: 2,
        axes: "query ↓, key →",
        explain: (r, c) => explainWeight(head, r, c),
      }),
    );
    const values = arithmetic.table({
      name: "Values",
      digits: 2,
      axes: "head 0 | head 1",
      explain(r, c) {
        const [head, i] = placeOf(c);
        const title = ["Value of ", named(data.words[r]), ` in head ${head}, number ${i}: x · W value`];
        return dotCell({ terms: data.value_terms[head], r, c: i, total: data.values[head][r][i], title });
      },
      operands: (r) => [cellsOf(x, r)],
    });
    /** @param {number} r @param {number} c @returns {import("../../widgets/arithmetic.mjs").Operand[][]} */
    const contextOperands = (r, c) => {
      return [cellsOf(weights[placeOf(c)[0]], r), columnOf(values, c)];
    };
    const randoms = HEADS.map((head) =>
      arithmetic.table({
        name: `Random head ${head}`,
        axes: `seed 123, as in the small case; ${AXES}`,
        sums: true,
        explain: (r, c) => explainWeight(head, r, c),
      }),
    );
    const trained = new TwoHeads(lesson, arithmetic, {
      words:
        "Two heads with random matrices (seed 123), like those of an untrained model: both spread their weights " +
        "almost evenly over the words so far.",
      tables: randoms.map(({ element }) => element),
    });
    const wide = arithmetic.table({
      name: "Queries of both heads",
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
            ": nothing is computed; the numbers are merely rearranged.",
          ),
        ],
        operands: (r, c) => [[[wide, r, HEAD_DIM * head + c]]],
      }),
    );
    const merged = {
      stacked: arithmetic.table({
        name: "Context vectors",
        digits: 2,
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
    const outMatrix = arithmetic.table({
      name: "W out",
      digits: 2,
      axes: "4 × 4",
      explain: (r, c) => [paragraph(`From number ${r} of the heads to output ${c}: random here, learned in a model.`)],
    });
    const output = arithmetic.table({
      name: "Output",
      digits: 2,
      axes: "both heads · W out + b out",
      explain(r, c) {
        const title = [`Output ${c} of `, named(data.words[r]), `: the numbers of both heads × column ${c} of W out`];
        return dotCell({ terms: data.output_terms, r, c, total: data.output[r][c], title, bias: data.b_out[c] });
      },
      operands: (r, c) => [cellsOf(merged.stacked, r), columnOf(outMatrix, c)],
    });
    const bookCase = bookSplits(arithmetic, lesson);
    const batched = batchedProduct(arithmetic);
    const learning = twoJobs(lesson.kept.jobs);
    const firstToLast = [sub("Z", "0"), ";", "…", ";", sub("Z", row("n_head", "−", "1"))];
    return {
      formula: formula(["Z", "=", row("[", ...firstToLast, "]"), sub("W", "out"), "+", sub("b", "out")]),
      parts: {
        learning: learning.picture,
        learningButtons: learning.buttons,
        learningStatus: learning.status,
        x: x.element,
        weights: weights.map((table) => table.element),
        values: values.element,
        contexts: merged.stacked.element,
        outMatrix: outMatrix.element,
        output: output.element,
        shapesFormula: formula(
          [
            ...["(", "B", ",", "T", ",", "C", ")", "→"],
            ...["(", "B", ",", "n_head", ",", "T", ",", "head_dim", ")", "→"],
            ...["(", "B", ",", "T", ",", "C", ")"],
          ],
          ["B", " texts of ", "T", " tokens with ", "C", "=", "n_head", "·", "head_dim", " numbers"],
        ),
        shapes: shapesOfHeads({
          x: x.element,
          wide: wide.element,
          split: split[0].element,
          weights: weights[0].element,
          merged: merged.merged.element,
          projected: output.element,
        }),
        splits: merged.merged.element,
        stamp: stamp.element,
        vectors: vectors.element,
        trained: trained.elements,
        wide: wide.element,
        split: split.map((table) => table.element),
        bookCase: bookCase.elements,
        batched: batched.elements,
        times: headTimes(lesson.kept.times),
      },
      explanation: arithmetic.element,
      leave: learning.stop,
      update(found) {
        data = found;
        const rows = data.words;
        learning.use(rows);
        vectors.update(data);
        x.show({ rows, columns: ["0", "1", "2"], values: data.x });
        wide.show({ rows, columns: FOUR, values: data.wide });
        split.forEach((table, head) => table.show({ rows, columns: ["0", "1"], values: data.split[head] }));
        const sideBySide = rows.map((_, r) => data.values.flatMap((head) => head[r]));
        values.show({ rows, columns: ["0", "1", "0", "1"], values: sideBySide });
        weights.forEach((table, head) => table.show({ rows, columns: rows, values: data.random[head].weights }));
        merged.stacked.show({ rows, columns: ["0", "1", "0", "1"], values: data.stacked });
        outMatrix.show({ rows: FOUR, columns: FOUR, values: data.w_out });
        output.show({ rows, columns: FOUR, values: data.output });
        merged.merged.show({ rows, columns: ["0", "1", "0", "1"], values: data.merged });
        bookCase.update(data);
        batched.update(data);
        stamp.show(data.error);
        randoms.forEach((table, i) => table.show({ rows, columns: rows, values: data.random[i].weights }));
        trained.update(data.trained);
        arithmetic.update(merged.stacked, [1, 0]);
      },
      play() {
        const { weights: inHead } = data.random[0];
        const [q, k] = looksMost(inHead);
        const [query, key] = [data.words[q], data.words[k]];
        const weight = fixed(inHead[q][k], 2);
        return [
          { at: [x, k, 0], words: `“${key}” comes with the number ${fixed(data.x[k][0], 2)}.` },
          { at: [values, k, 0], words: `W value of head 0 makes of its numbers what “${key}” contributes.` },
          { at: [weights[0], q, k], words: `In head 0, “${query}” gives “${key}” the weight ${weight}.` },
          {
            at: [merged.stacked, q, 0],
            words: "Weight × value, over all words: number 0 of head 0. Head 1 stands next to it.",
          },
          { at: [output, q, 0], words: "The output projection mixes the numbers of both heads." },
        ];
      },
    };
  },
};

// Part of rung 8: the book's weight splits, of any size, before and after the output projection.

/** @param {Arithmetic} arithmetic @param {Lesson} lesson */
function bookSplits(arithmetic, lesson) {
  /** @type {Data["many-heads"]} */
  let data;
  const torch = new Stamp("these weight splits, and torch.nn.MultiheadAttention with the same weights and mask");
  const size = choice({
    label: "d_out, for both heads together",
    options: { 2: "2, Raschka’s", 4: "4", 16: "16" },
    value: String(lesson.options.d_out),
    change: (key) => lesson.set({ d_out: Number(key) }),
  });
  /** The head of a number of both heads' context vectors, and its place there. @param {number} c */
  const placeIn = (c) => [Math.floor(c / (data.d_out / 2)), c % (data.d_out / 2)];
  const splitScores = HEADS.map((head) =>
    arithmetic.table({
      name: `Masked scores of head ${head}, seed 123`,
      axes: "before × 1/√head_dim and softmax",
      hole: "−∞",
      explain: (r, c) => {
        if (c > r) return [paragraph(named(data.words[c]), " comes later: its score is replaced with −∞.")];
        const title = [`Score in head ${head}: `, ...looks(data.words[r], data.words[c])];
        return dotCell({
          terms: data.splits_score_terms[head],
          r,
          c,
          total: data.splits_scores[head][r][c] ?? NaN,
          title,
        });
      },
    }),
  );
  const splitWeights = HEADS.map((head) =>
    arithmetic.table({
      name: `Weights of head ${head}, seed 123`,
      axes: "after mask and softmax",
      sums: true,
      explain: (r, c) => {
        const title = [named(data.words[r]), " (query) looks at ", named(data.words[c]), ` (key) in head ${head}`];
        const total = data.splits_weights[head][r][c];
        return softmaxCell({ terms: data.splits_weight_terms[head], r, c, total, title });
      },
      operands: (r) => [cellsOf(splitScores[head], r)],
    }),
  );
  const context = arithmetic.table({
    name: "Before the output projection",
    axes: "head.number",
    explain: (r, c) => {
      const [head, i] = placeIn(c);
      const title = [
        `Head ${head}, number ${i} of the context of `,
        named(data.words[r]),
        ": attention weight × value",
      ];
      return dotCell({ terms: data.context_terms[head], r, c: i, total: data.context[r][c], title });
    },
    operands: (r, c) => [cellsOf(splitWeights[placeIn(c)[0]], r)],
  });
  const projection = arithmetic.table({
    name: "The output projection",
    axes: "d_out × d_out",
    explain: (r, c) => [
      paragraph(`From number ${r} of the heads to output ${c}: a weight that is learned (seed 123).`),
    ],
  });
  const projected = arithmetic.table({
    name: "After the output projection",
    axes: "Raschka’s own weight splits",
    explain: (r, c) => {
      const words = `: the numbers of both heads × row ${c} of the projection, plus its bias`;
      const title = [`Output ${c} of `, named(data.words[r]), words];
      return dotCell({ terms: data.projected_terms, r, c, total: data.projected[r][c], title, bias: data.bias[c] });
    },
    operands: (r, c) => [cellsOf(context, r), columnOf(projection, c)],
  });
  return {
    elements: [
      heading("The book’s own case"),
      paragraph(
        "The heads above have 2 numbers each, 4 in all. The book’s own weight splits have d_out = 2 for both heads ",
        "together, so each head has only 1 number here.",
      ),
      controls(size.element),
      rowOf(...splitScores.map((table) => table.element)),
      rowOf(...splitWeights.map((table) => table.element)),
      rowOf(context.element, projection.element, projected.element),
      torch.element,
      remarks(
        "Worth knowing",
        "An output projection is not strictly needed: the heads side by side already have the right shape. Nearly " +
          "all models have one, because it combines what several heads found.",
        [
          "PyTorch has all of this as ",
          code("torch.nn.MultiheadAttention"),
          ", which the comparison above uses. It takes the mask as an argument and is harder to inspect.",
        ],
      ),
    ],
    /** @param {Data["many-heads"]} found */
    update(found) {
      data = found;
      const rows = data.words;
      size.show(/** @type {any} */ (String(data.d_out)));
      torch.show(data.torch_error);
      splitScores.forEach((table, h) => table.show({ rows, columns: rows, values: data.splits_scores[h] }));
      splitWeights.forEach((table, h) => table.show({ rows, columns: rows, values: data.splits_weights[h] }));
      const places = Array.from({ length: data.d_out }, (_, i) => String(i));
      context.show({ rows, columns: places.map((_, i) => placeIn(i).join(".")), values: data.context });
      projection.show({ rows: places, columns: places, values: data.projection });
      projected.show({ rows, columns: places, values: data.projected });
    },
  };
}
