// Rung 4: the average of the past, three ways.

import { make } from "../../lib/dom.mjs";
import { fixed } from "../../lib/numbers.mjs";
import { Arithmetic, columnOf, dotCell, named, rowOf as cellsOf } from "../../widgets/arithmetic.mjs";
import { formula, fraction, row, sub, sum } from "../../widgets/formula.mjs";
import { ALL_THREE, Stamp } from "../../widgets/stamp.mjs";
import { choice, code, controls, heading, paragraph, remarks, rowOf } from "../widgets/elements.mjs";
import { changeNumbers, vectorsBar } from "../widgets/vectors_bar.mjs";

/** @import { Rung, Lesson } from "../rung.js" */
/** @import { Data, Named } from "../data.js" */
/** @import { HeatTable } from "../../widgets/heat_table.mjs" */
/** @typedef {Named<"averages", number[][]>} Matrix */
/** @import { Explain } from "../../widgets/arithmetic.mjs" */

/** @type {Rung<"averages">} */
export const averageOfThePast = {
  key: "averages",
  name: "The average of the past",
  learned: "A weighted average of the past is a product with a triangular matrix, which a masked softmax can produce.",
  options: () => ({ lecture: false }),
  question: {
    ask: "In the matrix of weights, what do the numbers of row t add up to?",
    options: ["t", "1", "1 / (t + 1)"],
    right: 1,
    why:
      "Each of the t + 1 tokens so far has the weight 1 / (t + 1). The result is an average because each row adds up " +
      "to 1. The same holds for attention weights.",
  },
  exercises: [
    {
      kind: "number",
      ask: "Three tokens have the numbers 2, 6 and 6. What is the average at the third token?",
      right: 4.6667,
      tolerance: 0.01,
      hint: "The third token averages all three: add them up and divide by how many there are.",
      why: "(2 + 6 + 6) / 3. The left column of the toy product computes this once each row is divided by its sum.",
    },
    {
      kind: "choice",
      ask: "What does an average of all tokens so far not tell you?",
      options: ["Which tokens there were", "In which order they came", "How many of each there were"],
      right: 1,
      hint: "Compare the averages of (2, 6) and of (6, 2).",
      why: "Reorder the past and its average stays the same. The vectors themselves have to carry the positions.",
    },
  ],
  own({ words, x, by_loop: average }) {
    if (words.length < 2) return null;
    const [a, b] = [x[0][0], x[1][0]];
    return {
      kind: "number",
      ask:
        `Number 0 is ${fixed(a)} for “${words[0]}” and ${fixed(b)} for “${words[1]}”. What is it in the average at ` +
        `“${words[1]}”?`,
      right: average[1][0],
      tolerance: 0.002,
      hint: "The average of the past includes the word itself: two words here, each with the weight 1/2.",
      why: `(${fixed(a)} + ${fixed(b)}) / 2.`,
    };
  },
  build(lesson) {
    const example = choice({
      label: "numbers",
      options: { lecture: "8 random tokens", own: "the sentence" },
      value: lesson.options.lecture ? "lecture" : "own",
      change: (key) => lesson.set({ lecture: key === "lecture" }),
    });
    const stamp = new Stamp("the loop, the matrix product and the softmax", false, ALL_THREE);
    const arithmetic = new Arithmetic();
    /** @type {Data["averages"]} */
    let data;
    /** @param {Matrix} values @returns {Explain} */
    const average = (values) => (r, c) => {
      const words = `, number ${c}: each weight of its row × that number of the token`;
      const title = ["Average up to ", named(data.words[r]), words];
      return dotCell({ terms: data.terms, r, c, total: data[values][r][c], title });
    };
    const vectors = vectorsBar(lesson);
    const toy = toyProduct(lesson);
    const edit = changeNumbers(lesson, () => data);
    const x = arithmetic.table({
      name: "The tokens x",
      axes: "tokens × numbers",
      explain: (r, c) => [paragraph(`Number ${c} of `, named(data.words[r]), ". All averages are made of these.")],
    });
    const weights = arithmetic.table({
      name: "Weights",
      axes: "this token ↓ takes from that token →",
      sums: true,
      operands: (r) => [cellsOf(masked, r)],
      explain: (r, c) => [explainWeight(data.words, r, c)],
    });
    const masked = arithmetic.table({
      name: "Equal scores, the future masked",
      axes: "before softmax",
      hole: "−∞",
      digits: 0,
      explain: (r, c) => [explainScore(data.words, r, c)],
    });
    /** @param {number} r @param {number} c */
    const operands = (r, c) => [cellsOf(weights, r), columnOf(x, c)];
    const ways = {
      by_loop: arithmetic.table({ name: "1. By a loop", explain: average("by_loop"), operands }),
      by_matrix: arithmetic.table({ name: "2. By a matrix product", explain: average("by_matrix"), operands }),
      by_softmax: arithmetic.table({ name: "3. By a softmax", explain: average("by_softmax"), operands }),
    };
    return {
      text: [
        paragraph(
          "The bigram model sees one token. The simplest way to use all earlier tokens as well is to take the ",
          "average. A loop computes it slowly; one product with a triangular matrix does the same. The softmax of ",
          "equal scores, with the future masked, gives the same triangle, and can be made to learn: replace the zeros ",
          "by scores that depend on the tokens, and it becomes attention.",
        ),
      ],
      formula: formula(
        [sub("y", "t"), "=", fraction("1", row("t", "+", "1")), sum(row("s", "≤", "t")), sub("x", "s")],
        ["y", "=", "softmax", "(", "masked zeros", ")", "x"],
      ),
      picture: [
        ...toy.elements,
        heading("The same for every token of a text"),
        controls(example.element),
        vectors.element,
        rowOf(x.element, masked.element, weights.element),
        heading("Three ways"),
        rowOf(...Object.values(ways).map((table) => table.element)),
        stamp.element,
        remarks(
          "What an average loses",
          "The order: swap two tokens of the past and nothing changes. That is why the vectors include positions.",
          "The importance: even if a token three places back decides everything, it counts as much as the others, " +
            "and with more tokens each one counts less. In the next rung, the weights depend on the tokens.",
          [
            "The three ways in code are a loop over ",
            code("x[:t + 1].mean(0)"),
            ", one product with a triangular matrix, and one softmax of masked zeros.",
          ],
        ),
        arithmetic.element,
      ],
      update(found) {
        data = found;
        example.show(data.lecture ? "lecture" : "own");
        vectors.element.hidden = data.lecture;
        if (!data.lecture) vectors.update(data);
        toy.update(data.toy);
        const rows = data.words;
        x.edit = data.lecture ? null : edit;
        const columns = Array.from(data.x[0], (_, i) => String(i));
        x.show({ rows, columns, values: data.x });
        weights.show({ rows, columns: rows, values: data.weights });
        masked.show({ rows, columns: rows, values: data.masked });
        for (const [name, table] of /** @type {[Matrix, HeatTable][]} */ (Object.entries(ways))) {
          table.show({ rows, columns, values: data[name] });
        }
        stamp.show(data.error);
        arithmetic.update(ways.by_loop, [2, 0]);
      },
      play() {
        const { words, x: values, weights: shares, by_loop: averages } = data;
        const last = words.length - 1;
        const [share, mean] = [fixed(shares[last][0]), fixed(averages[last][0])];
        return [
          { at: [x, 0, 0], words: `“${words[0]}” comes with the number ${fixed(values[0][0])}.` },
          { at: [masked, last, 0], words: `“${words[last]}” may look at it. Its score is 0, like all others.` },
          { at: [weights, last, 0], words: `Softmax: ${last + 1} equal scores, so each gets the weight ${share}.` },
          { at: [ways.by_loop, last, 0], words: `Weight × number, added up over all words so far: ${mean}.` },
          { at: [ways.by_matrix, last, 0], words: "The product of the two tables gives the same number," },
          { at: [ways.by_softmax, last, 0], words: "and so does the softmax. This one can learn." },
        ];
      },
    };
  },
};

