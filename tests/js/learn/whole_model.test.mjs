import assert from "node:assert/strict";
import test from "node:test";

import { whatItDoes } from "../../../web/js/learn/rungs/10_head_tiles.mjs";
import { whenItAppears } from "../../../web/js/learn/rungs/10_whole_model.mjs";

/** @param {number[]} ids of the likeliest token at the embedding and after each layer */
const asked = (ids) =>
  whenItAppears({
    sha256: "",
    ids: [0, 1],
    guesses: ids.map((id) => ({ id, text: `t${id}`, p: 1, length: 1 })),
    tokens: ["a", "b"],
    query: 1,
  });

test("the prediction asks when the final one first appears", () => {
  assert.equal(asked([1, 2, 3, 3, 3]).right, 0); // two of four layers
  assert.equal(asked([1, 2, 2, 3, 3]).right, 1);
  assert.equal(asked([1, 2, 2, 2, 3]).right, 2);
  assert.equal(asked([3, 3]).right, 0);
  assert.equal(asked([1, 3]).right, 2);
  assert.match(asked([1, 2, 3, 3, 3]).ask, /follows “b”/);
  assert.equal(asked([1, 2, 3, 3, 3]).why, "“t3” first appears after layer 1, number 2 of 4.");
  assert.equal(asked([3, 2, 3]).why, "“t3” first appears with the embedding alone, is lost again and comes back.");
});

test("a head without a role is described by its largest weight on an earlier token but the first", () => {
  const weights = [1, 0.9, 0.1, 0.7, 0.2, 0.1, 0.1, 0.1, 0.6, 0.2];
  assert.equal(whatItDoes(weights, ["a", "b", "c", "d"]), "; most of all, “d” looks at “c”, with 0.60");
  assert.equal(whatItDoes([1, 0.5, 0.5], ["a", "b"]), "");
});
