// A worksheet of a rung to print, tables with blanks and the exercises, and its key, which is printed apart.

import { make } from "../../lib/dom.mjs";
import { smallButton } from "../../widgets/controls.mjs";
import { makeCell, makeRow, makeTable } from "../../widgets/table.mjs";
import { controls, paragraph } from "../widgets/elements.mjs";
import { answerTo } from "./answer_key.mjs";
import { sheetOf } from "./worksheet_tables.mjs";

/** @import { Content, Exercise } from "../rung.js" */

const NARROW = { columns: 4, characters: 30 }; // what leaves room for four tables side by side
const ROUNDING = "Sums of rounded numbers may differ by 0.01 or 0.02.";

/**
 * @param {Content} content
 * @param {{ rung: number, sentence: string, data: any, back: () => void }} lesson
 */
export function worksheet({ name, worksheet: tables, calculator, exercises: all }, { rung, sentence, data, back }) {
  const sheets = tables.map((table) => ({ text: table.text, sheet: sheetOf(table, data, sentence) }));
  const exercises = all.filter(({ onScreen, extra }) => !onScreen && !extra);
  const title = `${rung}. ${name}`;
  /** @param {boolean} isKey */
  const drawn = (isKey) =>
    sheets.flatMap(({ text, sheet }) => (isKey && !hasBlanks(sheet) ? [] : [drawnSheet(text, sheet, isKey)]));
  const tasks = exercises.map((exercise) => make("li", {}, make("p", {}, exercise.ask), ...space(exercise)));
  const answers = exercises.map((exercise) => make("li", {}, ...answerTo(exercise)));
  const key = make(
    "section",
    { class: "hl-sheet hl-sheet-key hl-unprinted", "aria-label": "Key" },
    make("h2", {}, `Key: ${title}`),
    paragraph("Sentence: ", make("b", {}, sentence), `. ${ROUNDING}`),
    make("div", { class: "hl-sheet-tables" }, ...drawn(true)),
    make("ol", { class: "hl-key" }, ...answers),
  );
  const student = make(
    "section",
    { class: "hl-sheet", "aria-label": "Worksheet" },
    make("p", { class: "hl-name-line" }, "Name:", make("i"), "Date:", make("i")),
    make("h2", { tabindex: -1 }, title),
    paragraph("Sentence: ", make("b", {}, sentence)),
    ...(calculator ? [paragraph(`You need a calculator with ${calculator}. ${ROUNDING}`)] : []),
    make("div", { class: "hl-sheet-tables" }, ...drawn(false)),
    make("ol", { class: "hl-tasks" }, ...tasks),
    make("div", { class: "hl-working" }, make("p", {}, "Working:")),
  );
  /** @param {boolean} isKey */
  const choose = (isKey) => {
    student.classList.toggle("hl-unprinted", isKey);
    key.classList.toggle("hl-unprinted", !isKey);
  };
  const printKey = () => {
    addEventListener("afterprint", () => choose(false), { once: true }); // the browser's own menu prints no key
    choose(true);
    print();
  };
  return [
    controls(
      smallButton("Print the worksheet", () => print(), { class: "hs-primary" }),
      smallButton("Print the key", printKey),
      smallButton("Back to the rung", back),
    ),
    student,
    key,
  ];
}

/** @param {import("./worksheet_tables.mjs").Sheet} sheet */
const hasBlanks = ({ rows, isBlank }) => rows.some((cells, row) => cells.some((_, column) => isBlank(row, column)));

/** @param {string} text @param {import("./worksheet_tables.mjs").Sheet} sheet @param {boolean} isKey */
function drawnSheet(text, { titles, rows, isBlank }, isKey) {
  const drawn = rows.map(([title, ...cells], row) =>
    makeRow([
      title,
      ...cells.map((cell, i) => {
        if (!isBlank(row, i + 1)) return cell;
        return makeCell(isKey ? make("b", {}, cell) : "", {
          class: "hl-blank",
          ...(isKey ? {} : { "aria-label": "blank" }),
        });
      }),
    ]),
  );
  const table = makeTable({ titles, rows: drawn }, { class: "hl-sheet-table" });
  const isNarrow = titles.length <= NARROW.columns && text.length <= NARROW.characters;
  const attributes = isNarrow ? { class: "hl-narrow" } : {};
  return make("div", attributes, paragraph(text), make("div", { class: "hl-scroll" }, table));
}

/** Room for an answer. @param {Exercise} exercise */
function space(exercise) {
  if (exercise.kind === "number") return [make("p", { class: "hl-answer-line" })];
  const isOrder = exercise.kind === "order";
  const items = isOrder ? [...exercise.steps].sort() : exercise.options; // from A to Z, which is no order of steps
  return [make("ul", { class: "hl-boxes" }, ...items.map((text) => make("li", {}, isOrder ? "__ " : "☐ ", text)))];
}
