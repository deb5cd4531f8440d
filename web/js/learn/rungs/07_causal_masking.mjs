// Rung 7: a mask that the visitor may change, another way to mask, and dropout.

import { make } from "../../lib/dom.mjs";
import { counted, fixed, number, significant } from "../../lib/numbers.mjs";
import { Arithmetic, named } from "../../widgets/arithmetic.mjs";
import { formula, fraction, root, row, sub } from "../../widgets/formula.mjs";
import { Stamp } from "../../widgets/stamp.mjs";
import {
  choice,
  slider,
  code,
  controls,
  heading,
  paragraph,
  remarks,
  rowOf,
  term,
  deeper,
} from "../widgets/elements.mjs";
import { looksMost } from "../widgets/play.mjs";
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
  key: "causal-masking",
  name: "Causal masking",
  learned: "No token looks ahead: minus infinity before the softmax, and each row still adds up to 1.",
  options: () => ({ kind: "parameters", factor: 1, dropout: 0.5, seed: 1, dropped: "weights", flipped: [] }),
  ofSentence: ["flipped"],
  prediction: {
    ask: "What is the first word’s attention weight on itself, once the future is masked?",
    options: ["The same as before", "Exactly 1", "1 divided by the number of words"],
    right: 1,
    why: "It has nothing else to look at, and a row adds up to 1.",
  },
  exercises: [
    {
      kind: "choice",
      ask: "The first row of causal attention weights is 1, 0, 0, … What is the first token’s context vector?",
      options: ["The average of all values", "Its own value", "Zero"],
      right: 1,
      hint: "A context vector is the weighted average of the values, and here only one weight is not 0.",
      why: "All of its weight is on itself.",
    },
    {
      kind: "choice",
      ask: "A model is trained while each word may also look at the next one. What happens?",
      options: [
        "Its loss falls towards 0, and it cannot write",
        "It learns faster and writes better",
        "Nothing changes",
      ],
      right: 0,
      hint: "Let the first word look at the second, in the masked scores above. What does it have to predict?",
      why: "It learns to copy the next word instead of predicting it. While it writes, there is no next word to copy.",
    },
    {
      kind: "choice",
      further: true,
      ask:
        "Find the mistake: instead of using masked_fill, someone adds triu(ones, 1) × −∞ to the scores. What happens " +
        "to the scores of the past?",
      options: ["They stay the same", "They become 0", "They become NaN"],
      right: 2,
      hint: "Below the diagonal, triu leaves zeros. What is 0 × ∞? See “A way that fails”.",
      why:
        "The zeros below the diagonal are multiplied by infinity too, and 0 × ∞ is not a number. Adding is fine if " +
        "the mask is filled, not multiplied: with 0 where a word may look and −∞ elsewhere.",
    },
    {
      kind: "number",
      further: true,
      ask: "With dropout of p = 0.2, by what are the remaining weights multiplied?",
      right: 1.25,
      tolerance: 0.001,
      hint: "On average a fraction of 1 − p is kept. What restores the sum?",
      why: "1 / (1 − 0.2), so that a row still adds up to 1 on average.",
    },
  ],
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
      hint: "The two weights that are left must add up to 1: divide by their sum.",
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
      text: [
        paragraph(
          "A model that predicts the next word must not see it. ",
          term("Causal"),
          " attention hides the keys j that come after the query i: their scores become minus infinity, whose exp is ",
          "0, and softmax shares the whole weight among the rest.",
        ),
      ],
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
      picture: [
        vectors.element,
        origin,
        rowOf(x.element, tables.scores.element, tables.masked.element),
        hint,
        controls(changed, back),
        rowOf(tables.all_weights.element, tables.weights.element),
        deeper(
          lesson,
          "other matrices, mask after the softmax, a way that fails, dropout, batches, the lecture’s head",
          heading("Other matrices"),
          paragraph(
            "With linear layers and Raschka’s sentence, the numbers are those of his book. A larger W query enlarges ",
            "all differences between scores.",
          ),
          controls(matrices.element, factor.element),
          heading("Another way: mask after the softmax"),
          paragraph(
            "Take the weights without the mask, set the hidden ones to 0, and divide each row by the sum of the rest. ",
            "The weights are the same. GPTs set scores to minus infinity, because it is one step.",
          ),
          rowOf(tables.cut.element, tables.renormalised.element),
          stamp.element,
          heading("A way that fails"),
          paragraph(
            "A mask may also be added to the scores: 0 where a word may look, minus infinity elsewhere, as ",
            code("torch.full((T, T), -torch.inf).triu(1)"),
            " makes it. But made with ",
            code("torch.triu(torch.ones(T, T), 1) * -torch.inf"),
            " it fails: the zeros on and below the diagonal are multiplied by infinity as well.",
          ),
          rowOf(tables.added.element),
          heading("Dropout"),
          paragraph(
            "In training, some attention weights are dropped at random, so that the model does not rely on any single ",
            "word. The rest are multiplied by 1 / (1 − p), so that on average a row stays the same.",
          ),
          formula([
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
          controls(dropout.element, from.element, again),
          rowOf(tables.dropped.element, tables.drawn.element),
          sums,
          remarks(
            "Worth knowing about dropout",
            "Here it is applied to the attention weights, after the softmax, which is the usual place. It may also " +
              "be applied after the values are averaged. Before the softmax it would not remove a word: a score of 0 " +
              "still gets a weight.",
            "It is used only in training: a model that writes drops nothing. GPT-2 was trained with 0.1; values of " +
              "0.1 to 0.2 are usual, and many large models use none. 0.5 is only there to make the effect easy to see.",
            "Which weights are dropped depends on the random numbers, which differ between operating systems and " +
              "versions even with the same seed. So your own mask may differ from a printed one: compare the values, " +
              "which are 0 or twice the weight, and not their positions.",
          ),
          heading("Everything as a class, on a batch"),
          paragraph(
            code("CausalAttention"),
            " (seed 123, without dropout) reads several texts at once. Two copies of the sentence are a batch of ",
            "shape ",
            code("(2, T, 3)"),
            "; both get the same context vectors, because texts do not influence each other.",
          ),
          rowOf(...batch.map((table) => table.element)),
          same.element,
          remarks(
            "How the class keeps its mask",
            [
              "The mask is made once, for the longest text, with ",
              code("register_buffer"),
              ": it moves to the GPU with the model, but it is not a weight and is not trained.",
            ],
            [
              "A shorter text uses only the corner, ",
              code("mask[:T, :T]"),
              ". ",
              code("masked_fill_"),
              ", with an underscore, fills the scores in place instead of copying them.",
            ],
            [
              "The models on this page do not store a mask: a single new token has no future, and for longer inputs ",
              "the mask is made when it is needed.",
            ],
          ),
          heading("One head from the lecture on tiny Shakespeare"),
          paragraph(
            "The tokens are random, with 32 numbers each, and the head has 16 (seed 1337). Its scores are not divided ",
            "by √16 yet, so the weights are sharper than they should be.",
          ),
          lectureShapes,
          rowOf(lecture.element),
        ),
        arithmetic.element,
      ],
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
          { at: [x, k, 0], words: `“${key}” comes with the number ${fixed(data.x[k][0])}.` },
          { at: [tables.scores, q, k], words: `How well “${key}” matches what “${query}” looks for.` },
          {
            at: [tables.masked, q, k],
            words: `“${query}” may look at “${key}”, so the score stays. The hidden are −∞.`,
          },
          {
            at: [tables.weights, q, k],
            words:
              "Divided by √head_dim, then softmax over the row: exp of −∞ is 0, and " +
              `“${key}” gets ${fixed(weights[q][k])}.`,
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
