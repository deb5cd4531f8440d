// The code of a student's progress: what it states comes back, and every damaged code gets a clear error.

import assert from "node:assert/strict";
import test from "node:test";

import { openWindow, texts } from "../widgets/small_dom.mjs";
import { RUNGS } from "../../../web/js/learn/main.mjs";
import { handedIn, readLine } from "../../../web/js/learn/teach/handed_in.mjs";
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

test("a teacher reads from the pasted codes who has seen, predicted and solved how much", () => {
  const window = openWindow("");
  window.document.body.append(...handedIn(RUNGS));
  const field = window.document.querySelector("textarea");
  field.value = `${writeStatement(RUNGS, SOME)} Ada\n\nA-B Bob`;
  field.dispatchEvent(new window.Event("input"));
  const [ada, bob] = [...window.document.querySelectorAll("tr")].slice(1).map((row) => texts(row, "th, td"));
  const made = SOME.flatMap(({ predicted }) => (predicted === null ? [] : [predicted]));
  const { solved } = SOME[0];
  assert.deepEqual(ada.slice(0, 4), [
    "Ada",
    `${SOME.filter(({ isSeen }) => isSeen).length} of ${RUNGS.length}`,
    `${made.filter(Boolean).length} of ${made.length}`,
    `${solved.filter(Boolean).length} of ${solved.length}`,
  ]);
  assert.deepEqual(bob, ["Bob", "It has 2 characters; a code has 20."]);
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
