// The first half of rung 3: a text as ids, split, and cut into batches; the lecture's numbers beside those at hand.

import { make } from "../../../lib/dom.mjs";
import { fixed, number } from "../../../lib/numbers.mjs";
import { visible } from "../../../lib/words.mjs";
import { choice } from "../../widgets/controls.mjs";
import { code, controls, heading, paragraph } from "../../widgets/elements.mjs";
import { LECTURE } from "./lecture.mjs";

/**
 * A text as the server describes it.
 * @typedef {object} TextAsData
 * @property {string[]} characters
 * @property {number} n
 * @property {number} n_train
 * @property {number} n_held_out
 * @property {string} beginning
 * @property {number[]} ids
 * @property {{ inputs: number[][], targets: number[][] }} batch
 * @property {number} uniform
 * @property {number} loss
 * @property {number | null} held_out
 */

/** A whole number with its thousands apart. @param {number} value */
const grouped = (value) => value.toLocaleString("en");

export function textAsData() {
  /** @type {TextAsData | null} */
  let own = null;
  /** @type {{ loss: number, held_out: number | null } | null} */
  let trained = null;
  /** @type {TextAsData | null} */
  let lecture = null;
  let isOwn = false;
  const table = make("table", { class: "hl-compare", "aria-label": "The lecture's experiment and yours" });
  const beginning = make("div");
  const examples = make("div");
  const batch = make("div", { class: "hl-scroll" });
  const which = choice({
    label: "show",
    options: { lecture: "the lecture's text", own: "the text at hand" },
    value: /** @type {"lecture" | "own"} */ ("lecture"),
    change(key) {
      isOwn = key === "own";
      showParts();
    },
  });

  function showTable() {
    const cell = (/** @type {number | null | undefined} */ value) => (value == null ? "–" : fixed(value));
    const whole = (/** @type {number | undefined} */ value) => (value === undefined ? "–" : grouped(value));
    /** @type {[string, string, string][]} */
    const rows = [
      ["characters", grouped(LECTURE.characters), whole(own?.n)],
      ["alphabet", number(LECTURE.alphabet), whole(own?.characters.length)],
      ["for training, nine tenths", grouped(LECTURE.train), whole(own?.n_train)],
      ["held out, one tenth", grouped(LECTURE.held_out), whole(own?.n_held_out)],
      ["all characters alike: ln of the alphabet", fixed(LECTURE.uniform), cell(own?.uniform)],
      ["untrained", `${fixed(LECTURE.untrained)} (printed, of one batch)`, cell(own?.loss)],
      ["trained", `${fixed(LECTURE.trained, 3)} (printed, the last batch of 10,000)`, cell(trained?.loss)],
      ["trained, mean of the last 500 batches", `${fixed(LECTURE.last_batches, 3)} (measured here)`, "–"],
      [
        "trained, on the held-out tenth",
        `${fixed(LECTURE.held_out_mean, 3)} (measured here, all of it)`,
        cell(trained?.held_out),
      ],
    ];
    const titles = ["", "the lecture", "the text at hand"].map((name) => make("th", { scope: "col" }, name));
    const lines = rows.map(([name, ...values]) =>
      make("tr", {}, make("th", { scope: "row" }, name), ...values.map((value) => make("td", {}, value))),
    );
    table.replaceChildren(make("thead", {}, make("tr", {}, ...titles)), make("tbody", {}, ...lines));
  }

  function showParts() {
    which.show(isOwn ? "own" : "lecture");
    const text = isOwn && own ? own.beginning.slice(0, 9) : LECTURE.text;
    const ids = isOwn && own ? own.ids.slice(0, 9) : LECTURE.ids;
    const inputs = isOwn && own ? own.batch.inputs : LECTURE.inputs;
    const targets = isOwn && own ? own.batch.targets : LECTURE.targets;
    const described = isOwn && own ? own : lecture;
    beginning.replaceChildren(...(described ? describe(described) : []));
    const items = ids.slice(0, -1).map((_, t) => {
      const input = make("code", {}, `[${ids.slice(0, t + 1).join(", ")}]`);
      const words = ` “${visible(text.slice(0, t + 1))}” → “${visible(text[t + 1])}”`;
      const target = make("code", {}, ids[t + 1]);
      return make("li", {}, "when the input is ", input, " the target is ", target, make("small", {}, words));
    });
    examples.replaceChildren(make("ol", { class: "hl-examples" }, ...items));
    const rows = inputs.map((line, i) => [
      make("tr", {}, make("th", { scope: "row" }, `inputs ${i}`), ...line.map((id) => make("td", {}, id))),
      make("tr", {}, make("th", { scope: "row" }, `targets ${i}`), ...targets[i].map((id) => make("td", {}, id))),
    ]);
    const shown = make("table", { class: "hl-window", "aria-label": "A batch" }, make("tbody", {}, ...rows.flat()));
    batch.replaceChildren(shown);
  }

  showTable();
  showParts();
  return {
    elements: [
      heading("The text as data"),
      paragraph(
        "Karpathy's lecture does this with tiny Shakespeare; its figures stand beside those of the text you train on. ",
        "Figures that a program prints for one batch scatter by about 0.1; the mean over a held-out tenth does not.",
      ),
      make("div", { class: "hl-scroll" }, table),
      controls(which.element),
      beginning,
      paragraph("A window of 8 characters holds 8 examples, one for each place:"),
      examples,
      paragraph(
        code("get_batch"),
        " takes 4 such windows of 8 from random places (seed 1337); the targets are one later:",
      ),
      batch,
    ],
    /** The lecture's text: its alphabet and how it begins. @param {TextAsData} text */
    showLecture(text) {
      lecture = text;
      showParts();
    },
    /** A text, before training. @param {TextAsData} text */
    show(text) {
      own = text;
      trained = null;
      isOwn = true;
      showTable();
      showParts();
    },
    /** @param {{ loss: number, held_out: number | null }} losses */
    end(losses) {
      trained = losses;
      showTable();
    },
  };
}

/** How a text begins, its alphabet, and its ids. @param {TextAsData} text */
const describe = ({ beginning, characters, ids, n }) => [
  make("h4", {}, `The first ${beginning.length} of its ${number(n)} characters`),
  make("pre", { class: "hl-wrote", tabindex: 0, "aria-label": "The beginning of the text" }, beginning),
  make("h4", {}, `Its ${characters.length} characters, sorted`),
  make("p", { class: "hl-ids" }, characters.map(visible).join(" ")),
  make("h4", {}, "As a tensor of ids"),
  make("p", { class: "hl-ids" }, `tensor([${ids.join(", ")}, …]), shape (${number(n)},)`),
];
