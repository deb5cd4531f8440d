// What holds over many prompts? One question asked of each: the mean over them, its standard error, and every row.

import { TITLES } from "../../../calls/question_titles.mjs";
import { make } from "../../../lib/dom.mjs";
import { headEntries, spokenHead } from "../../../lib/heads.mjs";
import { request as post } from "../../../lib/http.mjs";
import { counted, fixed, percent, signed, withoutZero } from "../../../lib/numbers.mjs";
import { ending } from "../../../lib/words.mjs";
import { openText } from "../../state/open_text.mjs";
import { HeadList } from "../head_list.mjs";
import { atPosition, chosenPosition, largestMean, positionMap, positionName } from "../prompts/position_map.mjs";
import { FIRST_SET, SetChooser } from "../prompts/set_chooser.mjs";
import { dropdown, smallButton } from "../../../widgets/controls.mjs";
import { fillTable, makeCell, makeTable } from "../../../widgets/table.mjs";

/** @import { PromptsAnswer } from "../../../lens.js" */
/** @import { AskContext, Asked, BuiltQuestion, Question } from "../question.js" */
/** @import { AskRequest } from "../../state/ask_server.mjs" */
/** @import { PromptRow } from "../prompts/prompt_rows.mjs" */
/** @import { ChosenSet } from "../prompts/set_chooser.mjs" */

/**
 * @typedef {object} Measure
 * @property {string} name
 * @property {string} help
 * @property {"patch" | "knockout" | "attribution" | "text-roles" | "difference"} asked of every prompt
 * @property {Record<string, string>} [body]
 * @property {string} number the name of the numbers in the answer, `[layer][head]`
 * @property {(value: number) => string} words a value with its unit
 * @property {"change" | "looks"} ramp
 * @property {[string, string]} ends
 */

const nats = (/** @type {number} */ value) => `${signed(value, 3)} nats`;
const weight = (/** @type {number} */ value) => fixed(value, 3);

/** @type {Record<string, Measure>} */
const MEASURES = {
  patch: {
    name: "share of the difference that a head restores",
    help:
      "Each head’s output in the prompt is patched into a run of the corrupted prompt (activation patching): the " +
      "share of their difference that this restores, in the logit of the answer minus that of the wrong one.",
    asked: "patch",
    body: { site: "z" },
    number: "exact",
    words: percent,
    ramp: "change",
    ends: ["towards the corrupted prompt", "towards the prompt"],
  },
  estimate: {
    name: "share of the difference that a head restores, estimated by gradients",
    help: "Attribution patching: the gradient times the difference of each head’s output, in place of a run per head.",
    asked: "patch",
    body: { site: "z", method: "attribution" },
    number: "estimate",
    words: percent,
    ramp: "change",
    ends: ["towards the corrupted prompt", "towards the prompt"],
  },
  knockout: {
    name: "loss without a head",
    help: "Each head is removed in turn (replaced by zeros), and the change of the prompt’s loss is measured.",
    asked: "knockout",
    number: "delta",
    words: nats,
    ramp: "change",
    ends: ["better without it", "worse without it"],
  },
  attribution: {
    name: "part of the logit difference",
    help: "What each head adds directly to the logit of the answer minus that of the wrong one, after the last token.",
    asked: "attribution",
    number: "heads",
    words: signed,
    ramp: "change",
    ends: ["against the answer", "for the answer"],
  },
  previous: {
    name: "weight on the previous token",
    help: "The mean attention weight that each head gives to the token before.",
    asked: "text-roles",
    number: "previous_token",
    words: weight,
    ramp: "looks",
    ends: ["never", "always"],
  },
  induction: {
    name: "weight on what followed the same token",
    help: "The mean attention weight that each head gives to the tokens after earlier occurrences of its own token.",
    asked: "text-roles",
    number: "induction",
    words: weight,
    ramp: "looks",
    ends: ["never", "always"],
  },
  difference: {
    name: "difference between the two prompts",
    help: "How differently each head attends in the prompt and in the corrupted one, from 0 (no difference) to 1.",
    asked: "difference",
    number: "heads",
    words: weight,
    ramp: "looks",
    ends: ["the same", "all different"],
  },
};

