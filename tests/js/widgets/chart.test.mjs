// The ticks of a chart are numbers that people would write.

import assert from "node:assert/strict";
import { test } from "node:test";
import { roundTicks } from "../../../web/js/lib/numbers.mjs";

const texts = (low, high, most) => roundTicks(low, high, most).map(({ text }) => text);

test("ticks are round numbers between the ends", () => {
  assert.deepEqual(texts(3.17, 4.71), ["3.5", "4.0", "4.5"]);
  assert.deepEqual(texts(0, 1), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
  assert.deepEqual(texts(0, 0.05), ["0.00", "0.01", "0.02", "0.03", "0.04", "0.05"]);
  assert.deepEqual(texts(1.5, 130), ["50", "100"]);
  assert.deepEqual(texts(-0.3, 0.3), ["−0.2", "0.0", "0.2"]);
  assert.deepEqual(texts(1.9, 4.3), ["2.0", "2.5", "3.0", "3.5", "4.0"]);
  assert.deepEqual(texts(0, 60, 8), ["0", "10", "20", "30", "40", "50", "60"]);
});

test("a chart of one number has ticks too", () => assert.ok(roundTicks(2, 2).length > 0));
