// Rung 2: inputs and targets, and what a token and its position become.

import { make, setFlag } from "../../lib/dom.mjs";
import { clamp, counted, number } from "../../lib/numbers.mjs";
import { ending } from "../../lib/words.mjs";
import { dotProduct, named } from "../../widgets/arithmetic.mjs";
import { formula, row, sub } from "../../widgets/formula.mjs";
import { shortWord } from "../../widgets/heat_table.mjs";
import { content } from "../content/02_sliding_window.mjs";
import { TableDrawing } from "../widgets/drawing.mjs";
import { choice, slider, controls, paragraph, rowOf } from "../widgets/elements.mjs";
import { makeCell, makeTable } from "../../widgets/table.mjs";

/** @import { Lesson, Rung } from "../rung.js" */
/** @import { Stop } from "../widgets/steps.mjs" */
/** @import { Data } from "../data.js" */

// The first ids of The Verdict, the book's training text, in GPT-2's byte pairs.
const VERDICT = [
  40, 367, 2885, 1464, 1807, 3619, 402, 271, 10899, 2138, 257, 7026, 15632, 438, 2016, 257, 922, 5891, 1576, 438, 568,
  340, 373, 645, 1049, 5975, 284, 502, 284, 3285, 326, 11, 287, 262, 6001, 286, 465, 13476, 11, 339, 550, 5710, 465,
  12036, 11, 6405, 257, 5527, 27075, 11,
];

const MAX_WINDOW = 10; // tokens of a window
const MAX_BATCH = 8; // windows

/** @type {Rung<"windows">} */
export const slidingWindow = {
  ...content,
  key: "windows",
  options: () => ({ context_length: 4, stride: 1, batch_size: 2, shuffle: false, drop_last: true }),
  choices: () => ({ example: 3, batch: 0, verdictStride: 4 }),
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
          mistakes: [
            {
              number: Math.floor((n - length) / stride) + 1,
              reply: "A window needs one token more than its inputs, as its last target.",
            },
            { number: n - length, reply: "That would be right for a stride of 1." },
            { number: windows - 1, reply: "The window that starts at 0 counts, too." },
            { number: n, reply: "That is the number of tokens." },
          ],
          second: `The last window may start at token ${number(n - length - 1)}, not later.`,
          hint: `The last window must start early enough for ${length} inputs and one target more.`,
          why: `Windows start at 0, ${stride}, … up to ${number(n - length - 1)} at most.`,
        },
  build: (lesson) => new Windows(lesson),
};

/** @extends {TableDrawing<"windows">} */
class Windows extends TableDrawing {
  formula = formula([row("target", "(", "t", ")"), "=", row("id", "(", "t", "+", "1", ")")]);

  /** @param {Lesson} lesson */
  constructor(lesson) {
    super(lesson);
    this.length = this.#slider("context_length", MAX_WINDOW);
    this.stride = this.#slider("stride", MAX_WINDOW);
    this.status = make("p", { class: "hl-count", role: "status" });
    this.list = new WindowList(lesson.kept);
    this.batches = batchList(lesson.kept);
    this.vocabulary = make("p", { class: "hl-spelled" });
    this.token = this.#tokenTable();
    this.position = this.#positionTable();
    this.x = this.#sumTable();
    const verdict = verdictBatch(lesson.kept);
    this.parts = {
      length: this.length.element,
      stride: this.stride.element,
      status: this.status,
      list: this.list.elements,
      sumFormula: formula([sub("x", "t"), "=", row(sub("E", row("id", "(", "t", ")")), "+", sub("P", "t"))]),
      vocabulary: this.vocabulary,
      token: this.token.element,
      position: this.position.element,
      x: this.x.element,
      batchSize: this.#slider("batch_size", MAX_BATCH).element,
      ...this.#batchChoices(),
      batches: this.batches.elements,
      verdict: make("small", { class: "hl-ids" }, VERDICT.join(", ")),
      verdictStride: verdict.stride,
      verdictBatch: verdict.element,
    };
  }

