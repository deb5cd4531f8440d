// Where arrow keys, Home and End lead among items of which Tab reaches one.

import assert from "node:assert/strict";
import { test } from "node:test";
import { placeAfter } from "../../../web/js/widgets/roving.mjs";

const places = (at, count, columns) =>
  ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"].map((key) => placeAfter(key, at, count, columns));

test("in one column the last item is followed by the first", () => {
  assert.deepEqual(places(1, 3), [0, 2, 0, 2]);
  assert.deepEqual(places(0, 3), [2, 1, 2, 1]);
  assert.deepEqual(places(2, 3), [1, 0, 1, 0]);
});

test("in several columns the keys lead to the neighbours, and nowhere past the ends", () => {
  assert.deepEqual(places(4, 9, 3), [3, 5, 1, 7]);
  assert.deepEqual(places(0, 9, 3), [null, 1, null, 3]);
  assert.deepEqual(places(8, 9, 3), [7, null, 5, null]);
  assert.deepEqual(places(3, 9, 3), [null, 4, 0, 6]);
  assert.equal(placeAfter("ArrowLeft", 3, 9, 3, true), 2); // a row goes on in the next one
  assert.equal(placeAfter("ArrowLeft", 0, 9, 3, true), null);
});

test("from the last full row, Down leads to the item after it", () => {
  assert.equal(placeAfter("ArrowDown", 5, 7, 3), 6);
  assert.equal(placeAfter("ArrowDown", 6, 7, 3), null);
});

test("Home and End lead to the ends, other keys nowhere", () => {
  assert.deepEqual(
    ["Home", "End", "Tab", "a"].map((key) => placeAfter(key, 1, 3)),
    [0, 2, null, null],
  );
});
