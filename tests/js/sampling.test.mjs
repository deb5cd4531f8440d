import assert from "node:assert/strict";
import { test } from "node:test";
import { drawnHow, mostProbable, probabilities, softmax } from "../../web/js/lib/sampling.mjs";

const LOGITS = Float32Array.from([2, 1, 0, 1, -1]);
const round = (values) => Array.from(values, (value) => Number(value.toFixed(6)));
const sum = (values) => values.reduce((total, value) => total + value, 0);
const kept = (values) => Array.from(values.keys()).filter((id) => values[id] > 0);

test("without settings these are the model's own probabilities", () => {
  assert.deepEqual(probabilities(LOGITS), softmax(Float64Array.from(LOGITS)));
  assert.ok(Math.abs(sum(probabilities(LOGITS)) - 1) < 1e-12);
});

test("temperature 0 is certain of the first of the largest", () => {
  assert.deepEqual(Array.from(probabilities(Float32Array.from([0, 3, 3]), { temperature: 0 })), [0, 1, 0]);
});

test("a tiny temperature does not overflow", () => {
  assert.deepEqual(round(probabilities(LOGITS, { temperature: 1e-300 })), [1, 0, 0, 0, 0]);
});

test("a temperature divides the logits", () => {
  const halved = softmax(Float64Array.from(LOGITS, (logit) => logit / 2));
  assert.deepEqual(round(probabilities(LOGITS, { temperature: 2 })), round(halved));
});

test("top-k keeps ties with the last one; 0 and null keep all", () => {
  assert.deepEqual(kept(probabilities(LOGITS, { top_k: 2 })), [0, 1, 3]);
  assert.equal(kept(probabilities(LOGITS, { top_k: 0 })).length, 5);
  assert.equal(kept(probabilities(LOGITS, { top_k: null })).length, 5);
  assert.equal(kept(probabilities(LOGITS, { top_k: 99 })).length, 5);
});

test("top-p keeps the fewest tokens that reach it, of equal ones the lower id", () => {
  assert.deepEqual(kept(probabilities(LOGITS, { top_p: 0.5 })), [0]);
  assert.deepEqual(kept(probabilities(LOGITS, { top_p: 0.7 })), [0, 1]);
  assert.deepEqual(kept(probabilities(LOGITS, { top_p: 0.9 })), [0, 1, 3]);
});

test("min-p relates to the most probable token", () => {
  assert.deepEqual(kept(probabilities(LOGITS, { min_p: 0.3 })), [0, 1, 3]); // e^-1 = 0.37, e^-2 = 0.14
  assert.deepEqual(kept(probabilities(LOGITS, { min_p: 1 })), [0]);
});

test("filters work one after the other and what is left adds up to 1", () => {
  const found = probabilities(LOGITS, { temperature: 0.7, top_k: 4, top_p: 0.95, min_p: 0.05 });
  assert.ok(Math.abs(sum(found) - 1) < 1e-12);
});

test("the most probable tokens come in their order, of equal ones the lower id first", () => {
  assert.deepEqual(mostProbable(LOGITS, 3), [0, 1, 3]);
  assert.deepEqual(mostProbable(LOGITS, 99), [0, 1, 3, 2, 4]);
  assert.deepEqual(mostProbable(new Float32Array(0), 3), []);
});

test("what tokens are drawn with, in words", () => {
  assert.match(drawnHow({}), /the model’s own probability, unchanged/);
  assert.match(drawnHow({ temperature: 0 }), /the most probable token is always chosen/);
  assert.equal(
    drawnHow({ temperature: 0.8, top_k: 40, top_p: 1, min_p: 0 }),
    "“Drawn with”: the model’s own probability, sharpened by temperature 0.8, then limited to the 40 most probable " +
      "tokens (top-k).",
  );
});
