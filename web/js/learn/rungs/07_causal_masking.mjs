// Rung 7: a mask that the visitor may change, another way to mask, and dropout.

import { make } from "../../lib/dom.mjs";
import { counted, fixed, number, significant } from "../../lib/numbers.mjs";
import { Arithmetic, named } from "../../widgets/arithmetic.mjs";
import { formula, fraction, root, row, sub } from "../../widgets/formula.mjs";
import { Stamp } from "../../widgets/stamp.mjs";
import { content } from "../content/07_causal_masking.mjs";
import { choice, slider, paragraph } from "../widgets/elements.mjs";
import { looksMost } from "../widgets/steps.mjs";
import { changeNumbers, vectorsBar } from "../widgets/vectors_bar.mjs";
import { contextOf, lectureHead, makeTables } from "./07_mask_tables.mjs";
import { smallButton } from "../../widgets/controls.mjs";

/** @import { Rung } from "../rung.js" */
/** @import { Data, Named } from "../data.js" */
/** @import { HeatTable } from "../../widgets/heat_table.mjs" */
/** @typedef {Named<"causal-masking", (number | null)[][]>} Matrix */

const FACTORS = [1, 3, 10, 30, 100];
const MATRICES = { parameters: "those of rung 6, seed 123", linear: "linear layers, seed 789" };

