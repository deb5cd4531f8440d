// In a module of its own: once pictures are squares, they stay squares.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Thumbnails } from "../../web/js/lib/thumbnails.mjs";
import { HeadWeights, cells, keysOf, rowsOf, showSquares } from "../../web/js/lib/triangle.mjs";

test("in a square every query sees all keys", () => {
  showSquares(5);
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
