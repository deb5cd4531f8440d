import assert from "node:assert/strict";
import test from "node:test";

import { clearest, whyChanged } from "../../../web/js/learn/rungs/11_induction.mjs";

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

test("a map says what muting has done to it", () => {
  /** @param {[number, number] | null} muted @param {number} after */
  const with1 = (muted, after) => ({
    head: /** @type {[number, number]} */ ([1, 2]),
    muted,
    read: /** @type {any} */ ({ induction: 0.59 }),
    without: /** @type {any} */ ({ induction: after }),
  });
  assert.equal(whyChanged(with1(null, 0.59), [1, 2]), "");
  assert.match(whyChanged(with1([0, 2], 0.04), [1, 2]), /paled, since what 0·2 finds/);
  assert.equal(whyChanged(with1([0, 2], 0.55), [1, 2]), ""); // hardly changed
  assert.match(whyChanged(with1([0, 2], 0.04), [0, 2]), /muted: it still looks/);
  assert.equal(whyChanged(with1([1, 2], 0.59), [0, 2]), "");
});
