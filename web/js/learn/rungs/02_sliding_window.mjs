// Rung 2: inputs and targets, and what a token and its position become.

import { make, setFlag } from "../../lib/dom.mjs";
import { clamp, counted, number } from "../../lib/numbers.mjs";
import { ending } from "../../lib/words.mjs";
import { Arithmetic, dotProduct, named } from "../../widgets/arithmetic.mjs";
import { formula, row, sub } from "../../widgets/formula.mjs";
import { shortWord } from "../../widgets/heat_table.mjs";
import {
  choice,
  slider,
  defined,
  code,
  controls,
  heading,
  paragraph,
  remarks,
  rowOf,
  term,
  deeper,
} from "../widgets/elements.mjs";
import { makeCell, makeTable } from "../../widgets/table.mjs";

/** @import { Rung } from "../rung.js" */
/** @import { Data } from "../data.js" */

// The first ids of The Verdict, the book's training text, in GPT-2's byte pairs.
const VERDICT = [
  40, 367, 2885, 1464, 1807, 3619, 402, 271, 10899, 2138, 257, 7026, 15632, 438, 2016, 257, 922, 5891, 1576, 438, 568,
  340, 373, 645, 1049, 5975, 284, 502, 284, 3285, 326, 11, 287, 262, 6001, 286, 465, 13476, 11, 339, 550, 5710, 465,
  12036, 11, 6405, 257, 5527, 27075, 11,
];

const MAX_WINDOW = 10; // tokens of a window

