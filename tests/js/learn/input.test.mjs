// What Learn and Train read and count.

import assert from "node:assert/strict";
import test from "node:test";

import { counted, number } from "../../../web/js/lib/numbers.mjs";
import { countCharacters } from "../../../web/js/lib/words.mjs";
import { readNumber } from "../../../web/js/learn/widgets/questions.mjs";
import { makeClassLink, readClassLink } from "../../../web/js/learn/widgets/class_link.mjs";

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
  for (const nothing of ["", " ", "a", "1/0", "1/", "/2", "1/2/3", "0/0"]) assert.equal(readNumber(nothing), null);
});

test("large whole numbers have separators", () => {
  assert.equal(counted(1115394, "character"), "1,115,394 characters");
  assert.equal(number(10000), "10,000");
  assert.equal(number(-1234), "−1,234");
});

test("a link for a class restores what it fixes, after the #", () => {
  const fixed = { rung: 7, sentence: "To be & not?", options: { dropout: 0.3 }, shared: { vectors: "random" } };
  const link = new URL(makeClassLink({ ...fixed, model: "tiny" }, "https://example.org/space/?ids=abc#learn/3"));
  assert.equal(link.pathname + link.search, "/space/?model=tiny");
  assert.deepEqual(readClassLink(link.hash), fixed);
  assert.deepEqual(readClassLink("#learn/4"), { rung: 4 });
  assert.equal(readClassLink("#learn/four"), null);
  for (const odd of ["{", "[]", "3", '{"options": 3}']) {
    const { options = {}, sentence } = readClassLink(`#learn/4?sentence=a&settings=${encodeURIComponent(odd)}`) ?? {};
    assert.deepEqual([options, sentence], [{}, "a"]);
  }
});
