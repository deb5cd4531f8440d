import assert from "node:assert/strict";
import test from "node:test";

import { looksMost, stepAt } from "../../../web/js/learn/widgets/steps.mjs";

test("the word that looks most at another one is followed", () => {
  const weights = [
    [0.9, 0.1, 0],
    [0.3, 0.6, 0.1],
    [0.2, 0.5, 0.3],
  ];
  assert.deepEqual(looksMost(weights), [2, 1]);
  assert.deepEqual(looksMost([[1]]), [0, 0]); // a sentence of one word
});

test("the step that is read is the last one that begins above the middle, also after a jump", () => {
  globalThis.innerHeight = 1000;
  const at = (/** @type {number[]} */ ...tops) =>
    stepAt(tops.map((top) => /** @type {any} */ ({ getBoundingClientRect: () => ({ top }) })));
  assert.equal(at(100, 700, 900), 0);
  assert.equal(at(-500, 200, 600), 1);
  assert.equal(at(-900, -700, -200), 2); // all have been scrolled past
  assert.equal(at(600, 800), 0); // none has been reached
});
