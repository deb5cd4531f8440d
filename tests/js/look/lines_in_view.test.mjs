import assert from "node:assert/strict";
import { test } from "node:test";
import { ROW, scrollFor, sideOf } from "../../../web/js/look/panels/lines.mjs";

const HEIGHT = 10 * ROW + 5; // ten whole rows and a part of one
const rowFor = (firstRow, query, key) => scrollFor(firstRow * ROW, HEIGHT, query, key) / ROW;

test("nothing moves while the query and its key are in view", () => {
  assert.equal(rowFor(20, 25, 21), 20);
  assert.equal(rowFor(20, 29, 20), 20);
  assert.equal(rowFor(0, 3, 0), 0);
});

test("a query that comes into view becomes the last row, with what is before it", () => {
  assert.equal(rowFor(0, 40, 38), 31);
  assert.equal(rowFor(60, 40, 38), 31);
  assert.equal(rowFor(60, 4, 2), 0);
});

test("the view moves back to the key as far as the query stays in view", () => {
  assert.equal(rowFor(20, 25, 18), 18);
  assert.equal(rowFor(20, 22, 2), 13);
  assert.equal(rowFor(20, 22, null), 20);
});

test("the side of a token that is out of view", () => {
  const sides = [9, 10, 15, 20, 21].map((token) => sideOf(10 * ROW, HEIGHT, token));
  assert.deepEqual(sides, ["above", "", "", "below", "below"]);
});
