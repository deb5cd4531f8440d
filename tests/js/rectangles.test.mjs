// In a module of its own: once pictures are rectangles, they stay rectangles.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Thumbnails } from "../../web/js/lib/drawing/thumbnails.mjs";
import { HeadWeights, cells, firstQuery, keysOf, rowsOf, showRectangles, sizeOf } from "../../web/js/lib/triangle.mjs";

test("in a square every query sees all keys", () => {
  showRectangles(5);
  assert.deepEqual([cells(2), rowsOf(25), keysOf(0), keysOf(0, 3)], [10, 5, 5, 3]);
  const weights = new HeadWeights();
  weights.append(Float32Array.from({ length: 25 }, (_, i) => (i * 7) % 25));
  assert.equal(weights.rows, 5);
  assert.equal(weights.at(1, 4), (9 * 7) % 25);
  assert.deepEqual([...weights.row(2)], [20, 2, 9, 16, 23]);
  assert.equal(weights.strongest(2), 4);
  assert.equal(weights.strongest(0, 1), 3);
});

test("thumbnails of squares have all cells, and are pooled in both directions", () => {
  const thumbnails = new Thumbnails(2);
  thumbnails.merge(
    { rows: 5, factor: 1, first: 0 },
    Uint8Array.from({ length: 50 }, (_, i) => (i * 37) % 251),
  );
  const at = (picture, row, key) => ((picture * 25 + row * 5 + key) * 37) % 251;
  const whole = thumbnails.pooled(1, 1, 5);
  assert.deepEqual([whole[4], whole[20]], [at(1, 0, 4), at(1, 4, 0)]);
  const half = thumbnails.pooled(1, 2, 3);
  assert.equal(half[1], Math.max(at(1, 0, 1), at(1, 0, 2)));
  assert.equal(half[5], Math.max(at(1, 1, 3), at(1, 1, 4), at(1, 2, 3), at(1, 2, 4)));
});

test("in cross-attention the tokens are the keys and then the queries", () => {
  showRectangles(7, 10);
  assert.deepEqual([cells(7), cells(9), rowsOf(14), keysOf(6), keysOf(7), keysOf(1, 4)], [0, 14, 9, 0, 7, 4]);
  assert.deepEqual([firstQuery(), sizeOf(10)], [7, { rows: 3, columns: 7 }]);
  const weights = new HeadWeights();
  weights.append(Float32Array.from({ length: 21 }, (_, i) => i));
  assert.equal(weights.rows, 10);
  assert.deepEqual([weights.at(9, 2), weights.at(9, 8), weights.at(3, 2), weights.row(3).length], [16, 0, 0, 0]);
  assert.ok(weights.sees(9, 6) && !weights.sees(9, 7) && !weights.sees(6, 0));
  showRectangles(5);
});
