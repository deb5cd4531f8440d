import assert from "node:assert/strict";
import test from "node:test";
import { lineWords, placeAmong } from "../../../web/js/look/panels/training_steps.mjs";
import { strongestHead } from "../../../web/js/lib/heads.mjs";
import { isMemorising } from "../../../web/js/learn/rungs/03_bigram_report.mjs";
import { apart } from "../../../web/js/learn/widgets/arrows.mjs";

test("a step lies between the kept ones as on the slider", () => {
  const kept = [0, 10, 100, 1000];
  assert.deepEqual(
    [0, 5, 10, 55, 1000, 2000].map((step) => placeAmong(kept, step)),
    [0, 0.5, 1, 1.5, 3, 3],
  );
  assert.equal(placeAmong([7], 3), 0);
});

test("the strongest head is found with its place", () => {
  assert.deepEqual(
    strongestHead([
      [0.1, 0.2],
      [0.7, 0.3],
    ]),
    { picture: [1, 0], value: 0.7 },
  );
});

test("a line has its first and last value, and where it starts if that is later than the chart", () => {
  const loss = {
    name: "held-out loss",
    points: [
      [1000, 2.5],
      [2000, 1.25],
    ],
    isLoss: true,
  };
  assert.equal(lineWords(loss, 0), "held-out loss 2.50 to 1.25 nats, first measured at step 1,000");
  assert.equal(lineWords({ ...loss, name: "induction", isLoss: false }, 1000), "induction 2.50 to 1.25");
});

test("a model memorises when only its training loss falls", () => {
  assert.equal(isMemorising([4, 3, 2], [4, 3.5, 3.9]), true);
  assert.equal(isMemorising([4, 3, 2], [4, 3.5, 3.2]), false);
  assert.equal(isMemorising([4, 3, 2], [4, 3.5, 3.51]), false); // noise
  assert.equal(isMemorising([4, 2, 3], [4, 3.5, 3.9]), false); // both rise
  assert.equal(isMemorising([4, 3, 2], []), false); // nothing is held out
  assert.equal(isMemorising([], []), false);
});

test("labels of arrows are moved apart, also from the names of the axes", () => {
  const label = (/** @type {number} */ x, /** @type {number} */ y, anchor = "start") => ({ x, y, anchor, size: 4 });
  const heights = (/** @type {any[]} */ ...given) => apart(given[0], given[1]).map(({ y }) => y);
  assert.deepEqual(heights([label(0, 10), label(5, 12), label(200, 11)], []), [10, 23, 11]);
  assert.deepEqual(heights([label(0, 10), label(60, 12, "end")], []), [10, 12]); // side by side
  assert.deepEqual(heights([label(0, 10), label(0, 30)], [label(10, 15)]), [28, 41]);
});
