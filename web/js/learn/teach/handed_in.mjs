// The codes that students hand in, as a table.

import { make } from "../../lib/dom.mjs";
import { makeTable } from "../../widgets/table.mjs";
import { heading, paragraph } from "../widgets/elements.mjs";
import { readStatement } from "./statement.mjs";

/** @import { Content } from "../rung.js" */

/** @param {Content[]} rungs */
export function handedIn(rungs) {
  const label = make("label", { for: "hl-codes" }, "Codes, one in each line, with a name after it if you like");
  const field = make("textarea", { id: "hl-codes", rows: 4, spellcheck: "false", autocomplete: "off" });
  const result = make("div", { class: "hl-scroll", role: "status" });
  field.addEventListener("input", () => {
    const lines = field.value.split("\n").filter((line) => line.trim());
    const titles = ["student", "rungs seen", "predictions right", ...rungs.map((_, i) => `solved in rung ${i + 1}`)];
    const rows = lines.map((line, i) => rowOf(rungs, line, i));
    result.replaceChildren(...(rows.length ? [makeTable({ titles, rows }, { class: "hl-sheet-table" })] : []));
  });
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

/** @param {Content[]} rungs @param {string} line @param {number} place */
function rowOf(rungs, line, place) {
  const words = line.trim().split(/\s+/);
  try {
    const { stated, used } = readLine(rungs, words);
    const name = words.slice(used).join(" ") || `line ${place + 1}`;
    const seen = stated.filter(({ isSeen }) => isSeen).length;
    const predictions = stated.flatMap(({ predicted }) => (predicted === null ? [] : [predicted]));
    const right = `${predictions.filter(Boolean).length} of ${predictions.length}`;
    const solved = stated.map((each) => `${each.solved.filter(Boolean).length} of ${each.solved.length}`);
    return [name, `${seen} of ${rungs.length}`, right, ...solved];
  } catch (error) {
    return [
      words.slice(1).join(" ") || `line ${place + 1}`,
      make("td", { colspan: rungs.length + 2 }, /** @type {Error} */ (error).message),
    ];
  }
}