const MAX_PROMPT = 60; // characters of a prompt that its row shows

const POSITIONS = { all: "all positions together", each: "position by position" };

const DEFAULTS = { measure: "patch", positions: "all", at: "largest", set: FIRST_SET };

/** @type {Question} */
export const many = {
  key: "many",
  title: TITLES.many,
  hook: "One question asked of a whole set: the mean, its error, and every row.",
  explanation:
    "The question is asked of every prompt in a set. The map and the list show the mean over the set; ± is its " +
    "standard error. A click on a row opens that prompt in the page.",
  caution:
    "A mean hides differences between prompts, and the standard error says nothing about prompts that are unlike " +
    "those in the set.",
  defaults: DEFAULTS,
  build: (context) => new ManyPrompts(context),
};

/**
 * A standard error with its unit; one that would be printed as zero is “under” the smallest number that is not.
 * @param {number} error
 * @param {(value: number) => string} words
 */
export function errorWords(error, words) {
  const text = words(error).replace(/^[+−]/, "");
  return error > 0 && !/[1-9]/.test(text) ? `under ${text.replace(/0(?=\D*$)/, "1")}` : text;
}

/** @implements {BuiltQuestion} */
class ManyPrompts {
  /** @param {AskContext} context */
  constructor({ store, choices, choose, conclude, overlay }) {
    this.store = store;
    this.choices = choices;
    this.conclude = conclude;
    this.overlay = overlay;
    const names = Object.fromEntries(Object.entries(MEASURES).map(([key, { name }]) => [key, name]));
    this.measures = dropdown("Measure", names, (measure) => choose({ measure }));
    this.positions = dropdown("Positions", POSITIONS, (positions) => choose({ positions }));
    this.together = make("p", { class: "hs-hint" }, "Only the effect of a patch can be measured position by position.");
    this.set = new SetChooser({ store, choices, choose });
    this.sentence = make("p", { class: "hs-answer" });
    this.list = new HeadList(store, "Heads by their mean over the prompts");
    this.table = makeTable({});
    const every = make("div", { class: "hs-head-list" }, this.table);
    /** @type {ChosenSet | null} */
    this.current = null;
    const measure = [make("span", {}, "measure"), this.measures, this.positions, this.together];
    this.controls = [...measure, make("span", {}, "over"), ...this.set.controls];
    this.map = positionMap((at) => choose({ at: String(at) }));
    const key = make("p", { class: "hs-hint" }, "The line at the end of a bar is twice the standard error.");
    this.picture = make("div", { class: "hs-knockout" }, this.map.element, this.list.element, key);
    this.element = make("div", { class: "hs-knockout" }, this.sentence, every);
  }

  measure() {
    return MEASURES[this.choices.measure] ?? MEASURES.patch;
  }

  /** Whether the answer has a mean for each position. */
  isByPosition() {
    return this.choices.positions === "each" && this.measure().asked === "patch";
  }

  /** Open a prompt as the text of the page. @param {PromptRow} row */
  async open({ prompt }) {
    const answer = await (await post("v1/tokenize", { body: { model: this.store.pointer.model, prompt } })).json();
    openText(this.store, { ids: answer.tokens, n_prompt: answer.tokens.length });
  }

  /** @returns {Asked} */
  request() {
    this.measures.value = this.choices.measure;
    this.positions.value = this.isByPosition() ? "each" : "all";
    this.positions.disabled = this.measure().asked !== "patch";
    this.together.hidden = !this.positions.disabled;
    const chosen = this.set.rows();
    if (!this.store.pointer.run) return "There is no model to ask about yet.";
    if (typeof chosen === "string") return chosen;
    this.current = chosen;
    const { asked, body: more } = this.measure();
    return /** @type {AskRequest} */ ({
      route: `${asked}/prompts`,
      body: {
        model: this.store.pointer.model,
        ...more,
        ...(this.isByPosition() ? { positions: "each" } : {}),
        prompts: chosen.rows,
      },
      set: chosen.set,
    });
  }

