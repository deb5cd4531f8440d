import assert from "node:assert/strict";
import test from "node:test";

import { looksMost } from "../../../web/js/learn/widgets/steps.mjs";

test("the word that looks most at another one is followed", () => {
  const weights = [
    [0.9, 0.1, 0],
    [0.3, 0.6, 0.1],
    [0.2, 0.5, 0.3],
  ];
  assert.deepEqual(looksMost(weights), [2, 1]);
  assert.deepEqual(looksMost([[1]]), [0, 0]); // a sentence of one word
});
