// What Learn and Train read and count.

import assert from "node:assert/strict";
import test from "node:test";

import { counted, number } from "../../../web/js/lib/numbers.mjs";
import { countCharacters } from "../../../web/js/lib/words.mjs";
import { readNumber } from "../../../web/js/learn/widgets/exercises.mjs";

test("characters are counted as code points", () => {
  assert.equal(countCharacters("😀".repeat(300)), 300);
  assert.equal(countCharacters("aé😀\n"), 4);
  assert.equal(countCharacters(""), 0);
});

test("answers may be decimals or fractions", () => {
  assert.equal(readNumber(" 0.25 "), 0.25);
  assert.equal(readNumber("0,25"), 0.25);
  assert.equal(readNumber("−3"), -3);
  assert.equal(readNumber("14/3"), 14 / 3);
  assert.equal(readNumber("-1 / 4"), -0.25);
  assert.equal(readNumber("0.15 / (0.15 + 0.2264)"), 0.15 / (0.15 + 0.2264));
  for (const nothing of ["", " ", "a", "1/0", "1/", "/2", "1/2/3", "0/0", "(1+)", "1/(1", "1+2"])
    assert.equal(readNumber(nothing), null);
});

test("large whole numbers have separators", () => {
  assert.equal(counted(1115394, "character"), "1,115,394 characters");
  assert.equal(number(10000), "10,000");
  assert.equal(number(-1234), "−1,234");
});
