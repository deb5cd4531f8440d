// The word in which two texts part.

import assert from "node:assert/strict";
import { test } from "node:test";
import { wordAt } from "../../../web/js/look/tour.mjs";

const tokensOf = (/** @type {string[]} */ ...texts) => texts.map((text) => ({ text }));

test("a word is all of its tokens, without punctuation around it", () => {
  const tokens = tokensOf("Look", " at", " my", " kite", "!", '"', " he", " said", "bird");
  assert.equal(wordAt(tokens, 3), "kite");
  assert.equal(wordAt(tokens, 4), "kite");
  assert.equal(wordAt(tokens, 8), "saidbird");
  assert.equal(wordAt(tokensOf("I", " ", "d", "o", " ", "b", "e", ",", "\n"), 6), "be");
});

test("what is no word is called by its name", () => {
  assert.equal(wordAt(tokensOf("a", " ", "\n", "b"), 2), "b");
  assert.equal(wordAt(tokensOf("so", " ..."), 1), "...");
  assert.equal(wordAt(tokensOf("so"), 1), "nothing");
});