  /**
   * The position that is shown, and what extracts its numbers; there is none for all positions together.
   * @param {PromptsAnswer} answer
   * @param {(value: number, error: number) => string} withError
   */
  chosen(answer, withError) {
    const { number, words } = this.measure();
    const tokens = answer.tokens ?? null;
    this.map.element.hidden = !tokens;
    if (!tokens) return { where: "", at: (/** @type {unknown} */ numbers) => /** @type {number[][]} */ (numbers) };
    const [means, errors] = [answer.mean, answer.standard_error].map(
      (all) => /** @type {number[][][]} */ (all[number]),
    );
    const position = chosenPosition(this.choices.at, means);
    const short = (/** @type {number} */ mean) => words(mean).replace("%", "");
    this.map.show({ tokens, means, errors, words: withError, short }, position);
    const at = (/** @type {unknown} */ numbers) => atPosition(/** @type {number[][][]} */ (numbers), position);
    return { where: ` at ${positionName(tokens, position)}`, at, most: largestMean(means) };
  }

  /** @param {PromptsAnswer} answer */
  draw(answer) {
    const { name, number, words, ramp, ends } = this.measure();
    const withError = (/** @type {number} */ value, /** @type {number} */ error) =>
      answer.n > 1 ? `${words(value)} ± ${errorWords(error, words)}` : words(value);
    const { where, at, most } = this.chosen(answer, withError);
    const [values, errors] = [answer.mean, answer.standard_error].map((all) => at(all[number]));
    const rows = headEntries(values).map(({ picture, value }) => {
      const error = errors[picture[0]][picture[1]];
      return { picture, value, error, text: withError(value, error) };
    });
    rows.sort((a, b) => b.value - a.value);
    const [first] = rows;
    const best = spokenHead(first.picture);
    const over = counted(answer.n, "prompt");
    this.conclude(`Over ${over}, ${spokenHead(first.picture)} comes first${where} for the ${name}: ${first.text}.`);
    this.sentence.textContent = this.about(answer);
    this.list.show(`mean ± standard error${where}`, rows);
    const [layer, column] = first.picture;
    this.fillRows(answer, best, (row) => (number in row ? words(at(row[number])[layer][column]) : String(row.error)));
    this.overlay({
      title: `Mean over ${over}${where}: ${name}; a wider ring is a larger standard error`,
      values,
      errors,
      most: most ?? Math.max(...rows.map(({ value }) => Math.abs(value)), 1e-6),
      ramp,
      short: (value) => (words === percent ? String(Math.round(100 * value) || 0) : withoutZero(fixed(value, 2))),
      long: words,
      ends,
    });
  }

  /** What was done, and of how many rows. @param {PromptsAnswer} answer */
  about({ tokens, rows, n }) {
    const { help } = this.measure();
    const which = tokens ? " Each position is patched alone, in the rows with as many tokens as the first." : "";
    return `${help}${which}${rows.length > n ? ` ${counted(rows.length - n, "row")} could not be answered.` : ""}`;
  }

  /**
   * @param {PromptsAnswer} answer
   * @param {string} best the name of the head that comes first
   * @param {(row: Record<string, unknown>) => string} textOf its number in a row
   */
  fillRows(answer, best, textOf) {
    fillTable(this.table, {
      name: "Every prompt",
      titles: ["line", "prompt", best],
      rows: answer.rows.map((row) => {
        const { prompt, answer: right } = this.current?.rows[Number(row.row)] ?? { prompt: "" };
        const line = `${this.current?.set.lines[Number(row.row)] ?? ""}`;
        const opener = smallButton(ending(prompt, MAX_PROMPT), () => void this.open({ prompt }));
        opener.title = `Open “${prompt}” in the page`;
        opener.disabled = this.store.view.isLookOnly;
        const expected = right === undefined ? "" : ` → ${right}`;
        const cellOf = (/** @type {string} */ content) => makeCell(content, { class: "hs-number-cell" });
        return [cellOf(line), [opener, expected], cellOf(textOf(row))];
      }),
    });
  }
}
