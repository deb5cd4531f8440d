// Rung 9: the rest of a block: residual stream, layer norm and MLP.

import { make } from "../../lib/dom.mjs";
import { fixed, number, significant } from "../../lib/numbers.mjs";
import {
  Arithmetic,
  columnOf,
  dotCell,
  dotProduct,
  named,
  result,
  rowOf as cellsOf,
  softmaxCell,
} from "../../widgets/arithmetic.mjs";
import { formula, fraction, root, row, sub } from "../../widgets/formula.mjs";
import { Stamp } from "../../widgets/stamp.mjs";
import { shortWord } from "../../widgets/heat_table.mjs";
import { content } from "../content/09_rest_of_a_block.mjs";
import { bars, chart } from "../widgets/chart.mjs";
import { slider, paragraph } from "../widgets/elements.mjs";
import { changeNumbers, vectorsBar } from "../widgets/vectors_bar.mjs";

/** @import { Rung } from "../rung.js" */
/** @import { Data, Named } from "../data.js" */
/** @typedef {Named<"block", number[][]>} Matrix */
/** @import { Part } from "../widgets/diagram.mjs" */
/** @import { HeatTable } from "../../widgets/heat_table.mjs" */

const SCALES = [0.1, 0.2, 0.5, 1, 2, 5, 10, 100];

