import assert from "node:assert/strict";
import test from "node:test";
import { placeAmong } from "../../web/js/look/widgets/training_chart.mjs";

test("a step lies between the kept ones as on the slider", () => {
  const kept = [0, 10, 100, 1000];
  assert.deepEqual(
    [0, 5, 10, 55, 1000, 2000].map((step) => placeAmong(kept, step)),
    [0, 0.5, 1, 1.5, 3, 3],
  );
  assert.equal(placeAmong([7], 3), 0);
});
