import assert from "node:assert/strict";
import { test } from "node:test";
import { Thumbnails, tile } from "../../web/js/lib/thumbnails.mjs";

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
