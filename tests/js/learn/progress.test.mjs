// Answers belong to questions: one that was never asked is not graded.

import assert from "node:assert/strict";
import test from "node:test";

import { RUNGS } from "../../../web/js/learn/main.mjs";
import { Progress } from "../../../web/js/learn/progress.mjs";
import { whenItAppears } from "../../../web/js/learn/rungs/10_whole_model.mjs";

const ANSWERED = { answer: 1, isRight: false, wrong: 1 };

test("an answer counts for its own question alone", () => {
  const progress = new Progress();
  const asked = { ask: "Which?", options: ["this", "that"], right: 0, why: "" };
  progress.answer(5, asked, ANSWERED);
  assert.equal(progress.answerTo(5, asked)?.answer, 1);
  assert.equal(progress.answerTo(5, { ...asked, why: "in other words" })?.answer, 1);
  assert.equal(progress.answerTo(6, asked), null);
  for (const other of [{ ask: "Which one?" }, { options: ["that", "this"] }, { right: 1 }, { about: "another text" }]) {
    assert.equal(progress.answerTo(5, { ...asked, ...other }), null, JSON.stringify(other));
  }
  progress.answer(5, asked, null);
  assert.equal(progress.answerTo(5, asked), null);
});

test("every prediction and every exercise is a question of its own", () => {
  const progress = new Progress();
  const questions = RUNGS.flatMap(({ prediction, exercises }) => [...(prediction ? [prediction] : []), ...exercises]);
  for (const question of questions) {
    progress.answer("", question, ANSWERED);
    assert.deepEqual(
      questions.filter((other) => progress.answerTo("", other)),
      [question],
    );
  }
});

test("the prediction about the model is another one for another text, model or token", () => {
  const guesses = [1, 2].map((id) => ({ id, text: "a", p: 1, length: 1 }));
  const asked = { sha256: "1", ids: [5, 5], tokens: ["b", "b"], query: 1, guesses };
  const progress = new Progress();
  progress.answer(10, whenItAppears(asked), ANSWERED);
  assert.ok(progress.answerTo(10, whenItAppears({ ...asked })));
  for (const other of [{ sha256: "2" }, { ids: [6, 5] }, { query: 0 }]) {
    assert.equal(progress.answerTo(10, whenItAppears({ ...asked, ...other })), null, JSON.stringify(other));
  }
});

/** The progress of a visitor whose browser stores this. @param {unknown} stored */
function visitorWith(stored) {
  const storage = { getItem: () => JSON.stringify(stored), setItem() {} };
  Object.defineProperty(globalThis, "localStorage", { value: storage, configurable: true });
  try {
    return new Progress();
  } finally {
    Reflect.deleteProperty(globalThis, "localStorage");
  }
}

test("stored answers without their question are forgotten", () => {
  const { prediction } = RUNGS[4];
  assert.ok(prediction);
  assert.deepEqual(visitorWith({ answers: { 5: 1, 6: null, 7: { answer: 1 } }, rights: { 5: 0 } }).answers, {});
  for (const answers of [null, 3, "no"]) assert.deepEqual(visitorWith({ answers }).answers, {});
  const first = new Progress();
  first.answer(5, prediction, ANSWERED);
  assert.equal(visitorWith({ answers: first.answers }).answerTo(5, prediction)?.answer, 1);
});
