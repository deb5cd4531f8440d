import assert from "node:assert/strict";
import { test } from "node:test";
import { Thumbnails, firstTile, tile } from "../../web/js/lib/drawing/thumbnails.mjs";
import { RunData } from "../../web/js/look/state/run_data.mjs";

/** A byte for each cell of a text of n tokens, the same for every reader. */
const byte = (picture, query, key) => (picture * 31 + query * 7 + key * 13) % 256;

/** The pooled rows from `first` on of `pictures` pictures of n tokens, by plain loops over all cells. */
function pooledRows(pictures, n, factor, first) {
  const side = tile(n - 1, factor) + 1;
  const data = [];
  for (let picture = 0; picture < pictures; picture++) {
    const square = Array.from({ length: side }, () => new Array(side).fill(0));
    for (let query = 0; query < n; query++) {
      for (let key = 0; key <= query; key++) {
        const [row, column] = [tile(query, factor), tile(key, factor)];
        square[row][column] = Math.max(square[row][column], byte(picture, query, key));
      }
    }
    for (let row = first; row < side; row++) data.push(...square[row].slice(0, row + 1));
  }
  return Uint8Array.from(data);
}

test("the first token has a tile of its own", () => {
  assert.deepEqual(
    [0, 1, 2, 3, 4, 5].map((position) => tile(position, 2)),
    [0, 1, 1, 2, 2, 3],
  );
});

test("a thumbnail begins with the first cell in which a query sees a key", () => {
  for (const factor of [1, 2, 4])
    for (const window of [1, 2, 3, 5, 8, 100, Infinity]) {
      const first = [];
      for (let query = 0; query < 41; query++) {
        const seen = tile(Math.max(0, query - window + 1), factor);
        const row = tile(query, factor);
        first[row] = Math.min(first[row] ?? Infinity, seen);
      }
      assert.deepEqual(
        first.map((_, row) => firstTile(row, factor, window)),
        first,
      );
    }
});

test("a layer’s window is that of its heads and of their mean", () => {
  const data = new RunData({ n_layer: 2, n_head: 3, windows: [4, null] });
  assert.deepEqual(
    Array.from({ length: 11 }, (_, picture) => data.thumbnails.windowOf(picture)),
    [4, 4, 4, 4, Infinity, Infinity, Infinity, Infinity, Infinity, Infinity, Infinity],
  );
  const [all, none] = [[4, 6], []].map((windows) => new RunData({ n_layer: 2, n_head: 3, windows }));
  assert.deepEqual([all.windowOf([2, 0]), all.windowOf([1, 2]), none.windowOf([0, 0])], [6, 6, Infinity]);
  const weights = data.weightsOf([0, 1]);
  assert.deepEqual(
    [0, 1, 2, 5, 6].map((key) => weights.sees(5, key)),
    [false, false, true, true, false],
  );
});

test("rows that come as a text grows give the thumbnails of the whole text", () => {
  const pictures = 3;
  const thumbnails = new Thumbnails(pictures);
  let known = 0;
  for (const [rows, factor] of [
    [20, 1],
    [65, 1],
    [100, 2],
    [200, 4],
  ]) {
    const first = tile(known, factor);
    thumbnails.merge({ rows, factor, first }, pooledRows(pictures, rows, factor, first));
    known = rows;
    const side = tile(rows - 1, factor) + 1;
    assert.equal(thumbnails.side, side);
    const whole = pooledRows(pictures, rows, factor, 0);
    const size = (side * (side + 1)) / 2;
    for (let picture = 0; picture < pictures; picture++) {
      const found = thumbnails.pooled(picture, 1, side);
      const lower = [];
      for (let row = 0; row < side; row++) lower.push(...found.slice(row * side, row * side + row + 1));
      assert.deepEqual(lower, Array.from(whole.slice(picture * size, (picture + 1) * size)));
    }
  }
});

test("pooling for a small screen keeps the largest cell", () => {
  const thumbnails = new Thumbnails(1);
  thumbnails.merge({ rows: 21, factor: 1, first: 0 }, pooledRows(1, 21, 1, 0));
  const side = tile(20, 4) + 1;
  const lower = [];
  const found = thumbnails.pooled(0, 4, side);
  for (let row = 0; row < side; row++) lower.push(...found.slice(row * side, row * side + row + 1));
  assert.deepEqual(lower, Array.from(pooledRows(1, 21, 4, 0)));
});