/** @type {Rung<"windows">} */
export const slidingWindow = {
  key: "windows",
  name: "Windows and vectors",
  learned:
    "Windows and the same windows shifted by one token are the training data: the target is always what comes next.",
  options: () => ({ context_length: 4, stride: 1, batch_size: 2, shuffle: false, drop_last: true }),
  choices: () => ({ example: 3, batch: 0 }),
  prediction: {
    ask: "How many next tokens can a model practise on with a window of 4 tokens?",
    options: ["1", "4", "16"],
    right: 1,
    why:
      "One for each position: after the first token, after the first two, and so on. That is why the targets are as " +
      "long as the inputs.",
  },
  exercises: [
    {
      kind: "number",
      further: true,
      ask: "A text has 10 tokens, context_length is 4 and the stride is 2. How many windows are there?",
      right: 3,
      tolerance: 0,
      hint: "Write down where each window starts: 0, 2, 4, … Each needs 4 inputs and one token after them.",
      why:
        "A window needs 4 inputs and one more token as the last target. Starts 0, 2 and 4 leave room for that; " +
        "start 6 would need an eleventh token.",
    },
    {
      kind: "choice",
      further: true,
      ask: "What is the drawback of a stride of 1 instead of context_length?",
      options: [
        "Tokens are skipped",
        "Nearly the same windows recur again and again, which makes overfitting more likely",
        "The targets no longer fit the inputs",
      ],
      right: 1,
      hint: "Set the stride above to 1 and compare neighbouring windows: how many of their inputs do they share?",
      why: "With windows of 4, each token is an input up to four times: more batches, but hardly any new text in them.",
    },
    {
      kind: "choice",
      ask: "Why is a position embedding added to the token embedding?",
      options: [
        "So that the same word has a different vector at each position",
        "So that all vectors have the same length",
        "So that rare words get larger numbers",
      ],
      right: 0,
      hint: "Without it, how would the vectors of the same word at two positions differ?",
      why: "Attention compares vectors. Without positions, those of a word are the same wherever it stands.",
    },
    {
      kind: "number",
      ask: "Find the mistake: notes show 4 rows of inputs and 5 rows of targets. How many rows of targets are right?",
      right: 4,
      tolerance: 0,
      hint: "Each window has its own targets: the same tokens, shifted by one.",
      why: "Inputs and targets have the same shape, here 4 rows each: there is one target for every input token.",
    },
  ],
  own: ({ n_words: n, context_length: length, stride, n_windows: windows }) =>
    windows === undefined
      ? null
      : {
          kind: "number",
          ask:
            `Your sentence has ${counted(n, "token")}. How many windows of ${length} with a stride of ${stride} does ` +
            "it give?",
          right: windows,
          tolerance: 0,
          hint: `The last window must start early enough for ${length} inputs and one target more.`,
          why: `Windows start at 0, ${stride}, … up to ${number(n - length - 1)} at most.`,
        },
  build(lesson) {
    /** @param {"context_length" | "stride"} name */
    const setting = (name) =>
      slider({
        label: name,
        min: 1,
        max: MAX_WINDOW,
        value: lesson.options[name],
        change: (value) => lesson.set({ [name]: value }),
      });
    const [length, stride] = [setting("context_length"), setting("stride")];
    const batchSize = slider({
      label: "batch_size",
      min: 1,
      max: 8,
      value: lesson.options.batch_size,
      change: (value) => lesson.set({ batch_size: value }),
    });
    const order = choice({
      label: "order",
      options: { kept: "as they come", shuffled: "shuffled" },
      value: lesson.options.shuffle ? "shuffled" : "kept",
      change: (key) => lesson.set({ shuffle: key === "shuffled" }),
    });
    const last = choice({
      label: "an incomplete last batch",
      options: { dropped: "is dropped", kept: "is kept" },
      value: lesson.options.drop_last ? "dropped" : "kept",
      change: (key) => lesson.set({ drop_last: key === "dropped" }),
    });
    const status = make("p", { class: "hl-count", role: "status" });
    const list = new WindowList(lesson.kept);
    const batches = batchList(lesson.kept);
    const vocabulary = make("p", { class: "hl-spelled" });
    const arithmetic = new Arithmetic();
    /** @type {Data["windows"]} */
    let data;
    const token = arithmetic.table({
      name: "Token embedding",
      axes: "tokens × 3 numbers",
      explain: (r, c) => [
        paragraph(
          named(data.words[r]),
          ` has the id ${data.ids[r]}: this is number ${c} in row ${data.ids[r]} of the table of token embeddings, ` +
            `which has ${counted(data.vocab_size, "row")}. Nothing is computed: the row is looked up.`,
        ),
      ],
    });
    const position = arithmetic.table({
      name: "Position embedding",
      axes: "positions × 3 numbers",
      explain: (r, c) => [
        paragraph(
          `Number ${c} in row ${r} of the table of position embeddings, regardless of the token at that position.`,
        ),
      ],
    });
    const x = arithmetic.table({
      name: "Their sum",
      axes: "what the model reads",
      explain: (r, c) =>
        dotProduct({
          title: [named(data.words[r]), ` at position ${r}, number ${c}: token embedding + position embedding`],
          names: ["token", "position"],
          products: [data.token[r][c], data.position[r][c]],
          total: data.x[r][c],
        }),
      operands: (r, c) => [[[token, r, c]], [[position, r, c]]],
    });

    function showWindows() {
      status.classList.toggle("hl-problem", Boolean(data.problem));
      if (data.problem) {
        status.textContent = data.problem;
        list.clear();
        return;
      }
      length.update(data.context_length, Math.min(MAX_WINDOW, data.n_words - 1));
      const { n_windows: n = 0, context_length: most, n_words: of } = data;
      status.textContent = `${counted(n, "window")} of ${most} from ${counted(of, "token")}`;
      list.update(/** @type {Required<Data["windows"]>} */ (data));
    }

    function showVocabulary() {
      const entries = data.vocabulary;
      const words = entries.map(([text, id]) =>
        make("span", { class: "hl-word" }, make("b", {}, shortWord(text)), make("small", {}, ` ${id} `)),
      );
      vocabulary.replaceChildren(...words);
      const left = data.vocab_size - entries.length;
      if (left) vocabulary.append(`… and ${number(left)} more`);
    }

    return {
      text: [
        paragraph(
          "A GPT needs two things from a text: exercises to learn from, and numbers to compute with. It gets the ",
          "exercises from windows, and the numbers as vectors.",
        ),
      ],
      formula: formula([row("target", "(", "t", ")"), "=", row("id", "(", "t", "+", "1", ")")]),
      picture: [
        heading("1. Windows: what it learns from"),
        paragraph(
          "The task is to predict the next token, so any text will do. It is cut into windows of ",
          code("context_length"),
          " tokens, one starting every ",
          code("stride"),
          " tokens. The ",
          term("targets"),
          " are the same windows, one token later: at each position the model sees the inputs up to there and ",
          "has to predict the target below.",
        ),
        controls(length.element, stride.element),
        status,
        ...list.elements,
        heading("2. Vectors: what it computes with"),
        rowOf(
          make(
            "div",
            {},
            paragraph(
              "An id is only an index. Each gets a row of numbers that can be learned, its ",
              term("token embedding"),
              ". A row for its position, the ",
              term("position embedding"),
              ", is added: without it, a token would have the same vector everywhere. Here both tables are random (",
              defined("seed"),
              " 123).",
            ),
          ),
          formula([sub("x", "t"), "=", row(sub("E", row("id", "(", "t", ")")), "+", sub("P", "t"))]),
        ),
        paragraph("The vocabulary, your sentence’s words and marks, sorted:"),
        vocabulary,
        paragraph("Your sentence as one window:"),
        rowOf(token.element, position.element, x.element),
        deeper(
          lesson,
          "windows into batches, the sizes of a real model",
          remarks(
            "Pretraining, and the choice of the stride",
            "This is how a GPT is pretrained: on texts that nobody has labelled, because the next token is the " +
              "label. Afterwards it can be fine-tuned on less data, to follow instructions or to classify mail.",
            [
              "A small stride repeats nearly the same windows many times: more batches, but hardly more to learn " +
                "from, which makes ",
              defined("overfitting"),
              " more likely. A stride of context_length uses every token as an input once.",
            ],
          ),
          heading("Windows into batches"),
          paragraph(
            "Several windows are read at once: a batch has the shape ",
            code("(batch_size, context_length)"),
            ". Shuffling keeps neighbouring windows out of the same batch. An incomplete last batch is often dropped, ",
            "because an update from only a few windows is noisy. The numbers are those of the windows above, counted ",
            "from 0.",
          ),
          controls(batchSize.element, order.element, last.element),
          ...batches.elements,
          paragraph(
            "Positions are counted from 0 in each window, so a word gets a different position vector in another one. ",
            "A trained GPT does the same with hundreds of numbers for each token. Positions return on rung 10; the ",
            "numbers of rungs 4 to 9 have none, unless you choose “random” there, which takes the sums above. Those ",
            "of Raschka’s sentence come from chapter 3 of Sebastian Raschka’s “Build a Large Language Model (From ",
            "Scratch)”, the book that these rungs follow; those of your own words, from a trained model.",
          ),
          remarks(
            "At the sizes of a real model",
            [
              "GPT-2 has 50,257 tokens. With 256 numbers each, the table would be 50,257 × 256, or 12.9 million ",
              "weights. A batch of 8 windows of 4 tokens becomes a tensor of shape ",
              code("(8, 4, 256)"),
              ", and keeps that shape when the position embeddings, ",
              code("(4, 256)"),
              ", are added.",
            ],
            [
              "The book trains on The Verdict and cuts its windows in the same way. These are the first 50 ids in " +
                "GPT-2's byte pairs: ",
              make("small", { class: "hl-ids" }, VERDICT.join(", ")),
            ],
            "These positions are absolute: one vector for position 0, one for position 1. Other models encode how " +
              "far apart two tokens are. Such relative positions carry over to texts longer than those in training.",
          ),
        ),
        arithmetic.element,
      ],
      update(found) {
        data = found;
        showVocabulary();
        const columns = ["0", "1", "2"];
        const positions = data.words.map((/** @type {string} */ _, /** @type {number} */ i) => `position ${i}`);
        token.show({ rows: data.words, columns, values: data.token });
        position.show({ rows: positions, columns, values: data.position });
        x.show({ rows: data.words, columns, values: data.x });
        arithmetic.update(x, [0, 0]);
        showWindows();
        batches.update(data);
      },
      play() {
        const [word, id] = [data.words[0], data.ids[0]];
        const known = data.vocabulary.findIndex((entry) => entry[1] === id);
        return [
          { at: vocabulary.children[known] ?? null, words: `“${word}” has the id ${id}.` },
          { at: [token, 0, 0], words: `The id says which row to take: row ${id} of the token embeddings.` },
          { at: [position, 0, 0], words: "To its first number, that of position 0 is added." },
          { at: [x, 0, 0], words: `Their sum is the first of the numbers that the model reads for “${word}”.` },
        ];
      },
    };
  },
};

