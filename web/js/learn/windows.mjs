// Rung 2: inputs and targets, and what a token and its position become.

import { make } from "../look/dom.mjs";
import { counted } from "../look/words.mjs";
import { formula, row, sub } from "./formula.mjs";
import { word } from "./heat.mjs";
import { code, controls, heading, paragraph, rowOf, slider } from "./parts.mjs";
import { Unfolding, dotProduct, named } from "./unfold.mjs";

const LONGEST = 10;

export const windows = {
  name: "The sliding window",
  options: { context_length: 4, stride: 1 },
  question: {
    ask: "A window of 4 tokens: how many next tokens can a model practise on with it?",
    options: ["1", "4", "16"],
    right: 1,
    why: "One for each position: after the first token, after the first two, and so on. That is why the targets are as long as the inputs.",
  },
  build(lesson) {
    const change = (name) => (value) => lesson.set({ [name]: value });
    const length = slider({ label: "context_length", min: 1, max: LONGEST, value: lesson.options.context_length, change: change("context_length") });
    const stride = slider({ label: "stride", min: 1, max: LONGEST, value: lesson.options.stride, change: change("stride") });
    const said = make("p", { class: "hl-count", role: "status" });
    const list = make("ol", { class: "hl-windows" });
    const vocabulary = make("p", { class: "hl-spelled" });
    const unfolding = new Unfolding();
    let data;
    const embedding = (name) => unfolding.heat({ name, axes: "tokens × 3 numbers", explain });
    const explain = (r, c) =>
      dotProduct({
        title: [named(data.words[r]), ` at position ${r}, number ${c}: token embedding + position embedding`],
        names: ["token", "position"],
        products: [data.token[r][c], data.position[r][c]],
        total: data.x[r][c],
      });
    const [token, position, x] = [embedding("Token embedding"), embedding("Position embedding"), embedding("Their sum")];
    return {
      text: [
        paragraph("A GPT learns to guess the next token. A long text is cut into windows of ", code("context_length"), " tokens, one every ", code("stride"), " tokens. The ", make("dfn", {}, "targets"), " are the same windows, one token later: at each position the model sees what is above and to the left, and must guess what is below."),
        paragraph("An id says nothing but which row of a table to take. That row, the token embedding, is added to a row that stands for the place, the position embedding. Both tables are learned; here they are fresh and random (seed 123)."),
      ],
      formula: formula([sub("x", "t"), "=", row(sub("E", row("id", "(", "t", ")")), "+", sub("P", "t"))]),
      picture: [
        heading("Windows over your sentence"),
        controls(length.element, stride.element),
        said,
        list,
        heading("From ids to vectors"),
        paragraph("The words of your sentence, sorted, are the vocabulary:"),
        vocabulary,
        rowOf(token.element, position.element, x.element),
        paragraph("A trained GPT does the same with hundreds of numbers for each token. In the next rungs each of your words is its three numbers on the right; the book's sentence has three numbers that the book chose."),
        unfolding.element,
      ],
      update(found) {
        data = found;
        vocabulary.replaceChildren(...data.vocabulary.map(([text, id]) => make("span", { class: "hl-word" }, make("b", {}, word(text)), make("small", {}, ` ${id} `))));
        const left = data.vocab_size - data.vocabulary.length;
        if (left) vocabulary.append(`… and ${left} more`);
        const columns = ["0", "1", "2"];
        token.show({ rows: data.words, columns, values: data.token });
        position.show({ rows: data.words.map((_, i) => `position ${i}`), columns, values: data.position });
        x.show({ rows: data.words, columns, values: data.x });
        unfolding.renew(x, [0, 0]);
        said.classList.toggle("hl-problem", Boolean(data.problem));
        if (data.problem) {
          said.textContent = data.problem;
          list.replaceChildren();
          return;
        }
        length.update(data.context_length, Math.min(LONGEST, data.n_words - 1));
        const n = data.n_windows;
        said.textContent = `${counted(n, "window")} of ${data.context_length} from ${data.n_words} tokens`;
        list.replaceChildren(...data.windows.map(window_));
        if (n > data.windows.length) list.append(make("li", { class: "hl-more" }, `… and ${n - data.windows.length} more`));
      },
    };
  },
};

/** Inputs above their targets, each token with its id. */
function window_({ inputs, targets }, i) {
  const line = (name, tokens) =>
    make("tr", {}, make("th", { scope: "row" }, name), ...tokens.map(({ id, text }) => make("td", {}, make("span", {}, word(text)), make("small", {}, id))));
  const body = make("tbody", {}, line("inputs", inputs), line("targets", targets));
  return make("li", {}, make("div", { class: "hl-scroll" }, make("table", { class: "hl-window", "aria-label": `Window ${i}` }, body)));
}
