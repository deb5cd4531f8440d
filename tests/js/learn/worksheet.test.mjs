// Worksheets: what is left blank, and what the key says.

import assert from "node:assert/strict";
import test from "node:test";

import { openWindow, texts } from "../widgets/small_dom.mjs";
import { RUNGS } from "../../../web/js/learn/main.mjs";
import { worksheet } from "../../../web/js/learn/teach/worksheet.mjs";
import { sheetOf } from "../../../web/js/learn/teach/worksheet_tables.mjs";

openWindow("");

const matrix = [
  [0.1, -0.004],
  [-1, 2],
  [3, null],
];
const words = ["a", "<b>", "c"];

test("a matrix has two decimals, its words as rows, and the blanks of the content", () => {
  const { titles, rows, isBlank } = sheetOf({ table: "x", text: "", blank: [1] }, { x: matrix, words }, "");
  assert.deepEqual(titles, ["", "0", "1"]);
  assert.deepEqual(rows, [
    ["a", "0.10", "0.00"],
    ["<b>", "−1.00", "2.00"],
    ["c", "3.00", "−∞"],
  ]);
  assert.deepEqual([isBlank(1, 0), isBlank(1, 1), isBlank(2, 1)], [false, true, false]);
  const mask = [
    [1, 0],
    [1, 1],
  ];
  assert.deepEqual(sheetOf({ table: "mask", text: "" }, { mask, words: ["a", "b"] }, "").rows[0], ["a", "1", "0"]);
  assert.throws(() => sheetOf({ table: "y", text: "" }, { words }, ""), /no table “y”/);
});

test("pairs are counted in the student's own sentence", () => {
  assert.deepEqual(sheetOf({ table: "pairs", text: "" }, {}, "abaca").rows, [
    ["a", "2", "b or c", "1/2"],
    ["b", "1", "a", "1/1"],
    ["c", "1", "a", "1/1"],
  ]);
});

test("ids are blank where a character occurs again; an induction head looks behind the earlier token", () => {
  const tokens = ["a", "b", "a"].map((text, id) => ({ text, id: id % 2 }));
  const characters = sheetOf({ table: "characters", text: "" }, { characters: { tokens } }, "");
  assert.deepEqual(
    characters.rows.map((_, row) => characters.isBlank(row, 1)),
    [false, false, true],
  );
  const read = { ids: [1, 2, 1, 1, 2, 1], tokens: ["A", "B", "A", "A", "B", "A"], n: 3 };
  const losses = [3, 2, 1, 0.5, 2.25];
  const { rows } = sheetOf({ table: "lookBack", text: "" }, { ...read, read: { losses } }, "");
  assert.deepEqual(rows, [
    ["3 A", "A", "1 or 3", "B or A", "3.00", "0.50", "2.50"],
    ["4 B", "B", "2", "A", "2.00", "2.25", "−0.25"],
  ]);
});

test("the student's page has blanks and no answer, the key has both", () => {
  const rung = RUNGS[4];
  const data = {
    words,
    ...Object.fromEntries(
      rung.worksheet.map(({ table }) => [
        table,
        [
          [1, 2],
          [3, 4],
          [5, 9],
        ],
      ]),
    ),
  };
  const page = globalThis.document.createElement("div");
  page.append(...worksheet(rung, { rung: 5, sentence: "a b c", data, back() {} }));
  const [sheet, key] = page.querySelectorAll("section");
  assert.ok(texts(sheet, ".hl-blank").length && texts(sheet, ".hl-blank").every((text) => text === ""));
  assert.deepEqual([...new Set(texts(key, ".hl-blank"))], ["5.00", "9.00"]);
  assert.deepEqual(
    [sheet, key].map((each) => each.querySelectorAll(".hl-working").length),
    [1, 0],
  );
  for (const { ask, why } of rung.exercises) {
    assert.ok(sheet.textContent.includes(ask) && !sheet.textContent.includes(why));
    assert.ok(key.textContent.includes(why));
  }
});

test("what asks for the page or for Deeper is on no sheet, and sheet and key are printed apart", () => {
  const [rung] = RUNGS;
  const screen = /** @type {const} */ ({ ...rung.exercises[0], ask: "Press what?", onScreen: true });
  const page = globalThis.document.createElement("div");
  const deeper = /** @type {const} */ ({ ...rung.exercises[0], ask: "And in Deeper?", extra: true });
  const content = { ...rung, worksheet: [], exercises: [screen, deeper, ...rung.exercises] };
  page.append(...worksheet(content, { rung: 1, sentence: "a", data: {}, back() {} }));
  assert.ok(!/Press what\?|And in Deeper\?/.test(page.textContent) && page.textContent.includes(rung.exercises[0].ask));
  /** @type {string[][]} */
  const printed = [];
  const shown = () => texts(page, "section:not(.hl-unprinted) h2");
  Object.assign(globalThis, { print: () => printed.push(shown()) });
  const [sheet, key] = page.querySelectorAll("button");
  sheet.click();
  key.click();
  globalThis.dispatchEvent(new Event("afterprint"));
  const title = `1. ${rung.name}`;
  assert.deepEqual([...printed, shown()], [[title], [`Key: ${title}`], [title]]);
});