/**
 * @param {string[]} words
 * @param {number} r
 * @param {number} c
 */
function explainScore(words, r, c) {
  const [query, key] = [named(words[r]), named(words[c])];
  if (c > r) return paragraph(key, " comes after ", query, ": its score is minus infinity, whose exponential is 0.");
  return paragraph(key, " is not after ", query, ": its score is 0, like that of every other token so far.");
}

/**
 * @param {string[]} words
 * @param {number} r
 * @param {number} c
 */
function explainWeight(words, r, c) {
  if (c > r) return paragraph(named(words[c]), " comes after ", named(words[r]), ": it gets no weight.");
  const tokens = r ? `${r + 1} tokens` : "1 token";
  return paragraph(named(words[r]), ` takes from ${tokens}, each with the weight 1 / ${r + 1}.`);
}

// The first half of rung 4: a product with ones, with a triangle of ones, and with a triangle whose rows add up to 1.

const MEANING = {
  ones: "every row adds up all rows of b",
  tril: "each row adds up the rows of b so far",
  normalised: "each row averages the rows of b so far",
};

/** @param {Lesson} lesson */
function toyProduct(lesson) {
  const arithmetic = new Arithmetic();
  /** @type {Data["averages"]["toy"]} */
  let data;
  const kind = choice({
    label: "a is",
    options: { ones: "all ones", tril: "a triangle of ones", normalised: "a triangle, rows / their sums" },
    value: lesson.options.toy ?? "normalised",
    change: (toy) => lesson.set({ toy }),
  });
  const [a, b] = ["a", "b"].map((name) =>
    arithmetic.table({
      name,
      axes: name === "a" ? "3 × 3" : "3 × 2",
      sums: name === "a",
      explain: (r, c) => [
        paragraph(
          name === "a" ? explainToyWeight(data.kind, r, c) : `Number ${c} of token ${r}, drawn at random (seed 42).`,
        ),
      ],
    }),
  );
  const product = arithmetic.table({
    name: "a · b",
    explain: (r, c) => {
      const title = [`Row ${r} of a × column ${c} of b: `, MEANING[/** @type {keyof typeof MEANING} */ (data.kind)]];
      return dotCell({ terms: data.terms, r, c, total: data.product[r][c], title });
    },
    operands: (r, c) => [cellsOf(a, r), columnOf(b, c)],
  });
  return {
    elements: [
      heading("A product that averages"),
      paragraph(
        code("b"),
        " holds three tokens with two numbers each. A product with ones adds them up; with a triangle of ones it adds ",
        "up those so far; and with rows that add up to 1 it averages them. Attention does just that, with better ",
        "weights.",
      ),
      controls(kind.element),
      rowOf(a.element, b.element, product.element),
      make("div", {}, arithmetic.element),
    ],
    /** @param {Data["averages"]["toy"]} found */
    update(found) {
      data = found;
      kind.show(data.kind);
      const [tokens, numbers] = [
        ["0", "1", "2"],
        ["0", "1"],
      ];
      a.show({ rows: tokens, columns: tokens, values: data.a });
      b.show({ rows: tokens, columns: numbers, values: data.b });
      product.show({ rows: tokens, columns: numbers, values: data.product });
      arithmetic.update(product, [2, 0]);
    },
  };
}

/** @param {string} kind @param {number} r @param {number} c */
function explainToyWeight(kind, r, c) {
  if (kind === "ones") return "1: every token counts once.";
  if (c > r) return `0: token ${c} comes after token ${r}.`;
  return kind === "tril" ? "1: this token is not after the row’s own." : `1 / ${r + 1}: one of ${r + 1} so far.`;
}
