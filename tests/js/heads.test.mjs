import assert from "node:assert/strict";
import { test } from "node:test";
import { groupOf, groupSentence } from "../../web/js/lib/heads.mjs";

test("heads that share their keys and values are a group", () => {
  const shape = { n_head: 6, n_kv_head: 2 };
  const groups = [0, 1, 2, 3, 4, 5].map((head) => groupOf([1, head], shape));
  assert.deepEqual(groups, [
    [0, 2],
    [0, 2],
    [0, 2],
    [3, 5],
    [3, 5],
    [3, 5],
  ]);
  assert.equal(groupSentence([0, 4], shape), "Heads 3 to 5 of this layer share their keys and values.");
  assert.deepEqual(groupOf([0, 3], { n_head: 4, n_kv_head: 1 }), [0, 3]);
});

test("a mean, and a head with keys and values of its own, have no group", () => {
  assert.equal(groupOf([0, 6], { n_head: 6, n_kv_head: 2 }), null);
  assert.equal(groupOf([0, 1], { n_head: 6, n_kv_head: 6 }), null);
  assert.equal(groupSentence([0, 1], { n_head: 6 }), "");
});
