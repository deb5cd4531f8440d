import assert from "node:assert/strict";
import { test } from "node:test";
import { barEnds } from "../../../web/js/lib/metrics.mjs";

const text = (...values) => ({ heads: values.map((_, head) => [0, head]), metric: ([, head]) => values[head] });

test("bars of entropies begin at the smallest, or one bit below the largest", () => {
  assert.deepEqual(barEnds(text(4, 2.5, 5), "entropy"), { least: 2.5, most: 5 });
  assert.deepEqual(barEnds(text(4.75, 4.5, 4.6), "entropy"), { least: 3.75, most: 4.75 });
  assert.deepEqual(barEnds(text(0.5, 0.25), "entropy"), { least: 0, most: 0.5 });
});

test("all others begin at 0", () => {
  assert.deepEqual(barEnds(text(40, 25), "distance"), { least: 0, most: 40 });
  assert.deepEqual(barEnds(text(0.5, 0.4), "first"), { least: 0, most: 0.5 });
});
