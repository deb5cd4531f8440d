// Rung 2: the book's own batch.

import assert from "node:assert/strict";
import test from "node:test";

import { openWindow, texts } from "../widgets/small_dom.mjs";
import { verdictBatch } from "../../../web/js/learn/rungs/02_sliding_window.mjs";

openWindow("");

/** @param {Element} element @param {number} which of inputs and targets @param {number} row */
const rowOf = (element, which, row) => {
  const line = element.querySelectorAll("table")[which].querySelectorAll("tr")[row];
  return texts(line, "td").map(Number);
};

test("the windows of the book's text begin as many tokens apart as the stride", () => {
  const { element, stride } = verdictBatch({ verdictStride: 4 });
  assert.deepEqual(rowOf(element, 0, 1), [1807, 3619, 402, 271]);
  assert.deepEqual(rowOf(element, 1, 1), [3619, 402, 271, 10899]);
  const one = [...stride.querySelectorAll("button")].find(({ textContent }) => textContent === "1");
  one?.click();
  assert.deepEqual(rowOf(element, 0, 1), [367, 2885, 1464, 1807]);
  assert.deepEqual(rowOf(element, 1, 0), [367, 2885, 1464, 1807]);
});
