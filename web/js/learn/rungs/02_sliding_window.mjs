// Rung 2: inputs and targets, and what a token and its position become.

import { make, setFlag } from "../../lib/dom.mjs";
import { clamp, counted, number } from "../../lib/numbers.mjs";
import { ending } from "../../lib/words.mjs";
import { Arithmetic, dotProduct, named } from "../../widgets/arithmetic.mjs";
import { formula, row, sub } from "../../widgets/formula.mjs";
import { shortWord } from "../../widgets/heat_table.mjs";
import { content } from "../content/02_sliding_window.mjs";
import { choice, slider, controls, paragraph, rowOf } from "../widgets/elements.mjs";
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
  ...content,
  key: "windows",
  options: () => ({ context_length: 4, stride: 1, batch_size: 2, shuffle: false, drop_last: true }),
  choices: () => ({ example: 3, batch: 0 }),
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
      digits: 2,
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
      digits: 2,
      axes: "positions × 3 numbers",
      explain: (r, c) => [
        paragraph(
          `Number ${c} in row ${r} of the table of position embeddings, regardless of the token at that position.`,
        ),
      ],
    });
    const x = arithmetic.table({
      name: "Their sum",
      digits: 2,
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
      formula: formula([row("target", "(", "t", ")"), "=", row("id", "(", "t", "+", "1", ")")]),
      parts: {
        length: length.element,
        stride: stride.element,
        status,
        list: list.elements,
        sumFormula: formula([sub("x", "t"), "=", row(sub("E", row("id", "(", "t", ")")), "+", sub("P", "t"))]),
        vocabulary,
        token: token.element,
        position: position.element,
        x: x.element,
        batchSize: batchSize.element,
        order: order.element,
        last: last.element,
        batches: batches.elements,
        verdict: make("small", { class: "hl-ids" }, VERDICT.join(", ")),
      },
      explanation: arithmetic.element,
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
