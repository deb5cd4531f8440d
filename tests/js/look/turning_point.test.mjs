// Where an introduction to a text begins.

import assert from "node:assert/strict";
import { test } from "node:test";
import { repeatedWords } from "../../../web/js/look/answers/turning_point.mjs";

test("recurring words, the rarest and latest first, without punctuation and surprising words", () => {
  const words = ["The", " cat", ".", " The", " cat", " sat", ".", " cat", " the", " dog", " sat", " dog"];
  const tokens = words.map((text, at) => ({ id: at, text, logprob: at < 4 ? null : -0.1 }));
  tokens[10].logprob = -5; // hardly expected
  assert.deepEqual(repeatedWords(tokens), [11, 4, 3, 7]);
});
