import assert from "node:assert/strict";
import test from "node:test";

import { clearest } from "../../../web/js/learn/rungs/11_induction.mjs";

// Three tokens and their repetition: the rows of the repetition are 3, 4 and 5.
const before = [1, 0.5, 0.5, 0.4, 0.3, 0.3];
const uniform = [...Array(4).fill(0.25), ...Array(5).fill(0.2), ...Array(6).fill(1 / 6)];

test("the token is followed whose repetition the head continues best", () => {
  const found = [0.1, 0.7, 0.1, 0.1, 0.6, 0.1, 0.1, 0.1, 0.1, ...Array(6).fill(1 / 6)];
  const without = { losses: [3, 5, 6, 1, 2] };
  assert.equal(clearest({ n: 3, weights: [[...before, ...found]], without }), 0);
  const elsewhere = [0.7, 0.1, 0.1, 0.1, 0.6, 0.1, 0.1, 0.1, 0.1, ...Array(6).fill(1 / 6)];
  assert.equal(clearest({ n: 3, weights: [[...before, ...elsewhere]], without }), 1); // the larger fall
});

test("where the loss rises everywhere, the smallest rise is followed", () => {
  assert.equal(clearest({ n: 3, weights: [[...before, ...uniform]], without: { losses: [1, 1, 6, 4, 3] } }), 1);
});
