// Two texts of one tokenizer that differ in several places: which of their tokens are the same ones.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { HeadWeights } from "../../../web/js/lib/triangle.mjs";
import { align } from "../../../web/js/look/compare/alignment.mjs";
import { Difference } from "../../../web/js/look/compare/difference.mjs";

/** A text of one token for each character. */
const text = (line, more = {}) => ({
  n_prompt: 1,
  tokens: [...line].map((part) => ({ text: part, id: part.codePointAt(0) })),
  ...more,
});
const given = (line) => text(line, { isGiven: true });
const same = ({ pieces }) => pieces.map((piece) => Number(piece.same)).join("");
const places = ({ pieces }) => pieces.map(({ a0, b0 }) => [a0, b0]);

test("the page and the server align alike", () => {
  const cases = JSON.parse(readFileSync(new URL("../../fixtures/alignments.json", import.meta.url), "utf8"));
  assert.ok(cases.length > 5);
  for (const [one, other, pairs] of cases) {
    const alignment = align(text(one), given(other), true);
    assert.deepEqual(places(alignment), pairs, `${one} and ${other}`);
    for (const { a0, b0, same: isSame } of alignment.pieces) assert.equal(isSame, one[a0] === other[b0]);
  }
});

test("several words replaced in a text of the same length", () => {
  const [one, other] = ["Lily has a dog. Lily is glad. Lily sings.", "Anna has a dog. Anna is glad. Anna sings."];
  const expected = [...one].map((letter, i) => Number(letter === other[i])).join("");
  for (const second of [given(other), text(other)]) {
    const alignment = align(text(one), second, true); // so much is no coincidence, whoever wrote it
    assert.equal(same(alignment), expected);
    assert.equal(alignment.shared, one.length - 12);
    assert.deepEqual([alignment.parting, alignment.changes("a", one.length)], [0, [0, 16, 30]]);
  }
  // While a text is written, what comes next may be anything.
  assert.equal(same(align(text(one), text(other), true, true)), "0".repeat(one.length));
});

test("what two written texts have in common by chance is not compared", () => {
  const [one, other] = ["The dog ran to the sea.", "The cat has a red hat."];
  assert.equal(align(text(one), text(other), true).shared, 4);
  assert.equal(same(align(text(one.slice(0, 22)), text(other), true)).indexOf("1", 4), -1);
});

test("a token that only one text has gets a step of its own", () => {
  const alignment = align(text("abcdef"), given("abXYcdf"), true);
  assert.deepEqual(places(alignment), [
    [0, 0],
    [1, 1],
    [2, 4],
    [3, 5],
    [5, 6],
  ]);
  const steps = [0, 1, 2, 3, 4, 5, 6, 7, 8];
  const shown = (side) => steps.map((step) => (alignment.isGap(side, step) ? "-" : alignment.tokenAt(side, step)));
  assert.deepEqual(shown("a"), [0, 1, "-", "-", 2, 3, 4, 5, 6]);
  assert.deepEqual(shown("b"), [0, 1, 2, 3, 4, 5, "-", 6, 7]);
  assert.deepEqual(
    [0, 1, 2, 3, 4, 5, 6].map((at) => alignment.stepOf("b", at)),
    [0, 1, 2, 3, 4, 5, 7],
  );
  assert.deepEqual([alignment.pieceOf("a", 4), alignment.pieceOf("b", 2), alignment.parting], [null, null, 2]);
  assert.deepEqual([alignment.partsAt("a"), alignment.partsAt("b")], [2, 2]);
  assert.deepEqual([alignment.changes("a", 6), alignment.changes("b", 7)], [[2, 4], [2]]);
  assert.ok(!alignment.isTokenByToken);
  assert.deepEqual([alignment.numberOf(1), alignment.numberOf(2)], ["1", "2|4"]);
});

test("the difference is taken between the rows and keys that correspond", () => {
  /** @param {number} n @param {number} seed */
  const head = (n, seed) => {
    const rows = Array.from({ length: n }, (_, row) => {
      const raw = Array.from({ length: row + 1 }, (__, key) => ((row * 7 + key * 3 + seed) % 11) + 1);
      const sum = raw.reduce((total, value) => total + value, 0);
      return raw.map((value) => value / sum);
    });
    const weights = new HeadWeights();
    weights.append(Float32Array.from(rows.flat()));
    return { rows, weights };
  };
  const [a, b] = [head(6, 1), head(7, 5)];
  const alignment = align(text("abcdef"), given("abXYcdf"), true);
  const difference = new Difference(alignment, { a: a.weights, b: b.weights });
  assert.equal(difference.rows, 5);
  assert.deepEqual(difference.at(4, 2), {
    a: Math.fround(a.rows[5][2]),
    b: Math.fround(b.rows[6][4]),
    difference: Math.fround(b.rows[6][4]) - Math.fround(a.rows[5][2]),
  });
});