/** @type {Rung<"causal-masking">} */
export const causalMasking = {
  ...content,
  key: "causal-masking",
  options: () => ({ kind: "parameters", factor: 1, dropout: 0.5, seed: 1, dropped: "weights", flipped: [] }),
  ofSentence: ["flipped"],
  own({ words, all_weights: all }) {
    if (words.length < 2) return null;
    const [a, b] = all[1];
    return {
      kind: "number",
      ask:
        `Before the mask, “${words[1]}” gives ${significant(a)} to “${words[0]}” and ${significant(b)} to itself. ` +
        `What weight does “${words[0]}” get once the future is masked? A fraction will do.`,
      right: a / (a + b),
      tolerance: 0.002,
      mistakes: [
        { number: b / (a + b), reply: `That is what “${words[1]}” gives itself.` },
        { number: a, reply: "That is its weight before the mask: now it shares what the hidden words had." },
        { number: a / b, reply: "Divide by the sum of the two weights, not by the other one." },
        { number: a + b, reply: "That is the sum of both: divide by it." },
      ],
      hint: "The two weights that are left must add up to 1: divide by their sum.",
      second: `Their sum is ${significant(a + b)}.`,
      why: `${significant(a)} / (${significant(a)} + ${significant(b)}).`,
    };
  },
  build(lesson) {
    const stamp = new Stamp("minus infinity before softmax, mask after softmax and renormalise");
    const arithmetic = new Arithmetic();
    /** @type {Data["causal-masking"]} */
    let data;
    const vectors = vectorsBar(lesson);
    const x = arithmetic.table({
      name: "The words x",
      digits: 2,
      axes: "words × 3",
      edit: changeNumbers(lesson, () => data),
      explain: (r, c) => [paragraph(`Number ${c} of `, named(data.words[r]), `: ${data.origin}.`)],
    });
    const tables = makeTables(arithmetic, () => data);
    tables.masked.table.addEventListener("click", (event) => {
      const place = tables.masked.cellOf(event.target);
      if (place && place[0] !== place[1]) flip(place);
    });
    const origin = paragraph();
    const matrices = choice({
      label: "W query and W key",
      options: MATRICES,
      value: lesson.options.kind,
      change: (key) => lesson.set({ kind: key }),
    });
    const factor = slider({
      label: "W query ×",
      values: FACTORS,
      value: lesson.options.factor,
      change: (value) => lesson.set({ factor: value }),
    });
    const hint = paragraph();
    const changed = make("span", { role: "status" });
    const back = smallButton("Reset the mask");
    back.addEventListener("click", () => lesson.set({ flipped: [] }));
    const batch = [0, 1].map((text) => contextOf(arithmetic, `Context vectors, text ${text}`, () => data));
    const same = new Stamp("the two texts of the batch");
    const lecture = lectureHead(arithmetic, () => data);
    const lectureShapes = make("p", { class: "hl-count" });
    const from = choice({
      label: "dropped from",
      options: { weights: "the attention weights", ones: "a matrix of ones" },
      value: lesson.options.dropped,
      change: (key) => lesson.set({ dropped: key }),
    });
    const dropout = slider({
      label: "dropout p",
      max: 0.9,
      step: 0.1,
      value: lesson.options.dropout,
      format: (value) => value.toFixed(1),
      change: (value) => lesson.set({ dropout: value }),
    });
    const drawAgain = () => lesson.set({ seed: lesson.options.seed + 1 });
    const again = smallButton("Draw again", drawAgain);
    const sums = make("p", { class: "hl-count", role: "status" });

    /** Show a key to a query, or hide it. @param {[query: number, key: number]} place */
    function flip(place) {
      const { flipped } = lesson.options;
      const rest = flipped.filter((/** @type {number[]} */ other) => String(other) !== String(place));
      lesson.set({ flipped: rest.length < flipped.length ? rest : [...flipped, place] });
    }

    function showMask() {
      const { words, mask } = data;
      const flips = mask.flatMap((keys, r) => keys.filter((shown, c) => Boolean(shown) !== c <= r));
      hint.hidden = words.length < 2;
      const onlyLast = " Or change the last word’s numbers: with the mask, only its row changes.";
      const always = "Click a masked score to hide or show a word, and compare that row’s weights.";
      hint.textContent = flips.length ? always : always + onlyLast;
      const ahead = words.findIndex((_, r) => mask[r][r + 1]);
      const copies =
        ahead < 0
          ? ""
          : ` “${words[ahead]}” sees “${words[ahead + 1]}”, which it has to predict: in training it would learn to ` +
            "copy it.";
      changed.textContent = flips.length
        ? `You have changed ${counted(flips.length, "cell")} of the mask.${copies}`
        : "";
      back.hidden = !flips.length;
    }

    return {
      formula: formula(
        [
          sub("w", row("i", "j")),
          "=",
          sub("softmax", "j"),
          "(",
          fraction(sub("s", row("i", "j")), root("head_dim")),
          ")",
        ],
        [sub("s", row("i", "j")), "=", "−∞", " where ", row("j", ">", "i")],
      ),
      parts: {
        vectors: vectors.element,
        origin,
        x: x.element,
        scores: tables.scores.element,
        mask: tables.mask.element,
        masked: tables.masked.element,
        hint,
        changed,
        back,
        all_weights: tables.all_weights.element,
        weights: tables.weights.element,
        matrices: matrices.element,
        factor: factor.element,
        cut: tables.cut.element,
        renormalised: tables.renormalised.element,
        stamp: stamp.element,
        added: tables.added.element,
        dropoutFormula: formula([
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
        ]),
        dropout: dropout.element,
        from: from.element,
        again,
        dropped: tables.dropped.element,
        drawn: tables.drawn.element,
        sums,
        batch: batch.map((table) => table.element),
        same: same.element,
        lectureShapes,
        lecture: lecture.element,
      },
      explanation: arithmetic.element,
      update(found) {
        data = found;
        const { words } = data;
        vectors.update(data);
        origin.textContent = originOf(data);
        x.show({ rows: words, columns: ["0", "1", "2"], values: data.x });
        batch.forEach((table, text) => table.show({ rows: words, columns: ["0", "1"], values: data.batch[text] }));
        same.show(data.batch_error);
        const places = Array.from({ length: 8 }, (_, i) => `t${i}`);
        lecture.show({ rows: places, columns: places, values: data.lecture.weights });
        const [into, out] = [data.lecture.x, data.lecture.out].map((shape) => `(${shape.join(", ")})`);
        lectureShapes.textContent =
          `In: ${into}, 4 texts of 8 tokens with 32 numbers. Out: ${out}, 16 numbers ` +
          `for each token. Shown: text 0.`;
        for (const [name, table] of /** @type {[Matrix, HeatTable][]} */ (Object.entries(tables))) {
          table.show({ rows: words, columns: words, values: data[name] });
        }
        dropout.update(data.dropout);
        const rowSums = Array.from(data.row_sums, (/** @type {number} */ sum) => fixed(sum, 2)).join(", ");
        from.show(data.dropped_from);
        sums.textContent = `Kept weights × ${number(data.keep_scale, 2)}. The rows now add up to ${rowSums}.`;
        stamp.show(data.error);
        showMask();
        arithmetic.update(tables.weights, [1, 0]);
      },
      play() {
        const { words, weights } = data;
        const [q, k] = looksMost(weights);
        const [query, key] = [words[q], words[k]];
        return [
          { at: [x, k, 0], words: `“${key}” comes with the number ${fixed(data.x[k][0], 2)}.` },
          { at: [tables.scores, q, k], words: `How well “${key}” matches what “${query}” looks for.` },
          {
            at: [tables.masked, q, k],
            words: `“${query}” may look at “${key}”, so the score stays. The hidden are −∞.`,
          },
          {
            at: [tables.weights, q, k],
            words:
              "Divided by √head_dim, then softmax over the row: exp of −∞ is 0, and " +
              `“${key}” gets ${fixed(weights[q][k], 2)}.`,
          },
        ];
      },
    };
  },
};

/** Where the scores are from. @param {Data["causal-masking"]} data */
function originOf({ kind, factor }) {
  const made =
    kind === "parameters"
      ? "The scores of rung 6, from the same random matrices (seed 123)"
      : "Scores from random linear layers (seed 789)";
  return `${made}${factor === 1 ? "" : `, with W query × ${factor}`}.`;
}
