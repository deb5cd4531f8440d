// Rung 4: the average of the past, three ways.

import { formula, fraction, row, sub, sum } from "./formula.mjs";
import { Stamp, choice, controls, heading, paragraph, rowOf } from "./parts.mjs";
import { Unfolding, dotCell, named } from "./unfold.mjs";

export const averages = {
  name: "The average of the past",
  options: (isBook) => ({ lecture: isBook }),
  question: {
    ask: "In the matrix of weights, what do the numbers of row t add up to?",
    options: ["t", "1", "1 / (t + 1)"],
    right: 1,
    why: "Each of the t + 1 tokens so far has the weight 1 / (t + 1). Rows that add up to 1 are what makes it an average, and attention weights will keep that.",
  },
  build(lesson) {
    const example = choice({
      label: "numbers",
      options: { lecture: "8 random tokens", own: "the sentence" },
      value: lesson.options.lecture ? "lecture" : "own",
      change: (taken) => lesson.set({ lecture: taken === "lecture" }),
    });
    const stamp = new Stamp("the loop, the matrix product and the softmax");
    const unfolding = new Unfolding();
    let data;
    const explain = (values) => (r, c) =>
      dotCell({ terms: data.terms, r, c, total: data[values][r][c], title: [`Average up to `, named(data.words[r]), `, number ${c}: each weight of its row × that number of the token`] });
    const x = unfolding.heat({ name: "The tokens x", axes: "tokens × numbers", explain: (r, c) => explainToken(data, r, c) });
    const weights = unfolding.heat({ name: "Weights", axes: "this token ↓ takes from that token →", explain: (r, c) => explainWeight(data, r, c) });
    const masked = unfolding.heat({ name: "Equal scores, the future masked", axes: "before softmax", hole: "−∞", digits: 0, explain: (r, c) => explainScore(data, r, c) });
    const loop = unfolding.heat({ name: "1. By a loop", explain: explain("by_loop") });
    const matrix = unfolding.heat({ name: "2. By a matrix product", explain: explain("by_matrix") });
    const softmax = unfolding.heat({ name: "3. By a softmax", explain: explain("by_softmax") });
    return {
      text: [
        paragraph("The bigram model sees one token. The plainest way to hear from all the tokens before is to take their average. Written as a loop it is slow; as a product with a triangle of weights it is one step; and as a softmax of equal scores, with the future masked, it becomes something that can be taught: put scores that depend on the tokens in the place of the zeros, and this is attention."),
      ],
      formula: formula(
        [sub("y", "t"), "=", fraction("1", row("t", "+", "1")), sum(row("s", "≤", "t")), sub("x", "s")],
        ["y", "=", "softmax", "(", "masked zeros", ")", "x"],
      ),
      picture: [
        controls(example.element),
        rowOf(x.element, masked.element, weights.element),
        heading("Three ways"),
        rowOf(loop.element, matrix.element, softmax.element),
        stamp.element,
        unfolding.element,
      ],
      update(found) {
        data = found;
        example.show(data.lecture ? "lecture" : "own");
        const rows = data.words;
        const columns = data.x[0].map((_, i) => String(i));
        x.show({ rows, columns, values: data.x });
        weights.show({ rows, columns: rows, values: data.weights });
        masked.show({ rows, columns: rows, values: data.masked });
        for (const [heat, name] of [[loop, "by_loop"], [matrix, "by_matrix"], [softmax, "by_softmax"]]) heat.show({ rows, columns, values: data[name] });
        stamp.show(data.error);
        unfolding.renew(loop, [2, 0]);
      },
    };
  },
};

const explainToken = (data, r, c) => [paragraph("Number ", String(c), " of ", named(data.words[r]), ". All averages are made of these.")];

const explainScore = (data, r, c) => [
  c > r
    ? paragraph(named(data.words[c]), " comes after ", named(data.words[r]), ": its score is minus infinity, and exp of that is 0.")
    : paragraph(named(data.words[c]), " is not in the future of ", named(data.words[r]), ": its score is 0, like that of every other token so far."),
];

const explainWeight = (data, r, c) => [
  c > r
    ? paragraph(named(data.words[c]), " comes after ", named(data.words[r]), ": it gets no weight.")
    : paragraph(named(data.words[r]), ` hears from ${r + 1} ${r ? "tokens" : "token"}, each with the weight 1 / ${r + 1}.`),
];
