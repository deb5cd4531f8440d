// The exercises of Learn: what is said of each answer.

import assert from "node:assert/strict";
import test from "node:test";

import { openWindow, texts } from "../widgets/small_dom.mjs";
import { RUNGS } from "../../../web/js/learn/main.mjs";
import { exercises, nearestMistake } from "../../../web/js/learn/widgets/exercises.mjs";

openWindow("");
const progress = /** @type {any} */ ({ answerTo: () => null, answer: () => {} });

/** An exercise on the page. @param {any} exercise */
const posed = (exercise) => /** @type {HTMLElement} */ (exercises([exercise], undefined, { rung: 1, progress })[0]);

/** @param {HTMLElement} section @param {string} name */
const press = (section, name) =>
  [...section.querySelectorAll("button")].find(({ textContent }) => textContent === name)?.click();

test("every exercise has a second hint, every wrong choice an answer, and no known mistake is right", () => {
  for (const { exercises: list } of RUNGS) {
    for (const exercise of list) {
      assert.ok(exercise.second, exercise.ask);
      if (exercise.kind === "choice") {
        const silent = exercise.options.filter((_, i) => !exercise.replies?.[i]);
        assert.deepEqual(silent, [exercise.options[exercise.right]], exercise.ask);
      }
      if (exercise.kind === "number") {
        assert.ok(exercise.mistakes?.length, exercise.ask);
        assert.equal(nearestMistake(exercise, exercise.right), null, exercise.ask);
      }
    }
  }
});

test("a wrong number gets the answer to the nearest known mistake, another one only the hint", () => {
  const mistakes = [
    { number: 14, reply: "That is the sum." },
    { number: 7, reply: "That divides by 2." },
  ];
  assert.equal(nearestMistake({ mistakes, tolerance: 0.01 }, 14.001), "That is the sum.");
  assert.equal(nearestMistake({ mistakes, tolerance: 0.01 }, 7), "That divides by 2.");
  assert.equal(nearestMistake({ mistakes, tolerance: 0.01 }, 10), null);
  assert.equal(nearestMistake({ tolerance: 0.01 }, 10), null);
});

test("a hint follows a wrong answer, a second hint and the worked answer another one", () => {
  const ask = {
    kind: "choice",
    ask: "?",
    options: ["a", "b", "c"],
    right: 1,
    hint: "First.",
    second: "Second.",
    why: "So.",
  };
  const section = posed({ ...ask, replies: ["Not a.", "", "Not c."] });
  const [a, , c] = section.querySelectorAll("input");
  const solve = [...section.querySelectorAll("button")][1];
  a.checked = true;
  press(section, "Check");
  assert.deepEqual(texts(section, ".hl-why"), ["Not yet. Not a. Hint: First."]);
  assert.equal(solve.hidden, true);
  a.checked = false;
  c.checked = true;
  press(section, "Check");
  assert.deepEqual(texts(section, ".hl-why"), ["Not yet. Not c. Hint: First. Second."]);
  assert.equal(solve.hidden, false);
});

test("an ordering that was never touched is no attempt", () => {
  const section = posed({ kind: "order", ask: "?", steps: ["one", "two", "three"], hint: "First.", why: "So." });
  press(section, "Check");
  assert.deepEqual(texts(section, ".hl-why"), ["Move at least one step first."]);
  press(section, "↓");
  press(section, "Check");
  assert.match(texts(section, ".hl-why")[0], /^(Not yet|Yes)/);
});
