import assert from "node:assert/strict";
import { test } from "node:test";
import { gunzipSync, gzipSync } from "node:zlib";

import { setOf } from "../../../web/js/look/ask/prompts/set_chooser.mjs";
import { openSaved } from "../../../web/js/look/saved/saved_text.mjs";

/** @type {any} */ (globalThis).unpack = async (/** @type {string} */ text) => {
  const bytes = gunzipSync(Buffer.from(text, "base64"));
  return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
};

/** As `pack_numbers` in model/drawing/html.py. @param {Float32Array | Uint16Array | Int32Array} numbers */
function pack(numbers) {
  const bytes = new Uint8Array(numbers.buffer);
  const size = numbers.BYTES_PER_ELEMENT;
  const planes = Array.from({ length: size }, (_, byte) => bytes.filter((_byte, i) => i % size === byte));
  return gzipSync(Buffer.concat(planes)).toString("base64");
}

const POINTER = { state: /** @type {const} */ ("saved"), tokens: 3, n_layer: 2, n_head: 2, sha256: "a" };
// Lower triangles of layer 0, then of layer 1.
const HEADS = [
  [1, 0.25, 0.75, 0.5, 0.25, 0.25],
  [1, 0.75, 0.25, 0, 0, 1],
  [1, 1, 0, 0.125, 0.125, 0.75],
  [1, 0.5, 0.5, 0.25, 0.5, 0.25],
];
const SAVED = {
  pointer: POINTER,
  exact: true,
  frame: gzipSync(Buffer.from([1, 2, 3, 4])).toString("base64"),
  weights: pack(Float32Array.from(HEADS.flat())),
  vocab_size: 3,
  vocabulary: { 0: "a", 1: "b", 2: "c" },
  logits: pack(Float32Array.from([1, 2, 3, 4, 5, 6, 7, 8, 9])),
};

/** A lower triangle as a square. @param {number[]} cells */
const square = (cells) => [
  [cells[0], 0, 0],
  [cells[1], cells[2], 0],
  [cells[3], cells[4], cells[5]],
];

/** @param {number[][]} a @param {number[][]} b */
const product = (a, b) => a.map((row) => row.map((_, j) => row.reduce((sum, value, k) => sum + value * b[k][j], 0)));

/** @param {ArrayBuffer | undefined} buffer */
const numbers = (buffer) => [...new Float32Array(/** @type {ArrayBuffer} */ (buffer))];

test("a file answers with the weights of heads, means and rollouts", async () => {
  const { answer } = await openSaved(SAVED, null);
  assert.deepEqual([...new Uint8Array(/** @type {ArrayBuffer} */ (answer("rows?start=0")))], [1, 2, 3, 4]);
  assert.deepEqual(numbers(answer("heads/1/0?start=0")), HEADS[2]);
  assert.deepEqual(numbers(answer("heads/1/0?start=2")), HEADS[2].slice(3));
  const means = [0, 2].map((i) => HEADS[i].map((value, j) => (value + HEADS[i + 1][j]) / 2));
  assert.deepEqual(numbers(answer("heads/0/2?start=0")), means[0]);
  const overall = means[0].map((value, i) => (value + means[1][i]) / 2);
  assert.deepEqual(numbers(answer("heads/2/2?start=0")), overall);
  const halved = means.map((mean) => square(mean).map((row, i) => row.map((v, j) => (v + (i === j ? 1 : 0)) / 2)));
  const rolled = product(halved[1], halved[0]);
  const found = numbers(answer("heads/1/3?start=0"));
  assert.deepEqual(square(found), rolled);
  const row = numbers(answer("queries/1"));
  assert.equal(row.length, 9 * 2); // pictures, keys
  assert.deepEqual(row.slice(0, 4), [...HEADS[0].slice(1, 3), ...HEADS[1].slice(1, 3)]);
  assert.deepEqual(row.slice(-2), overall.slice(1, 3));
});

test("half precision is undone to the last bit", async () => {
  // 1, the next number below it, 1/3 and the least number, times 2 ** 15.
  const halves = Uint16Array.from([0x7800, 0x77ff, 0x7155, 0x0001, 0, 0]);
  const weights = pack(Uint16Array.from(HEADS.flatMap(() => [...halves])));
  const { answer } = await openSaved({ ...SAVED, exact: false, weights }, null);
  const read = numbers(answer("heads/0/0?start=0"));
  assert.deepEqual(read, [1, 1 - 2 ** -11, 0.333251953125, 2 ** -39, 0, 0]);
});

test("logits: all of them, or the likeliest with the right sum of the rest", async () => {
  const whole = await openSaved(SAVED, null);
  assert.deepEqual(numbers(whole.answer("logits/1?count=1")), [4, 5, 6]);
  const logprobs = pack(Float32Array.from([0.5, 0.25, 0.5, 0.25, 0.5, 0.25].map(Math.log)));
  const likeliest = pack(Int32Array.from([0, 3, 4, 1, 2, 2]));
  const few = { ...SAVED, logits: undefined, vocab_size: 5, likeliest, logprobs };
  const { answer } = await openSaved(few, null);
  const found = numbers(answer("logits/1?count=1")).map((value) => Number(Math.exp(value).toFixed(6)));
  assert.deepEqual(
    found,
    [1, 1, 1, 0, 2].map((_, i) => [0.083333, 0.25, 0.083333, 0.083333, 0.5][i]),
  );
});

test("a saved answer about a set brings its prompts, with their lines", async () => {
  const asked = /** @type {any} */ ({
    route: "knockout/prompts",
    body: { model: "tiny", prompts: [{ prompt: "one" }, { prompt: "two" }] },
    set: { title: "own prompts", about: "", lines: [1, 3] },
  });
  const saved = await openSaved(SAVED, structuredClone({ asked, answer: { n: 2 } }));
  const set = setOf(saved.asked);
  assert.deepEqual(set, { rows: asked.body.prompts, set: asked.set });
  const again = /** @type {any} */ ({ ...asked, body: { model: "tiny", prompts: set?.rows }, set: set?.set });
  assert.deepEqual(saved.answerTo?.(again), { n: 2 });
  assert.equal(setOf((await openSaved(SAVED, null)).asked), null);
});

test("the saved answer answers only its own question", async () => {
  const asked = /** @type {any} */ ({ route: "knockout", body: { tokens: [1, 2], method: "zero" } });
  const { answerTo } = await openSaved(SAVED, { asked, answer: { loss: 1 } });
  assert.deepEqual(answerTo?.(structuredClone(asked)), { loss: 1 });
  assert.equal(answerTo?.({ ...asked, route: "removal" }), undefined);
});
