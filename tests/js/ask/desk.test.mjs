// The masks of the mixing desk, how links hold them, and the presets.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  changedHeads,
  decodeMask,
  encodeMask,
  isSameMask,
  only,
  scaleOf,
  withScale,
} from "../../../web/js/lib/head_masks.mjs";
import { nextWords, presets, reachWords } from "../../../web/js/look/ask/questions/mixing_desk.mjs";
import { readChoices, writeChoices } from "../../../web/js/look/state/choices.mjs";

const SHAPE = { n_layer: 3, n_head: 4 };
const ones = () => [
  [1, 1, 1, 1],
  [1, 1, 1, 1],
  [1, 1, 1, 1],
];

test("a head is scaled, and a mask that keeps every head is null", () => {
  const muted = withScale(null, SHAPE, [[1, 2]], 0);
  assert.deepEqual(muted, [
    [1, 1, 1, 1],
    [1, 1, 0, 1],
    [1, 1, 1, 1],
  ]);
  assert.equal(scaleOf(muted, [1, 2]), 0);
  assert.equal(scaleOf(muted, [1, 3]), 1);
  const both = withScale(muted, SHAPE, [[0, 0]], 1.5);
  assert.equal(scaleOf(muted, [0, 0]), 1, "the mask before is left as it was");
  assert.deepEqual(changedHeads(both), [
    [0, 0],
    [1, 2],
  ]);
  const places = changedHeads(both);
  assert.equal(withScale(both, SHAPE, places, 1), null);
});

test("links encode masks in letters that a choice may have, and whole layers briefly", () => {
  const layer = withScale(only(SHAPE, [[2, 3]]), SHAPE, [[2, 0]], 1.25);
  assert.equal(encodeMask(layer), "0_1_2-0x125_2-1_2-2");
  for (const mask of [null, layer, withScale(null, SHAPE, [[1, 1]], 0.05)]) {
    const encoded = encodeMask(mask);
    const written = writeChoices({ mask: encoded }, { mask: "text" });
    assert.equal(readChoices(written, { mask: "text" }).mask, encoded);
    assert.deepEqual(decodeMask(encoded, SHAPE), mask);
  }
  assert.equal(encodeMask(ones()), "all");
  assert.ok(isSameMask(ones(), null));
});

test("a code that names no heads of this model is not a mask", () => {
  for (const text of ["", "3", "0-4", "0-1x300", "0-1x", "a", "0_", "0-1-2", "-1"]) {
    assert.equal(decodeMask(text, SHAPE), undefined, text);
  }
});

test("presets mute the heads that have a role", () => {
  const head = (label, copying = 0.5) => ({ label, scores: { copying } });
  const none = head("no clear role");
  const roles = [
    [none, head("previous token"), none, none],
    [head("induction"), none, none, head("induction", 0.95)],
    [none, none, head("copying", 0.92), none],
  ];
  const found = presets({ shape: SHAPE, roles, layer: 1, mask: null });
  const [induction, previous, copying, layer, all] = found;
  assert.equal(encodeMask(induction.mask), "1-0_1-3");
  assert.match(induction.help, /1·0, 1·3/);
  assert.equal(encodeMask(previous.mask), "0-1");
  assert.equal(encodeMask(copying.mask), "1-3_2-2"); // an induction head may copy, too
  assert.equal(encodeMask(layer.mask), "0_2");
  assert.deepEqual(
    found.map(({ reason }) => reason),
    ["", "", "", "", "No head is muted or scaled."],
  );
  assert.equal(all.mask, null);
  assert.equal(presets({ shape: SHAPE, roles, layer: 1, mask: layer.mask })[4].reason, "");
});

test("presets that cannot be chosen say why", () => {
  const none = [[{ label: "no clear role", scores: { copying: 0.5 } }]];
  const shape = { n_layer: 1, n_head: 1 };
  const reasons = presets({ shape, roles: none, layer: 0, mask: null }).map(({ reason }) => reason);
  assert.match(reasons[0], /No head of this checkpoint is clearly an? induction head/);
  assert.match(reasons[1], /clearly a previous token head/);
  assert.match(reasons[2], /clearly a copying head/);
  assert.match(reasons[3], /no other layer/);
  const unknown = presets({ shape: SHAPE, roles: null, layer: 3, mask: null }).map(({ reason }) => reason);
  assert.match(unknown[0], /not known yet/);
  assert.match(unknown[3], /Open a head/);
});

test("the answer says what a change reaches", () => {
  const text = { ...SHAPE, head_mask: null };
  const without = (...heads) => withScale(null, SHAPE, heads, 0);
  assert.match(reachWords(text, without([2, 0])), /^Only the next tokens can change/);
  assert.match(reachWords(text, without([1, 0], [2, 0])), /heads of layer 2 look can change/);
  assert.match(reachWords(text, without([0, 0])), /heads of layers 1 to 2 look can change/);
  const muted = without([0, 0]);
  assert.match(reachWords({ ...SHAPE, head_mask: muted }, withScale(muted, SHAPE, [[2, 1]], 0)), /^Only the next/);
});

test("a small change of the next token is not rounded away", () => {
  const a = { id: 1, name: "“a”", before: 0.4312, after: 0.4316 };
  const b = { id: 2, name: "“b”", before: 0.2, after: 0.6 };
  assert.equal(
    nextWords("Without it", a, a),
    "Without it, “a” stays the most probable next token: its probability goes from 0.4312 to 0.4316.",
  );
  assert.equal(
    nextWords("Without it", a, b),
    "Without it, the most probable next token is “b” (60%) instead of “a” (43%).",
  );
});