// The windows over a sentence, and the prediction that each target is practice for.

/** @typedef {{ id: number, text: string }[]} Tokens */
/** @typedef {{ inputs: Tokens, targets: Tokens }} Window */

const SHOWN_CHARACTERS = 60; // from the end of the given text, in the status line

class WindowList {
  /** @type {{ windows: Window[], stride: number, context_length: number, sentence: string[] } | null} */
  #data = null;
  /** @type {HTMLElement[]} */
  #chips = [];
  /** @type {HTMLTableElement[]} */
  #tables = [];

  /** @param {Record<string, any>} kept the index of the target that is shown, counted through all windows */
  constructor(kept) {
    this.kept = kept;
    this.slider = slider({
      label: "example",
      min: 0,
      max: 0,
      value: 0,
      format: (i) => this.#count(i),
      change: (i) => this.#choose(i),
    });
    this.sentence = make("p", { class: "hl-slide", "aria-label": "The sentence" });
    this.status = make("p", { class: "hl-count", role: "status" });
    this.list = make("ol", { class: "hl-windows" });
    this.elements = [controls(this.slider.element), this.sentence, this.status, this.list];
  }

  /** @param {number} i */
  #count(i) {
    return this.#data ? `${number(i + 1)} of ${number(this.#data.windows.length * this.#data.context_length)}` : "";
  }

  /** Hide everything: there is no window. */
  clear() {
    this.#data = null;
    for (const element of [this.slider.element, this.sentence, this.status, this.list]) element.hidden = true;
  }

  /** @param {Required<Data["windows"]>} data */
  update(data) {
    for (const element of [this.slider.element, this.sentence, this.status, this.list]) element.hidden = false;
    const { windows, n_windows: n, context_length: length, sentence } = data;
    this.#data = data;
    this.#chips = sentence.map((/** @type {string} */ word) => make("span", {}, shortWord(word)));
    this.sentence.replaceChildren(...this.#chips);
    this.#tables = windows.map((/** @type {Window} */ window, /** @type {number} */ i) => this.#table(window, i));
    const items = this.#tables.map((table) => make("li", {}, make("div", { class: "hl-scroll" }, table)));
    this.list.replaceChildren(...items);
    if (n > windows.length)
      this.list.append(make("li", { class: "hl-more" }, `… and ${number(n - windows.length)} more`));
    const most = windows.length * length - 1;
    this.#choose(clamp(this.kept.example, 0, most));
    this.slider.update(this.kept.example, most);
  }

  /** Inputs above their targets, each token with its id. @param {Window} window @param {number} i */
  #table({ inputs, targets }, i) {
    const cells = inputs.map(({ id, text }) => [make("span", {}, shortWord(text)), make("small", {}, id)]);
    const below = targets.map(({ id, text }, place) => {
      const name = `Predict “${text}” from ${counted(place + 1, "token")} of window ${i}`;
      const onclick = () => this.#choose(i * inputs.length + place);
      const parts = [make("span", {}, shortWord(text)), make("small", {}, id)];
      return make("button", { type: "button", "aria-label": name, onclick }, ...parts);
    });
    const rows = [
      ["inputs", ...cells],
      ["targets", ...below],
    ];
    return makeTable({ rows }, { class: "hl-window", "aria-label": `Window ${i}` });
  }

  /** Highlight one target and all tokens that it is predicted from. @param {number} example */
  #choose(example) {
    if (!this.#data) return;
    this.kept.example = example;
    this.slider.update(example);
    const { windows, stride, context_length: length } = this.#data;
    const [window, place] = [Math.floor(example / length), example % length];
    const start = window * stride;
    this.#chips.forEach((chip, at) => {
      chip.classList.toggle("hl-in-window", at >= start && at < start + length);
      chip.classList.toggle("hl-given", at >= start && at <= start + place);
      chip.classList.toggle("hl-wanted", at === start + place + 1);
    });
    this.#tables.forEach((table, i) => {
      const [inputs, targets] = table.rows;
      [...inputs.cells].slice(1).forEach((cell, at) => cell.classList.toggle("hl-given", i === window && at <= place));
      [...targets.cells].slice(1).forEach((cell, at) => {
        const isHere = i === window && at === place;
        cell.classList.toggle("hl-wanted", isHere);
        if (cell.firstElementChild) setFlag(cell.firstElementChild, "aria-pressed", isHere);
      });
    });
    const { inputs, targets } = windows[window];
    const given = inputs.slice(0, place + 1).map(({ text }) => text);
    const text = given.join(" ");
    const shown = ending(text, SHOWN_CHARACTERS);
    this.status.textContent =
      `Window ${window}, target ${place}: from “${shown}” (${counted(place + 1, "token")}) the model has to predict ` +
      `“${targets[place].text}”.`;
  }
}

