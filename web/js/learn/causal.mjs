// Rung 7: no looking ahead, two ways, and dropout.

import { make } from "../look/dom.mjs";
import { formula, fraction, root, row, sub } from "./formula.mjs";
import { fixed, number } from "./numbers.mjs";
import { Stamp, controls, heading, paragraph, rowOf, slider } from "./parts.mjs";
import { AXES, Unfolding, division, dotCell, looks, named, share } from "./unfold.mjs";

export const causal = {
  name: "Causal masking and dropout",
  options: { dropout: 0.5, seed: 1 },
  question: {
    ask: "What is the first word's attention weight on itself, once the future is masked?",
    options: ["The same as before", "Exactly 1", "1 divided by the number of words"],
    right: 1,
    why: "It has nobody else to look at, and a row adds up to 1.",
  },
  build(lesson) {
    const stamp = new Stamp("mask after softmax and renormalise, minus infinity before softmax");
    const unfolding = new Unfolding();
    let data;
    const pair = (r, c) => looks(data.words[r], data.words[c]);
    const future = (r, c) => [paragraph(named(data.words[c]), " comes after ", named(data.words[r]), ": the mask hides it.")];
    const scoreCell = (r, c) => dotCell({ terms: data.score_terms, r, c, total: data.scores[r][c], title: ["Score: ", ...pair(r, c)] });
    const heats = {
      scores: unfolding.heat({ name: "Attention scores", axes: AXES, explain: scoreCell }),
      all_weights: unfolding.heat({ name: "1a. Softmax over all keys", axes: "the future is still in it", explain: (r, c) => share({ terms: data.all_terms, r, c, total: data.all_weights[r][c], title: ["Weight: ", ...pair(r, c)] }) }),
      cut: unfolding.heat({ name: "1b. The future set to 0", axes: "rows no longer add up to 1", explain: (r, c) => (c > r ? future(r, c) : [paragraph("Kept: ", ...pair(r, c), ` with ${fixed(data.cut[r][c])}. What is left of the row adds up to ${fixed(data.left[r])}.`)]) }),
      renormalised: unfolding.heat({ name: "1c. Divided by what is left", axes: "attention weights", explain: (r, c) => (c > r ? future(r, c) : [paragraph("Weight: ", ...pair(r, c)), division("weight / what is left of the row", data.cut[r][c], data.left[r], data.renormalised[r][c])]) }),
      masked: unfolding.heat({ name: "2a. Scores, the future at −∞", axes: "before softmax", hole: "−∞", explain: (r, c) => (c > r ? future(r, c) : scoreCell(r, c)) }),
      weights: unfolding.heat({ name: "2b. Softmax", axes: "attention weights", explain: (r, c) => share({ terms: data.weight_terms, r, c, total: data.weights[r][c], title: ["Weight: ", ...pair(r, c)] }) }),
      dropped: unfolding.heat({ name: "After dropout", axes: "in training only", explain: (r, c) => [paragraph(...pair(r, c), ": ", data.dropped[r][c] === 0 ? (data.weights[r][c] === 0 ? "nothing there to drop." : `the weight ${fixed(data.weights[r][c])} was dropped.`) : `the weight ${fixed(data.weights[r][c])} was kept, × ${number(data.keep_scale)} = ${fixed(data.dropped[r][c])}.`)] }),
    };
    const dropout = slider({ label: "dropout p", max: 0.9, step: 0.1, value: lesson.options.dropout, say: (value) => value.toFixed(1), change: (value) => lesson.set({ dropout: value }) });
    const again = make("button", { type: "button", class: "hs-small", onclick: () => lesson.set({ seed: lesson.options.seed + 1 }) }, "Draw again");
    const sums = make("p", { class: "hl-count", role: "status" });
    return {
      text: [
        paragraph("A model that shall guess the next word must not see it. ", make("dfn", {}, "Causal"), " attention hides the keys after the query. One can take the softmax first, set the future to 0 and divide each row by what is left; or set the future's scores to minus infinity, whose exp is 0, and take the softmax once. Both give the same weights. The scores are those of the linear layers of the rung before."),
      ],
      formula: formula(
        [sub("w", row("i", "j")), "=", "softmax", "(", fraction(sub("s", row("i", "j")), root("head_dim")), ")", ", ", sub("s", row("i", "j")), "=", "−∞", " where ", row("j", ">", "i")],
        ["dropout", "(", "w", ")", "=", fraction("w", row("1", "−", "p")), " with probability ", row("1", "−", "p"), ", else ", "0"],
      ),
      picture: [
        rowOf(heats.scores.element),
        heading("First way: softmax, mask, renormalise"),
        rowOf(heats.all_weights.element, heats.cut.element, heats.renormalised.element),
        heading("Second way: minus infinity, softmax"),
        rowOf(heats.masked.element, heats.weights.element),
        stamp.element,
        heading("Dropout"),
        paragraph("In training, some attention weights are dropped at random, so that no word is relied on alone. Those kept are made larger by 1 / (1 − p), so that on average a row stays what it was."),
        controls(dropout.element, again),
        rowOf(heats.dropped.element),
        sums,
        unfolding.element,
      ],
      update(found) {
        data = found;
        for (const [name, heat] of Object.entries(heats)) heat.show({ rows: data.words, columns: data.words, values: data[name] });
        dropout.update(data.dropout);
        sums.textContent = `Kept weights × ${number(data.keep_scale, 2)}. The rows now add up to ${data.row_sums.map((sum) => fixed(sum, 2)).join(", ")}.`;
        stamp.show(data.error);
        unfolding.renew(heats.renormalised, [1, 0]);
      },
    };
  },
};