test("the blank row of a symmetric table cannot be copied from its column, and is the least like another", () => {
  const x = [[1], [1.1], [5]];
  const scores = x.map(([one]) => x.map(([other]) => one * other));
  const { isBlank } = sheetOf({ table: "scores", text: "", blank: "unlike" }, { x, scores, words }, "");
  const row = [1, 2, 3].map((column) => isBlank(0, column));
  assert.deepEqual([row, isBlank(2, 1)], [[false, false, true], true]);
});

test("on sheet 6 all that is blank follows from what is printed", () => {
  const [w, x] = [[[1, 2], [3, 4], [0.5, -1]], [[1, 0, 2], [0.5, 1, 0], [0, 1, 1]]]; // prettier-ignore
  const times = (/** @type {number[][]} */ a, /** @type {number[][]} */ b) =>
    a.map((row) => b[0].map((_, j) => row.reduce((sum, value, i) => sum + value * b[i][j], 0)));
  const query = times(x, w);
  const softmax = (/** @type {number[]} */ row) => {
    const powers = row.map((value) => Math.exp(value / Math.SQRT2));
    return powers.map((value) => value / powers.reduce((sum, one) => sum + one));
  };
  const scores = times(query, query[0].map((_, j) => query.map((row) => row[j]))); // prettier-ignore
  const weights = scores.map(softmax);
  const context = times(weights, query);
  const matrices = { query: w, key: w, value: w };
  const data = { x, words, matrices, query, key: query, value: query, scores, weights, context };
  const sheets = RUNGS[5].worksheet.map((table) => ({ name: table.table, ...sheetOf(table, data, "") }));
  /** @param {string} name @param {boolean} blank its cells that are blank, or those that are not, as numbers */
  const cellsOf = (name, blank) => {
    const { rows, isBlank } = /** @type {typeof sheets[0]} */ (sheets.find((sheet) => sheet.name === name));
    return rows.map((row, i) =>
      row.slice(1).filter((_, j) => isBlank(i, j + 1) === blank).map((text) => Number(text.replace("−", "-"))),
    ).filter((row) => row.length); // prettier-ignore
  };
  const [, word] = cellsOf("x", false);
  const found = ["query", "key", "value"].map((name) => times([word], cellsOf(`matrices.${name}`, false))[0]);
  const blanks = ["query", "key", "value"].flatMap((name) => cellsOf(name, true));
  assert.deepEqual(blanks, found);
  const [keys, values] = ["key", "value"].map((name, i) => {
    const [first, last] = cellsOf(name, false);
    return [first, found[i + 1], last];
  });
  const ours = keys.map((key) => key.reduce((sum, value, i) => sum + value * found[0][i], 0));
  const rounded = (/** @type {number[]} */ row) => row.map((value) => Number(value.toFixed(2)));
  assert.deepEqual(cellsOf("scores", true), [rounded(ours)]);
  assert.deepEqual(cellsOf("weights", true), [rounded(softmax(ours))]);
  assert.deepEqual(cellsOf("context", true), [rounded(times([softmax(ours)], values)[0])]);
});

test("the sums of sheet 10 follow from what is printed", () => {
  const vectors = {
    x: [1, 2, 3, 4, 9],
    attended: [0.5, -1, 0.25, 0, 9],
    resid_mid: [1.5, 1, 3.25, 4, 18],
    mlp_output: [-2, 1, 0.5, 0.25, 9],
    after: [-0.5, 2, 3.75, 4.25, 27],
  };
  const { rows, isBlank } = sheetOf({ table: "stream", text: "" }, { vectors, tokens: words, query: 1, layer: 0 }, "");
  const numbers = rows.map((row) => row.slice(1).map((text) => Number(text.replace("−", "-"))));
  const blank = rows.flatMap((row, i) => (row.every((_, j) => isBlank(i, j) === j > 0) ? [i] : []));
  assert.deepEqual(blank, [2, 4]);
  for (const i of blank) {
    const sums = numbers[i - 2].map((value, j) => value + numbers[i - 1][j]);
    assert.deepEqual(numbers[i], sums);
  }
});

test("every rung has a worksheet", () => {
  for (const { name, worksheet: tables } of RUNGS) assert.ok(tables.length, name);
});