  /** @param {"context_length" | "stride" | "batch_size"} name @param {number} max */
  #slider(name, max) {
    const { lesson } = this;
    const change = (/** @type {number} */ value) => lesson.set({ [name]: value });
    return slider({ label: name, min: 1, max, value: lesson.options[name], change });
  }

  #batchChoices() {
    const { lesson } = this;
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
    return { order: order.element, last: last.element };
  }

  #tokenTable() {
    return this.arithmetic.table({
      name: "Token embedding",
      digits: 2,
      axes: "tokens × 3 numbers",
      explain: (r, c) => {
        const { words, ids, vocab_size: size } = this.data;
        return [
          paragraph(
            named(words[r]),
            ` has the id ${ids[r]}: this is number ${c} in row ${ids[r]} of the table of token embeddings, which has ` +
              `${counted(size, "row")}. Nothing is computed: the row is looked up.`,
          ),
        ];
      },
    });
  }

  #positionTable() {
    return this.arithmetic.table({
      name: "Position embedding",
      digits: 2,
      axes: "positions × 3 numbers",
      explain: (r, c) => [
        paragraph(
          `Number ${c} in row ${r} of the table of position embeddings, regardless of the token at that position.`,
        ),
      ],
    });
  }

  #sumTable() {
    return this.arithmetic.table({
      name: "Their sum",
      digits: 2,
      axes: "what the model reads",
      explain: (r, c) => {
        const { words, token, position, x } = this.data;
        return dotProduct({
          title: [named(words[r]), ` at position ${r}, number ${c}: token embedding + position embedding`],
          names: ["token", "position"],
          products: [token[r][c], position[r][c]],
          total: x[r][c],
        });
      },
      operands: (r, c) => [[[this.token, r, c]], [[this.position, r, c]]],
    });
  }

  /** @param {Data["windows"]} found */
  update(found) {
    this.data = found;
    this.#showVocabulary();
    const { words, token, position, x } = found;
    const columns = ["0", "1", "2"];
    const positions = words.map((/** @type {string} */ _, /** @type {number} */ i) => `position ${i}`);
    this.token.show({ rows: words, columns, values: token });
    this.position.show({ rows: positions, columns, values: position });
    this.x.show({ rows: words, columns, values: x });
    this.arithmetic.update(this.x, [0, 0]);
    this.#showWindows();
    this.batches.update(found);
  }

  #showWindows() {
    const { problem, n_words: of, n_windows: n = 0, context_length: most } = this.data;
    this.status.classList.toggle("hl-problem", Boolean(problem));
    if (problem) {
      this.status.textContent = problem;
      this.list.clear();
      return;
    }
    this.length.update(most, Math.min(MAX_WINDOW, of - 1));
    this.status.textContent = `${counted(n, "window")} of ${most} from ${counted(of, "token")}`;
    this.list.update(/** @type {Required<Data["windows"]>} */ (this.data));
  }

  #showVocabulary() {
    const { vocabulary: entries, vocab_size: size } = this.data;
    const words = entries.map(([text, id]) =>
      make("span", { class: "hl-word" }, make("b", {}, shortWord(text)), make("small", {}, ` ${id} `)),
    );
    this.vocabulary.replaceChildren(...words);
    const left = size - entries.length;
    if (left) this.vocabulary.append(`… and ${number(left)} more`);
  }

  play() {
    const { words, ids, vocabulary } = this.data;
    const [word, id] = [words[0], ids[0]];
    const known = vocabulary.findIndex((entry) => entry[1] === id);
    return /** @type {Stop[]} */ ([
      { at: this.vocabulary.children[known] ?? null, words: `“${word}” has the id ${id}.` },
      { at: [this.token, 0, 0], words: `The id says which row to take: row ${id} of the token embeddings.` },
      { at: [this.position, 0, 0], words: "To its first number, that of position 0 is added." },
      { at: [this.x, 0, 0], words: `Their sum is the first of the numbers that the model reads for “${word}”.` },
    ]);
  }
}

/** The first batch of the book's text. @param {Record<string, any>} kept the stride that the visitor has chosen */
export function verdictBatch(kept) {
  const element = rowOf();
  const stride = choice({
    label: "stride of these windows",
    options: { 1: "1", 4: "4" },
    value: kept.verdictStride === 1 ? "1" : "4",
    change(key) {
      kept.verdictStride = Number(key);
      show();
    },
  });
  function show() {
    const starts = Array.from({ length: MAX_BATCH }, (_, i) => i * kept.verdictStride);
    const windows = (/** @type {number} */ shift) => starts.map((at) => VERDICT.slice(at + shift, at + shift + 4));
    element.replaceChildren(
      tensor("Raschka’s inputs", windows(0)),
      tensor("Raschka’s targets", windows(1), "hl-all-targets"),
    );
  }
  show();
  return { stride: stride.element, element };
}

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

/** @param {string} name @param {number[][]} ids @param {string} [css] */
function tensor(name, ids, css = "") {
  const rows = ids.map((line) => line.map((id) => makeCell(id)));
  const shape = `${name}, shape (${ids.length}, ${ids[0].length})`;
  const table = makeTable({ rows }, { class: `hl-window ${css}`, "aria-label": name });
  const caption = make("figcaption", {}, make("b", {}, shape));
  return make("figure", { class: "hl-figure" }, caption, make("div", { class: "hl-scroll" }, table));
}

/** @param {Record<string, any>} kept the batch that is shown */
function batchList(kept) {
  const batches = make("p", { class: "hl-spelled", role: "group", "aria-label": "Batches" });
  const status = make("p", { class: "hl-count", role: "status" });
  const tensors = make("div", {});

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
          ? [rowOf(tensor("Batch inputs", found.inputs), tensor("Batch targets", found.targets, "hl-all-targets"))]
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
