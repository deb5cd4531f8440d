// The code of a student's progress: what it states comes back, and every damaged code gets a clear error.

import assert from "node:assert/strict";
import test from "node:test";

import { openWindow, texts } from "../widgets/small_dom.mjs";
import { RUNGS } from "../../../web/js/learn/main.mjs";
import { csvOf, handedIn, readLine, readLines } from "../../../web/js/learn/teach/handed_in.mjs";
import { readStatement, writeStatement } from "../../../web/js/learn/teach/statement.mjs";

/** @param {(place: number) => boolean} is */
const stated = (is) =>
  RUNGS.map(({ exercises }, i) => ({
    isSeen: is(i),
    predicted: is(i + 1) ? is(i + 2) : null,
    solved: exercises.map((_, place) => is(i * 7 + place)),
  }));
const SOME = stated((place) => place % 3 !== 0);

test("what a code states comes back", () => {
  for (const all of [SOME, stated(() => true), stated(() => false), stated((place) => place % 2 === 0)])
    assert.deepEqual(readStatement(RUNGS, writeStatement(RUNGS, all)), all);
});

test("a code is short, and may be typed in small letters, with spaces, and O for 0", () => {
  const code = writeStatement(RUNGS, SOME);
  assert.ok(code.replaceAll("-", "").length <= 24, code);
  const typed = code.toLowerCase().replaceAll("-", " ").replaceAll("0", "o").replaceAll("1", "l");
  assert.deepEqual(readStatement(RUNGS, typed), SOME);
});

test("a line may have spaces inside its code, and a name after it", () => {
  const code = writeStatement(RUNGS, SOME);
  const words = `${code.slice(0, 7)} ${code.slice(7, 10)} ${code.slice(10)} Ada Lovelace`.split(" ");
  assert.deepEqual(readLine(RUNGS, words), { stated: SOME, used: 3 });
  assert.throws(() => readLine(RUNGS, ["A-B", "Ada"]), /It has 2 characters/);
});

test("a teacher reads from the pasted codes who has seen, predicted and solved how much, and the class's mean", () => {
  const window = openWindow("");
  window.document.body.append(...handedIn(RUNGS));
  const field = window.document.querySelector("textarea");
  const all = stated(() => true);
  field.value = `${writeStatement(RUNGS, SOME)} Ada\n\nA-B Bob\n${writeStatement(RUNGS, all)} Cleo`;
  field.dispatchEvent(new window.Event("input"));
  const rows = [...window.document.querySelectorAll("tr")].map((row) => texts(row, "th, td"));
  const [, titles, there, ada, bob, cleo, mean] = rows;
  assert.deepEqual(titles.slice(3), [...RUNGS.map((_, i) => `${i + 1}`), "all"]);
  const made = SOME.flatMap(({ predicted }) => (predicted === null ? [] : [predicted]));
  const solved = SOME.map((each) => each.solved.filter(Boolean).length);
  const total = solved.reduce((sum, each) => sum + each, 0);
  const right = made.filter(Boolean).length;
  const seen = SOME.filter(({ isSeen }) => isSeen).length;
  assert.deepEqual(ada, ["Ada", seen, `${right} of ${made.length}`, ...solved, total].map(String));
  assert.deepEqual(bob, ["Bob", "It has 2 characters; a code has 20."]);
  assert.deepEqual(cleo.slice(3), there.slice(3));
  const most = RUNGS.map(({ exercises }) => exercises.length);
  assert.deepEqual(
    mean.slice(3, -1),
    most.map((each, i) => ((each + solved[i]) / 2).toFixed(1)),
  );
});

test("the same code under two names is flagged, and a line pasted twice counts once", () => {
  const [one, other] = [
    writeStatement(RUNGS, SOME),
    writeStatement(
      RUNGS,
      stated(() => true),
    ),
  ];
  const text = `${one} Ada\n${one.toLowerCase().replaceAll("-", " ")} Bob\n${other} Cleo\n${other} Cleo`;
  const lines = readLines(RUNGS, text);
  assert.deepEqual(
    lines.map(({ remark, isRepeated }) => [remark, isRepeated]),
    [
      ["same code as Bob", false],
      ["same code as Ada", false],
      ["", false],
      ["the same line again", true],
    ],
  );
});

test("a spreadsheet gets all lines, and computes no name", () => {
  const code = writeStatement(RUNGS, SOME);
  const [titles, ada, bob, end] = csvOf(RUNGS, readLines(RUNGS, `${code} =Ada "A"\nA-B Bob`)).split("\r\n");
  assert.ok(titles.startsWith('"student","code","rungs seen"') && titles.includes('"solved in rung 11","solved"'));
  assert.ok(ada.startsWith(`"'=Ada ""A""","${code.replaceAll("-", "")}",`), ada);
  assert.ok(bob.startsWith('"Bob","A-B",') && bob.endsWith('"It has 2 characters; a code has 20."'));
  assert.equal(end, "");
  for (const line of [ada, bob]) assert.equal(line.split('","').length, titles.split('","').length);
});

test("one wrong character, or two swapped neighbours, is a wrong code", () => {
  const code = writeStatement(RUNGS, SOME).replaceAll("-", "");
  for (let i = 0; i < code.length; i++) {
    for (const other of "0123456789ABCDEFGHJKMNPQRSTVWXYZ") {
      if (other === code[i]) continue;
      assert.throws(() => readStatement(RUNGS, code.slice(0, i) + other + code.slice(i + 1)), /is wrong, or two/);
    }
    const swapped = code.slice(0, i) + (code[i + 1] ?? "") + code[i] + code.slice(i + 2);
    if (swapped !== code) assert.throws(() => readStatement(RUNGS, swapped), /is wrong, or two/);
  }
});

test("what is no code is told what a code is", () => {
  const code = writeStatement(RUNGS, SOME);
  assert.throws(() => readStatement(RUNGS, `${code.slice(0, -1)}U`), /“U” is in no code/);
  assert.throws(() => readStatement(RUNGS, code.replace(/^./, "ß")), /is in no code/);
  assert.throws(() => readStatement(RUNGS, code.slice(0, -1)), /characters; a code has \d+/);
  assert.throws(() => readStatement(RUNGS, ""), /It has 0 characters/);
});

test("a code of other exercises is refused", () => {
  const [first, ...others] = RUNGS;
  const [exercise, ...rest] = first.exercises;
  const changed = [{ ...first, exercises: [{ ...exercise, ask: "Another question?" }, ...rest] }, ...others];
  const code = writeStatement(changed, SOME);
  assert.throws(() => readStatement(RUNGS, code), /another version of the lessons/);
});
