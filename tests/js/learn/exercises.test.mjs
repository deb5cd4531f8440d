// The exercises of Learn: what is said of each answer.

import assert from "node:assert/strict";
import test from "node:test";

import { openWindow, texts } from "../widgets/small_dom.mjs";
import { RUNGS } from "../../../web/js/learn/main.mjs";
import { aboutNumber, exercises, readNumber, rightAnswer } from "../../../web/js/learn/widgets/exercises.mjs";

openWindow("");
const progress = /** @type {any} */ ({ answerTo: () => null, answer: () => {} });

/** An exercise on the page. @param {any} exercise */
const posed = (exercise) =>
  /** @type {HTMLElement} */ (exercises([exercise], exercise.after, { rung: 1, progress })[0]);

/** @param {HTMLElement} section @param {string} name */
const press = (section, name) =>
  [...section.querySelectorAll("button")].find(({ textContent }) => textContent === name)?.click();

const ALL = RUNGS.flatMap((rung) => rung.exercises);

/**
 * Answer an exercise, and read what is said of it.
 * @param {any} exercise
 * @param {(section: HTMLElement) => void} answer
 */
function saidOf(exercise, answer) {
  const section = posed(exercise);
  answer(section);
  press(section, "Check");
  return texts(section, ".hl-why")[0];
}

/** @param {number[]} chosen */
const choose = (chosen) => (/** @type {HTMLElement} */ section) =>
  section.querySelectorAll("input").forEach((input, i) => (input.checked = chosen.includes(i)));

test("every wrong choice has an answer of its own, and the right one is right", () => {
  for (const exercise of ALL) {
    if (exercise.kind !== "choice") continue;
    const said = exercise.options.map((_, i) => saidOf(exercise, choose([i])));
    said.forEach((words, i) => {
      if (i === exercise.right) assert.equal(words, `Yes. ${exercise.why}`);
      else assert.equal(words, `Not yet. ${exercise.replies?.[i]} Hint: ${exercise.hint}`, exercise.ask);
    });
    assert.equal(new Set(said).size, said.length, exercise.ask);
  }
});

test("of several choices, the first that is wrong or left out gets its answer", () => {
  for (const exercise of ALL) {
    if (exercise.kind !== "many") continue;
    const { options, replies, right } = exercise;
    assert.match(saidOf(exercise, choose(right)), /^Yes/);
    options.forEach((_, i) => {
      const others = right.includes(i) ? right.filter((each) => each !== i) : [...right, i];
      assert.ok(saidOf(exercise, choose(others)).startsWith(`Not yet. ${replies[i]}`), exercise.ask);
    });
  }
});

test("every known mistake gets its own answer, and any other number at least a direction", () => {
  for (const exercise of ALL) {
    if (exercise.kind !== "number") continue;
    const type = (/** @type {number} */ value) => (/** @type {HTMLElement} */ section) => {
      /** @type {HTMLInputElement} */ (section.querySelector("input")).value = String(value);
    };
    assert.match(saidOf(exercise, type(exercise.right)), /^Yes/);
    assert.ok(exercise.mistakes?.length, exercise.ask);
    for (const { number, reply } of exercise.mistakes ?? [])
      assert.ok(saidOf(exercise, type(number)).startsWith(`Not yet. ${reply} Hint: `), exercise.ask);
    assert.match(saidOf(exercise, type(1e6)), /^Not yet\. That is too large\. /);
    assert.match(saidOf(exercise, type(-1e6)), /^Not yet\. That is too small\. /);
  }
});

test("an order is right as it is written, no attempt if untouched, and otherwise its first wrong step is named", () => {
  for (const exercise of ALL) {
    if (exercise.kind !== "order") continue;
    const section = posed(exercise);
    press(section, "Check");
    assert.deepEqual(texts(section, ".hl-why"), ["Move at least one step first."]);
    const shown = () => texts(section, "li li").map((text) => text.replace("↑↓ ", ""));
    press(section, "↓"); // the first step
    press(section, "Check");
    const wrong = shown().findIndex((step, i) => step !== exercise.steps[i]);
    assert.ok(texts(section, ".hl-why")[0].includes(`“${shown()[wrong]}” comes later.`), exercise.ask);
    for (const [place, step] of exercise.steps.entries()) {
      while (shown().indexOf(step) > place)
        section.querySelectorAll("li li")[shown().indexOf(step)].querySelector("button")?.click();
    }
    press(section, "Check");
    assert.match(texts(section, ".hl-why")[0], /^Yes/, exercise.ask);
  }
});

test("every exercise has a second hint, which comes before the solution", () => {
  for (const { ask, second, hint } of ALL) assert.ok(second && second !== hint, ask);
});

test("the answer to a number has as many decimals as are asked for, and is right", () => {
  const numbers = ALL.filter(({ kind }) => kind === "number");
  for (const exercise of numbers) {
    const said = readNumber(rightAnswer(exercise));
    assert.ok(Math.abs(said - exercise.right) <= exercise.tolerance, exercise.ask);
  }
  const said = (right, tolerance) => rightAnswer({ kind: "number", right, tolerance });
  assert.deepEqual(
    [said(1.25, 0.001), said(4.6667, 0.01), said(-0.5, 0.001), said(64, 0), said(2.1907, 0.00006)],
    ["1.25", "4.67", "−0.5", "64", "2.1907"],
  );
});

test("a known mistake is told by its number, within the tolerance", () => {
  const exercise = {
    right: 4,
    tolerance: 0.01,
    mistakes: [
      { number: 14, reply: "That is the sum." },
      { number: 7, reply: "That divides by 2." },
    ],
  };
  assert.equal(aboutNumber(exercise, 14.001), "That is the sum. ");
  assert.equal(aboutNumber(exercise, 7), "That divides by 2. ");
  assert.equal(aboutNumber(exercise, 10), "That is too large. ");
  assert.equal(aboutNumber({ ...exercise, alsoRight: [5] }, 10), ""); // larger than what?
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