/** @type {Rung<"block">} */
export const restOfABlock = {
  ...content,
  key: "block",
  options: () => ({ scale: 1 }),
  own({ words, scaled, mean, variance, eps, normed }) {
    const values = scaled[0].map((/** @type {number} */ value) => significant(value)).join(", ");
    return {
      kind: "number",
      ask:
        `“${words[0]}” has the numbers ${values}, with the mean ${significant(mean[0])} and the variance ` +
        `${significant(variance[0])}. What does layer norm make of the first?`,
      right: normed[0][0],
      tolerance: 0.02 + 0.0001 / Math.sqrt(variance[0] + eps), // the numbers are shown to four decimals
      mistakes: [
        { number: scaled[0][0] - mean[0], reply: "That still has to be divided." },
        { number: (scaled[0][0] - mean[0]) / variance[0], reply: "Divide by the square root of the variance." },
        { number: scaled[0][0] / Math.sqrt(variance[0]), reply: "The mean has to be subtracted first." },
        { number: -normed[0][0], reply: "Subtract the mean from the number, not the number from the mean." },
      ].filter((mistake) => Number.isFinite(mistake.number)), // a variance may be 0
      hint: "Subtract the mean, then divide by the square root of the variance.",
      second: `The number minus the mean is ${significant(scaled[0][0] - mean[0])}.`,
      why: `(${significant(scaled[0][0])} − ${significant(mean[0])}) / √(${significant(variance[0])} + ${eps}).`,
    };
  },
  build(lesson) {
    const arithmetic = new Arithmetic();
    const vectors = vectorsBar(
      lesson,
      "This choice changes only the words: the matrices of the block stay as they are.",
    );
    const whole = new Stamp("the steps above, and the Block that the GPT runs, with the same weights");
    const joined = new Stamp("the MLP’s two layers without GELU, and one layer with the product of their matrices");
    const [curve, ladder, said, epsilon] = [make("div"), make("div"), paragraph(), make("span")];
    /** @type {Data["block"]} */
    let data;
    const scale = slider({
      label: "x ×",
      values: SCALES,
      value: lesson.options.scale,
      change: (value) => lesson.set({ scale: value }),
    });
    /** @param {number} r @param {string} [words] */
    const of = (r, words = "") => [named(data.words[r]), words];
    const x = arithmetic.table({
      name: "The words x",
      digits: 2,
      axes: "words × 3",
      edit: changeNumbers(lesson, () => data),
      explain: (r, c) => [paragraph(`Number ${c} of `, ...of(r), `: ${data.origin}.`)],
    });
    const scaled = arithmetic.table({
      name: "x × the slider",
      digits: 2,
      axes: "the stream",
      explain: (r, c) => [paragraph(`${number(data.x[r][c])} × ${number(data.scale)} = ${fixed(data.scaled[r][c])}`)],
      operands: (r, c) => [[[x, r, c]]],
    });
    /**
     * @param {string} name
     * @param {Matrix} values
     * @param {object} from
     * @param {Matrix} from.read
     * @param {Named<"block", number[]>} from.mean
     * @param {Named<"block", number[]>} from.variance
     * @param {() => HeatTable} from.table
     */
    const normTable = (name, values, { read, mean, variance, table }) =>
      arithmetic.table({
        name,
        axes: "mean 0, variance 1",
        digits: 2,
        explain: (r, c) => [
          paragraph("Layer norm of ", ...of(r, `, number ${c}: (number − mean) / √(variance + ε)`)),
          paragraph(
            `(${significant(data[read][r][c])} − ${significant(data[mean][r])}) / ` +
              `√(${significant(data[variance][r])} + ${data.eps}) `,
            result(fixed(data[values][r][c])),
          ),
          paragraph("Its weight is still 1 and its bias 0: training will change both."),
        ],
        operands: (r) => [cellsOf(table(), r)],
      });
    const normed = normTable("Layer norm", "normed", {
      read: "scaled",
      mean: "mean",
      variance: "variance",
      table: () => scaled,
    });
    const weights = arithmetic.table({
      name: "Attention weights, head 0",
      digits: 2,
      axes: "of 3 heads with 1 number each",
      sums: true,
      explain: (r, c) => {
        if (c > r) return [paragraph(...of(c, " comes later: it is masked, and has the weight 0."))];
        const [query, key] = [data.queries[r][0], data.keys[c][0]];
        const score = ` = ${fixed(query)} × ${fixed(key)} = ${fixed(query * key)}, and √head_dim is 1.`;
        const title = [...of(r, " looks at "), ...of(c, ": its score is query × key"), score];
        return softmaxCell({ terms: data.weight_terms, r, c, total: data.weights[0][r][c], title });
      },
      operands: (r, c) => [cellsOf(normed, r), cellsOf(normed, c)],
    });
    const attended = arithmetic.table({
      name: "What attention adds",
      digits: 2,
      axes: "all heads",
      explain: (r, c) => {
        const title = ["Attention’s output for ", ...of(r, `, number ${c}`)];
        const bias = data.attended_bias[c];
        return dotCell({ terms: data.attended_terms, r, c, total: data.attended[r][c], title, bias });
      },
    });
    /**
     * @param {string} name
     * @param {Matrix} values
     * @param {[Matrix, Matrix, HeatTable, HeatTable]} from
     */
    const sumTable = (name, values, [before, added, first, second]) =>
      arithmetic.table({
        name,
        axes: "the stream",
        digits: 2,
        explain: (r, c) =>
          dotProduct({
            title: ["Number ", String(c), " of ", ...of(r, ": the stream, and what is added to it")],
            names: ["stream", "added"],
            products: [data[before][r][c], data[added][r][c]],
            total: data[values][r][c],
          }),
        operands: (r, c) => [[[first, r, c]], [[second, r, c]]],
      });
    const residMid = sumTable("x + attention", "resid_mid", ["scaled", "attended", scaled, attended]);
    const mlpInput = normTable("Layer norm again", "mlp_input", {
      read: "resid_mid",
      mean: "resid_mid_mean",
      variance: "resid_mid_variance",
      table: () => residMid,
    });
    let inside = 0; // the word whose hidden numbers are shown
    const hidden = arithmetic.table({
      name: "Hidden numbers",
      digits: 2,
      explain(i, c) {
        const [h, a] = [data.hidden[inside][i], data.activated[inside][i]];
        if (c) {
          return [
            paragraph("GELU of hidden number ", String(i), " of ", ...of(inside, ":")),
            paragraph(`½ · h · (1 + tanh(√(2/π) · (h + 0.044715 h³))) with h = ${fixed(h)} `, result(fixed(a))),
          ];
        }
        const title = ["Hidden number ", String(i), " of ", ...of(inside)];
        return dotCell({ terms: data.hidden_terms, r: inside, c: i, total: h, title, bias: data.hidden_bias[i] });
      },
      operands: (i, c) => (c ? [[[hidden, i, 0]]] : [cellsOf(mlpInput, inside)]),
    });
    /** Show the hidden numbers of a word. @param {number} r */
    function lookInside(r) {
      inside = r;
      // Always two lines, so that no table moves while the pointer is on it.
      hidden.axes.replaceChildren(make("br"), `of “${shortWord(data.words[r])}”`);
      const values = data.hidden[r].map((h, i) => [h, data.activated[r][i]]);
      hidden.show({ rows: values.map((_, i) => String(i)), columns: ["before", "after GELU"], values });
    }
    const mlpOutput = arithmetic.table({
      name: "What the MLP adds",
      digits: 2,
      axes: "12 → 3",
      explain: (r, c) => {
        const title = ["The MLP’s output for ", ...of(r, `, number ${c}`)];
        const bias = data.mlp_output_bias[c];
        return dotCell({ terms: data.mlp_output_terms, r, c, total: data.mlp_output[r][c], title, bias });
      },
      operands: () => [columnOf(hidden, 1)],
    });
    const after = sumTable("… + MLP", "after", ["resid_mid", "mlp_output", residMid, mlpOutput]);
    /** @type {[Part, HeatTable[]][]} */
    const parts = [
      ["norm", [x, scaled, normed]],
      ["attention", [weights, attended]],
      ["add", [residMid]],
      ["norm_again", [mlpInput]],
      ["mlp", [mlpOutput, hidden]],
      ["add_again", [after]],
    ];
    const stopFollowing = lesson.diagram.follow(
      lesson.rung,
      parts.map(([part, tables]) => [part, tables[0].element]),
    );
    arithmetic.shown = (table, [r]) => {
      if (table !== hidden && r !== inside) lookInside(r);
      const part = parts.find(([, tables]) => tables.includes(table));
      if (part) lesson.diagram.mark(part[0]);
    };
    return {
      formula: formula(
        [
          "LayerNorm",
          "(",
          "x",
          ")",
          "=",
          fraction(row("x", "−", "mean"), root("variance", "+", "ε")),
          "· weight + bias",
        ],
        ["x", "→", "x", "+", "Attention", "(", "LayerNorm", "(", "x", ")", ")"],
        ["x", "→", "x", "+", "MLP", "(", "LayerNorm", "(", "x", ")", ")"],
        [
          "MLP",
          "(",
          "y",
          ")",
          "=",
          "GELU",
          "(",
          "y",
          sub("W", "1"),
          "+",
          sub("b", "1"),
          ")",
          sub("W", "2"),
          "+",
          sub("b", "2"),
        ],
      ),
      parts: {
        epsilon,
        scale: scale.element,
        x: x.element,
        scaled: scaled.element,
        normed: normed.element,
        weights: weights.element,
        attended: attended.element,
        residMid: residMid.element,
        mlpInput: mlpInput.element,
        hidden: hidden.element,
        mlpOutput: mlpOutput.element,
        after: after.element,
        ladder,
        vectors: vectors.element,
        whole: whole.element,
        said,
        joined: joined.element,
        curve,
      },
      explanation: arithmetic.element,
      update(found) {
        data = found;
        const [rows, columns] = [data.words, ["0", "1", "2"]];
        vectors.update(data);
        x.show({ rows, columns, values: data.x });
        weights.show({ rows, columns: rows, values: data.weights[0] });
        const secondHalf = { resid_mid: residMid, mlp_input: mlpInput, mlp_output: mlpOutput };
        const tables = { scaled, normed, attended, ...secondHalf, after };
        for (const [name, table] of /** @type {[Matrix, HeatTable][]} */ (Object.entries(tables))) {
          table.show({ rows, columns, values: data[name] });
        }
        lookInside(Math.min(inside, rows.length - 1));
        epsilon.textContent = effectOfEpsilon(data);
        whole.show(data.error);
        joined.show(data.joined_error);
        ladder.replaceChildren(lossLadder(data.ladder, lesson));
        said.textContent = howTheyWereTrained(data.ladder);
        curve.replaceChildren(activations(data.curve));
        arithmetic.update(normed, [1, 0]);
      },
      play() {
        const r = data.words.length - 1;
        /** @param {Matrix} values */
        const at = (values) => fixed(data[values][r][0], 2);
        return [
          { at: [x, r, 0], words: `“${data.words[r]}” enters the block with the number ${at("x")}.` },
          { at: [scaled, r, 0], words: `Times the slider, ${number(data.scale)}: it is now in the residual stream.` },
          { at: [normed, r, 0], words: "Attention reads a copy: minus the mean, divided by the standard deviation." },
          { at: [attended, r, 0], words: "With what it looks at in the other words, attention computes this." },
          { at: [residMid, r, 0], words: `It is added to the stream: ${at("scaled")} + ${at("attended")}.` },
          { at: [mlpInput, r, 0], words: "The MLP reads a copy too, normalised again." },
          { at: [hidden, 0, 1], words: "Its first layer makes twelve, and GELU raises the negative ones." },
          { at: [mlpOutput, r, 0], words: `From “${data.words[r]}” alone, the MLP computes this.` },
          {
            at: [after, r, 0],
            words: `Added again, ${at("resid_mid")} + ${at("mlp_output")}: the next block reads it.`,
          },
        ];
      },
      leave: stopFollowing,
    };
  },
};

