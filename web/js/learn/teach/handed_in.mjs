// The codes that students hand in, as a table and as a file.

import { download, make } from "../../lib/dom.mjs";
import { smallButton } from "../../widgets/controls.mjs";
import { makeCell, makeRow, makeTable, makeTitle } from "../../widgets/table.mjs";
import { heading, paragraph } from "../widgets/elements.mjs";
import { plainCode, readStatement } from "./statement.mjs";

/** @import { Content } from "../rung.js" */
/** @import { Stated } from "./statement.mjs" */

/**
 * A line of the field. `remark` says what is wrong with its code, or which other lines have the same one.
 * @typedef {{ name: string, code: string, stated: Stated[] | null, remark: string, isRepeated: boolean }} Line
 */

/** @param {Content[]} rungs */
export function handedIn(rungs) {
  const label = make("label", { for: "hl-codes" }, "Codes, one in each line, with a name after it if you like");
  const field = make("textarea", { id: "hl-codes", rows: 4, spellcheck: "false", autocomplete: "off" });
  const result = make("div", { class: "hl-scroll", role: "status" });
  const lines = () => readLines(rungs, field.value);
  const save = smallButton("Download as CSV", () =>
    download(new Blob(["\ufeff", csvOf(rungs, lines())], { type: "text/csv" }), "headscope-class.csv"),
  );
  const same = paragraph(
    "Equal progress gives equal codes: all students who have solved everything have the same one.",
  );
  const show = () => {
    const read = lines();
    save.hidden = !read.some(({ stated }) => stated);
    same.hidden = !read.some(({ stated, remark }) => stated && remark);
    result.replaceChildren(...(read.length ? [tableOf(rungs, read)] : []));
  };
  field.addEventListener("input", show);
  show();
  return [
    heading("Codes of your students"),
    paragraph(
      "“What you know”, the last page of Learn, gives each student a code that says which rungs were seen, which " +
        "predictions were right and, rung by rung, which exercises were solved. It is the student’s own statement, " +
        "without a name or an answer. Nothing of it is stored or sent: this page reads it in your browser.",
    ),
    label,
    field,
    result,
    same,
    save,
  ];
}

/**
 * What the code at the start of a line states, and how many words it takes: a pasted code may have spaces inside.
 * @param {Content[]} rungs
 * @param {string[]} words
 */
export function readLine(rungs, words) {
  for (let used = 1; used <= words.length; used++) {
    try {
      return { stated: readStatement(rungs, words.slice(0, used).join("")), used };
    } catch {
      // The code may go on in the next word.
    }
  }
  return { stated: readStatement(rungs, words[0]), used: 1 }; // which says what is wrong with it
}

/** @param {Content[]} rungs @param {string} text @returns {Line[]} */
export function readLines(rungs, text) {
  const all = text.split("\n").map((line) => line.trim().split(/\s+/));
  const lines = all.filter(([first]) => first).map((words, i) => lineOf(rungs, words, `line ${i + 1}`));
  return lines.map((line, i) => {
    if (!line.stated) return line;
    /** @param {Line} other */
    const hasSameCode = (other) => other !== line && other.code === line.code;
    const isRepeated = lines.slice(0, i).some((other) => hasSameCode(other) && other.name === line.name);
    const others = lines.filter((other) => hasSameCode(other) && other.name !== line.name);
    const names = [...new Set(others.map(({ name }) => name))];
    const remark = names.length ? `same code as ${names.join(", ")}` : isRepeated ? "the same line again" : "";
    return { ...line, remark, isRepeated };
  });
}

/** @param {Content[]} rungs @param {string[]} words @param {string} unnamed @returns {Line} */
function lineOf(rungs, words, unnamed) {
  try {
    const { stated, used } = readLine(rungs, words);
    const code = plainCode(words.slice(0, used).join(""));
    return { name: words.slice(used).join(" ") || unnamed, code, stated, remark: "", isRepeated: false };
  } catch (error) {
    const remark = /** @type {Error} */ (error).message;
    return { name: words.slice(1).join(" ") || unnamed, code: words[0], stated: null, remark, isRepeated: false };
  }
}

/** How many rungs were seen, predictions right and made, exercises solved in each rung. @param {Stated[]} stated */
function countsOf(stated) {
  const made = stated.flatMap(({ predicted }) => (predicted === null ? [] : [predicted]));
  const solved = stated.map((each) => each.solved.filter(Boolean).length);
  return { seen: stated.filter(({ isSeen }) => isSeen).length, right: made.filter(Boolean).length, made, solved };
}

/** @param {number[]} numbers */
const sum = (numbers) => numbers.reduce((all, one) => all + one, 0);

/** The mean of each column, over all students whose codes could be read. @param {Line[]} lines */
function means(lines) {
  const counted = lines.flatMap(({ stated, isRepeated }) => (stated && !isRepeated ? [countsOf(stated)] : []));
  /** @param {(counts: ReturnType<typeof countsOf>) => number} value */
  const mean = (value) => (sum(counted.map(value)) / counted.length).toFixed(1);
  if (!counted.length) return null;
  const solved = counted[0].solved.map((_, i) => mean((counts) => counts.solved[i]));
  return {
    seen: mean(({ seen }) => seen),
    right: mean(({ right }) => right),
    solved: [...solved, mean((counts) => sum(counts.solved))],
  };
}

/** @param {Content[]} rungs @param {Line[]} lines */
function tableOf(rungs, lines) {
  const exercises = rungs.map((rung) => rung.exercises.length);
  const rows = lines.map(({ name, stated, remark }) => {
    if (!stated) return makeRow([name, makeCell(remark, { colspan: rungs.length + 3 })]);
    const { seen, right, made, solved } = countsOf(stated);
    const numbers = [seen, `${right} of ${made.length}`, ...solved, sum(solved)].map(String);
    return makeRow([remark ? [name, make("strong", {}, remark)] : name, ...numbers]);
  });
  const mean = means(lines);
  if (mean) rows.push(makeRow(["class mean", mean.seen, mean.right, ...mean.solved], { class: "hl-mean" }));
  rows.unshift(makeRow(["there are", ...[rungs.length, "", ...exercises, sum(exercises)].map(String)]));
  const titles = ["student", "rungs seen", "predictions right", ...rungs.map((_, i) => String(i + 1)), "all"];
  const table = makeTable({ titles, rows }, { class: "hl-sheet-table hl-class" });
  const group = makeTitle("exercises solved in rung", { colspan: rungs.length + 1, scope: "colgroup" });
  table.querySelector("thead")?.prepend(make("tr", {}, makeCell("", { colspan: 3 }), group));
  return table;
}

/** The table as a file for a spreadsheet. @param {Content[]} rungs @param {Line[]} lines */
export function csvOf(rungs, lines) {
  const inRungs = rungs.map((_, i) => `solved in rung ${i + 1}`);
  const titles = ["student", "code", "rungs seen", "predictions right", "predictions", ...inRungs, "solved", "remark"];
  const rows = lines.map(({ name, code, stated, remark }) => {
    if (!stated) return [name, code, ...Array(rungs.length + 4).fill(""), remark];
    const { seen, right, made, solved } = countsOf(stated);
    return [name, code, seen, right, made.length, ...solved, sum(solved), remark];
  });
  return [titles, ...rows].map((cells) => `${cells.map(csvCell).join(",")}\r\n`).join("");
}

/** A name that begins like a formula gets an apostrophe, or a spreadsheet would compute it. @param {unknown} content */
const csvCell = (content) =>
  `"${String(content)
    .replace(/^[=+\-@\t]/, "'$&")
    .replaceAll('"', '""')}"`;
