import assert from "node:assert/strict";
import { test } from "node:test";
import { TrianglePainter } from "../../web/js/lib/drawing/images.mjs";
import { Scale } from "../../web/js/lib/drawing/scale.mjs";
import { tile } from "../../web/js/lib/drawing/thumbnails.mjs";
import { HeadWeights, cells, rowsOf } from "../../web/js/lib/triangle.mjs";

/** The rows from `first` to before `end` of a triangle whose cell (query, key) is 100 * query + key. */
function rows(first, end) {
  const values = [];
  for (let query = first; query < end; query++) for (let key = 0; key <= query; key++) values.push(100 * query + key);
  return Float32Array.from(values);
}

test("rows and cells are each other's inverse", () => {
  for (const n of [0, 1, 2, 63, 64, 1023, 1024, 5000]) assert.equal(rowsOf(cells(n)), n);
});

test("weights that arrive in pieces equal those that arrive at once", () => {
  const [whole, pieces] = [new HeadWeights(), new HeadWeights()];
  whole.append(rows(0, 90));
  for (const [first, end] of [
    [0, 1],
    [1, 40],
    [40, 40],
    [40, 90],
  ]) {
    pieces.append(rows(first, end));
  }
  assert.equal(pieces.rows, 90);
  assert.deepEqual(pieces.row(89), whole.row(89));
  for (const [query, key] of [
    [0, 0],
    [45, 7],
    [89, 89],
  ]) {
    assert.equal(pieces.at(query, key), 100 * query + key);
  }
});

test("a row holds the keys up to its query", () => {
  const weights = new HeadWeights();
  weights.append(rows(0, 5));
  assert.deepEqual(Array.from(weights.row(3)), [300, 301, 302, 303]);
});

test("the strongest key is the first of equal ones, and may leave out the first token", () => {
  const weights = new HeadWeights();
  weights.append(Float32Array.from([1, 0.6, 0.4, 0.5, 0.25, 0.25]));
  assert.equal(weights.strongest(2), 0);
  assert.equal(weights.strongest(2, 1), 1);
  assert.equal(weights.strongest(0, 1), 0); // the first token has nothing else
});

test("hardly any weight lies below the floor", () => {
  const weights = new HeadWeights();
  assert.equal(weights.floor, 0.01);
  const floats = Float32Array.from({ length: 5050 }, (_, i) => (i < 60 ? 1e-9 : i < 500 ? 3e-6 : 0.2));
  weights.append(floats.slice(0, 4950));
  assert.equal(weights.floor, 1e-6); // without the rarest
  weights.append(Float32Array.from({ length: 100 }, () => 5e-9));
  assert.equal(weights.floor, 1e-9);
});

test("a picture that grows is the one that is painted at once", () => {
  globalThis.ImageData = /** @type {any} */ (
    class {
      /** @param {number} width @param {number} height */
      constructor(width, height) {
        this.data = new Uint8ClampedArray(4 * width * height);
      }
    }
  );
  globalThis.OffscreenCanvas = /** @type {any} */ (
    class {
      getContext() {
        return { canvas: this, putImageData: (/** @type {ImageData} */ { data }) => (this.data = data) };
      }
    }
  );
  const ramp = { pixels: Uint32Array.from({ length: 256 }, (_, step) => 1 + step), css: [], ink: [] };
  const weights = new HeadWeights();
  const painter = new TrianglePainter();
  const drawn = (/** @type {any} */ canvas) => [...new Uint32Array(canvas.data.buffer)];
  for (const [n, factor, scale] of /** @type {[number, number, "sqrt" | "row"][]} */ ([
    [30, 1, "sqrt"],
    [31, 1, "sqrt"],
    [34, 3, "sqrt"], // coarser from here on
    [35, 3, "sqrt"],
    [40, 3, "row"],
    [41, 3, "row"],
    [20, 3, "row"], // an earlier step
    [50, 3, "row"],
  ])) {
    for (let row = weights.rows; row < n; row++) {
      weights.append(Float32Array.from({ length: row + 1 }, (_, key) => ((7 * row + 3 * key) % 11) / 10));
    }
    const options = { scale, threshold: 0.15, hideFirst: true };
    const canvas = painter.paint(weights, n, new Scale(options), ramp, factor);
    const side = tile(n - 1, factor) + 1;
    const expected = new Array(side * side).fill(0);
    for (let query = 0; query < n; query++) {
      const shown = weights.row(query).map((weight, key) => (key > 0 ? weight : 0));
      const largest = scale === "row" ? Math.max(...shown) : 1;
      shown.forEach((weight, key) => {
        const part = weight < 0.15 ? 0 : scale === "row" ? weight / largest : Math.sqrt(weight);
        const pixel = tile(query, factor) * side + tile(key, factor);
        expected[pixel] = Math.max(expected[pixel], 1 + Math.round(255 * part));
      });
    }
    assert.deepEqual(drawn(canvas), expected);
  }
});