// The windows in batches, one of which is shown as the tensors that a model gets.

/** @typedef {{ inputs: number[][], targets: number[][] }} Tensors */

/** @param {Record<string, any>} kept the batch that is shown */
function batchList(kept) {
  const batches = make("p", { class: "hl-spelled", role: "group", "aria-label": "Batches" });
  const status = make("p", { class: "hl-count", role: "status" });
  const tensors = make("div", {});

  /** @param {string} name @param {number[][]} ids @param {string} css */
  function tensor(name, ids, css) {
    const rows = ids.map((line) => line.map((id) => makeCell(id)));
    const shape = `${name}, shape (${ids.length}, ${ids[0].length})`;
    const table = makeTable({ rows }, { class: `hl-window ${css}`, "aria-label": name });
    const caption = make("figcaption", {}, make("b", {}, shape));
    return make("figure", { class: "hl-figure" }, caption, make("div", { class: "hl-scroll" }, table));
  }

  /** @param {Data["windows"]} data */
  function update(data) {
    const { batches: shown = [], n_batches: n = 0, left_over: left = 0, tensors: all = [] } = data;
    kept.batch = clamp(kept.batch, 0, Math.max(0, shown.length - 1));
    const buttons = shown.map((/** @type {number[]} */ batch, /** @type {number} */ i) => {
      const name = `Batch ${i}: ${batch.length > 1 ? "windows" : "window"} ${batch.join(", ")}`;
      const button = make("button", { type: "button", class: "hl-word", title: name, "aria-label": name });
      button.append(...batch.map((window) => make("b", {}, window)));
      button.addEventListener("click", () => {
        kept.batch = i;
        show();
      });
      return button;
    });
    const show = () => {
      buttons.forEach((/** @type {Element} */ button, /** @type {number} */ i) =>
        setFlag(button, "aria-pressed", i === kept.batch),
      );
      const found = /** @type {Tensors | undefined} */ (all[kept.batch]);
      tensors.replaceChildren(
        ...(found
          ? [rowOf(tensor("Batch inputs", found.inputs, ""), tensor("Batch targets", found.targets, "hl-all-targets"))]
          : []),
      );
    };
    batches.replaceChildren(...buttons);
    if (n > shown.length) batches.append(`… and ${number(n - shown.length)} more`);
    const lost = left
      ? `; ${counted(left, "window")} that would not fill another batch ${left > 1 ? "are" : "is"} dropped`
      : "";
    const many = `${counted(n, "batch", "batches")} of windows${lost}`;
    status.textContent = data.problem ? "" : n ? `${many}. Choose one: its ids are the tensors below.` : many;
    show();
  }

  return { elements: [status, batches, tensors], update };
}
