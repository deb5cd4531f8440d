// The word at which two texts diverge.

import assert from "node:assert/strict";
import { test } from "node:test";
import { wordAt, wordFrom } from "../../../web/js/look/tour.mjs";

const tokensOf = (/** @type {string[]} */ ...texts) => texts.map((text) => ({ text }));

test("a word is all of its tokens, without punctuation around it", () => {
  const tokens = tokensOf("Look", " at", " my", " kite", "!", '"', " he", " said", "bird");
  assert.equal(wordAt(tokens, 3), "kite");
  assert.equal(wordAt(tokens, 4), "kite");
  assert.equal(wordAt(tokens, 8), "saidbird");
  assert.equal(wordAt(tokensOf("I", " ", "d", "o", " ", "b", "e", ",", "\n"), 6), "be");
});

test("a token that is not a word is called by its name", () => {
  assert.equal(wordAt(tokensOf("a", " ", "\n", "b"), 2), "b");
  assert.equal(wordAt(tokensOf("so", " ..."), 1), "...");
  assert.equal(wordAt(tokensOf("so"), 1), "nothing");
});

test("after the same word, the next one is named", () => {
  const [one, other] = [tokensOf(" you", "?", "\n", "Mer"), tokensOf(" you", ",", " sir")];
  assert.equal(wordAt(one, 1), wordAt(other, 1));
  assert.deepEqual([wordFrom(one, 1), wordFrom(other, 1)], ["Mer", "sir"]);
  assert.equal(wordFrom(tokensOf("you", "\n", "\n", "M", "e", ":"), 1), "Me");
  assert.equal(wordFrom(tokensOf("you", "."), 1), "“.”");
});
