import assert from "node:assert/strict";
import { test } from "node:test";

import { roundTicks } from "../../web/js/train/panels/line_chart.mjs";
import { strongest } from "../../web/js/train/panels/scores.mjs";
import { clock, cost, duration, megabytes } from "../../web/js/train/words.mjs";

test("what a size costs is said in words", () => {
  assert.equal(cost({ n_parameters: 348_096, seconds: 60 }), "0.35 M weights, about a minute");
  assert.deepEqual([20, 54, 60, 180, 3600].map(duration), [
    "20 seconds",
    "54 seconds",
    "a minute",
    "3 minutes",
    "an hour",
  ]);
  assert.deepEqual([0, 9.9, 61].map(clock), ["0:00", "0:09", "1:01"]);
  assert.deepEqual([999, 5_000_000].map(megabytes), ["999 bytes", "5.0 MB"]);
});

test("ticks are round numbers within the range", () => {
  assert.deepEqual(roundTicks(0, 60, 8), [0, 10, 20, 30, 40, 50, 60]);
  assert.deepEqual(roundTicks(1.9, 4.3, 5), [2, 2.5, 3, 3.5, 4]);
});

test("the strongest head is found with its place", () => {
  assert.deepEqual(
    strongest([
      [0.1, 0.2],
      [0.7, 0.3],
    ]),
    { layer: 1, head: 0, score: 0.7 },
  );
});
