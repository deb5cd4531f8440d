// Rung 5: self-attention without weights.

import { make } from "../look/dom.mjs";
import { formula, fraction, row, sub, sum } from "./formula.mjs";
import { fixed } from "./numbers.mjs";
import { Stamp, controls, heading, paragraph, rowOf, slider } from "./parts.mjs";
import { AXES, Unfolding, division, dotCell, looks, named, share } from "./unfold.mjs";

const FACTORS = [1, 2, 5, 10, 20, 50, 60, 80, 100, 200, 500, 1000];
/** An exponential may be long, or more than float32 can hold. */
const large = (value) => (value === null ? "∞" : value < 1e6 ? fixed(value) : value.toExponential(2));

export const plain = {
  name: "Self-attention without weights",
  options: { factor: 1 },
  question: {
    ask: "In the book's sentence, “journey” looks at every word. Which one, other than itself, gets the most of its attention?",
    options: ["“starts”, whose numbers are like its own", "“Your”, its neighbour", "“step”, the last word"],
    right: 0,
    why: "A dot product is large where two vectors point the same way, and (0.55, 0.87, 0.66) and (0.57, 0.85, 0.64) almost do. Where a word stands plays no part yet.",
  },
  build(lesson) {
    const stamp = new Stamp("softmax as it is written, and softmax that cannot overflow");
    const unfolding = new Unfolding();
    let data;
    const x = unfolding.heat({
      name: "The words x",
      axes: "words × 3 numbers",
      explain: (r, c) => [paragraph(`Number ${c} of `, named(data.words[r]), ": ", data.is_book ? "one that the book chose." : "its token embedding + its position embedding, as on rung 2.")],
    });
    const pair = (r, c) => looks(data.words[r], data.words[c]);
    const scores = unfolding.heat({
      name: "Attention scores",
      axes: AXES,
      explain: (r, c) => dotCell({ terms: data.score_terms, r, c, total: data.scores[r][c], title: ["Score: ", ...pair(r, c), ", one number after the other"] }),
    });
    const sums = unfolding.heat({
      name: "Plain normalisation",
      axes: "score / sum of the row",
      explain: (r, c) => [paragraph("Share: ", ...pair(r, c)), division("score / sum of the row", data.scores[r][c], data.sums[r], data.sum_normalised[r][c])],
    });
    const weights = unfolding.heat({
      name: "Attention weights",
      axes: "softmax of each row",
      explain: (r, c) => share({ terms: data.weight_terms, r, c, total: data.weights[r][c], title: ["Weight: ", ...pair(r, c)] }),
    });
    const context = unfolding.heat({
      name: "Context vectors",
      axes: "words × 3 numbers",
      explain: (r, c) => dotCell({ terms: data.context_terms, r, c, total: data.context[r][c], title: ["Context of ", named(data.words[r]), `, number ${c}: each attention weight × that number of the word`] }),
    });
    const negative = make("p", { class: "hl-problem" });
    const factor = slider({ label: "scores ×", values: FACTORS, value: lesson.options.factor, change: (value) => lesson.set({ factor: value }) });
    const naive = unfolding.heat({
      name: "Softmax as it is written",
      axes: "exp(s) / sum",
      explain: (r, c) => [
        paragraph("Weight: ", ...pair(r, c)),
        make(
          "div",
          { class: "hl-terms" },
          make("span", { class: "hl-term" }, make("small", {}, `exp(${fixed(data.larger[r][c])})`), make("span", {}, large(data.naive_terms.exponentials[r][c]))),
          make("span", { class: "hl-plus" }, "/"),
          make("span", { class: "hl-term" }, make("small", {}, "sum of the row's exponentials"), make("span", {}, large(data.naive_terms.sums[r]))),
          make("span", { class: "hl-total" }, "= ", make("output", {}, data.naive[r][c] === null ? "NaN" : fixed(data.naive[r][c]))),
        ),
      ],
    });
    const stable = unfolding.heat({
      name: "Stable softmax",
      axes: "exp(s − largest) / sum",
      explain: (r, c) => share({ terms: data.stable_terms, r, c, total: data.stable[r][c], title: ["Weight: ", ...pair(r, c)] }),
    });
    const overflow = make("p", { class: "hl-count", role: "status" });
    return {
      text: [
        paragraph("Now the weights of the average shall depend on the words. Each word is ", make("dfn", {}, "query"), ", ", make("dfn", {}, "key"), " and ", make("dfn", {}, "value"), " at once: the ", make("dfn", {}, "attention score"), " of two words is the dot product of their vectors, so words with similar vectors find each other. ", make("dfn", {}, "Softmax"), " makes positive ", make("dfn", {}, "attention weights"), " of a row that add up to 1, and with them the words are averaged to a ", make("dfn", {}, "context vector"), "."),
      ],
      formula: formula(
        ["score ", sub("s", row("i", "j")), "=", sub("x", "i"), "·", sub("x", "j")],
        ["weight ", sub("w", row("i", "j")), "=", fraction(row("exp", "(", sub("s", row("i", "j")), ")"), row(sum("k"), "exp", "(", sub("s", row("i", "k")), ")"))],
        ["context ", sub("z", "i"), "=", sum("j"), sub("w", row("i", "j")), sub("x", "j")],
      ),
      picture: [
        rowOf(x.element, scores.element, weights.element, context.element),
        heading("Why softmax and not a plain share?"),
        paragraph("Dividing by the sum gives shares too, but a negative score makes a negative share, and scores that add up to 0 make nonsense."),
        rowOf(sums.element),
        negative,
        stamp.element,
        heading("Why the stable form?"),
        paragraph("exp grows fast: above about 88 it is too large for a float32 number. Make the scores larger and see which form survives."),
        controls(factor.element),
        overflow,
        rowOf(naive.element, stable.element),
        unfolding.element,
      ],
      update(found) {
        data = found;
        const rows = data.words;
        const columns = ["0", "1", "2"];
        x.show({ rows, columns, values: data.x });
        scores.show({ rows, columns: rows, values: data.scores });
        sums.show({ rows, columns: rows, values: data.sum_normalised });
        weights.show({ rows, columns: rows, values: data.weights });
        context.show({ rows, columns, values: data.context });
        negative.textContent = data.negative ? "Some scores of this sentence are negative: look for shares below 0, or above 1." : "";
        factor.update(data.factor);
        naive.show({ rows, columns: rows, values: data.naive });
        stable.show({ rows, columns: rows, values: data.stable });
        const broken = data.naive.flat().includes(null);
        overflow.textContent = `Largest score ${fixed(data.largest, 2)}: ${broken ? "exp overflows, and infinity / infinity is NaN. The stable form holds." : "both forms agree."}`;
        stamp.show(data.error);
        unfolding.renew(scores, [1, 0]);
      },
    };
  },
};