/** How much smaller ε makes the word with the smallest variance. @param {Data["block"]} data */
function effectOfEpsilon({ variance, eps }) {
  const least = Math.min(...variance);
  if (least === 0) return ".";
  const percent = 100 * (1 - Math.sqrt(least / (least + eps)));
  const amount = percent < 0.01 ? "less than 0.01" : fixed(percent, 2);
  return ` and takes off ${amount}% at most.`;
}

const FULL_BAR = 3; // nats

/** The rung that explains what each model adds. @type {Record<string, { label: string, rung: number }>} */
const ADDED = {
  bigram: { label: "bigram model, half the steps of rung 3", rung: 3 },
  "one head": { label: "one causal head of 32 numbers", rung: 7 },
  "four heads": { label: "four heads of 8 instead", rung: 8 },
  MLP: { label: "+ MLP", rung: 9 },
  "residual and norm": { label: "+ residual stream and layer norm", rung: 9 },
  "four blocks": { label: "four such blocks", rung: 10 },
  "four bare blocks": { label: "four without residual stream and norm", rung: 9 },
};

/**
 * @param {Data["block"]["ladder"]} found
 * @param {{ rung: number, go: (rung: number) => void }} lesson
 */
function lossLadder({ models }, lesson) {
  const lines = models.map(({ name, held_out_loss: value }) => {
    const { label, rung } = ADDED[name];
    const link = make("a", { class: "hl-opens", href: `#learn/${rung}`, title: `Rung ${rung}` }, label);
    link.addEventListener("click", (event) => {
      event.preventDefault();
      lesson.go(rung);
    });
    return { label, value, link };
  });
  return bars("The loss ladder, measured here: nats per character, lower is better", lines, FULL_BAR, {
    format: (value) => fixed(value, 2),
  });
}

/** @param {Data["block"]["ladder"]} found */
const howTheyWereTrained = ({ steps, seed }) =>
  `The models of the loss ladder: their loss on the held-out tenth of tiny Shakespeare after ${number(steps)} steps ` +
  `of 32 windows of 8 characters, with vectors of 32 numbers and a learning rate of 0.001 (seed ${seed}). ` +
  "Without residual stream and norm, chance decides: with other seeds and processors the loss was 2.3 to 2.6.";

/** @param {{ x: number[], gelu: number[], relu: number[] }} curve */
const activations = ({ x, gelu, relu }) =>
  chart({
    label: "GELU and ReLU between −4 and 4",
    x: { from: x[0], to: String(x.at(-1)), count: x.length },
    lines: { GELU: gelu, "ReLU, for comparison": relu },
    xName: "hidden number",
    yName: "after the activation",
  });
