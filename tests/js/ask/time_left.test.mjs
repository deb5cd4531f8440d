import assert from "node:assert/strict";
import { test } from "node:test";

import { timeLeft } from "../../../web/js/look/ask/time_left.mjs";

test("the expected time is said at once, and the time left once the progress tells it", () => {
  assert.equal(timeLeft(0, 0, 38), "about 40 s");
  assert.equal(timeLeft(2, 0.5, 38), "about 40 s"); // too early to tell
  assert.equal(timeLeft(20, 0.001, 38), "about 40 s"); // too little
  assert.equal(timeLeft(20, 0.25, 38), "about 60 s left");
  assert.equal(timeLeft(20, 1, 38), "about 0 s left");
  assert.equal(timeLeft(0, 0, 400), "about 7 min");
  assert.equal(timeLeft(40, 0.1, 0), "about 6 min left");
  assert.equal(timeLeft(1, 0, 0), "");
});
