import assert from "node:assert/strict";
import { test } from "node:test";

import { timeLeft } from "../../../web/js/look/ask/time_left.mjs";

test("the time left is said once the progress tells it", () => {
  assert.equal(timeLeft(2, 0.5), ""); // too early to tell
  assert.equal(timeLeft(20, 0.001), ""); // too little
  assert.equal(timeLeft(20, 0.25), "about 60 s left");
  assert.equal(timeLeft(20, 1), "about 0 s left");
  assert.equal(timeLeft(40, 0.1), "about 6 min left");
  assert.equal(timeLeft(1, 0), "");
});
