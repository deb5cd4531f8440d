// What the introduction says of a head, against counting by hand.

import assert from "node:assert/strict";
import { test } from "node:test";
import { clearestPlace, favouriteWord, patternsOf, tellingPattern } from "../../../web/js/look/intro/patterns.mjs";
import { HeadWeights } from "../../../web/js/lib/triangle.mjs";

/** @param {number[][]} rows */
function weightsOf(rows) {
  const weights = new HeadWeights();
  weights.append(Float32Array.from(rows.flat()));
  return weights;
}

/** Weights that differ everywhere, each row adding up to 1. @param {number} n */
function mixed(n) {
  return Array.from({ length: n }, (_row, query) => {
    const row = Array.from({ length: query + 1 }, (_, key) => 1 + ((7 * query + 5 * key * key) % 11));
    const sum = row.reduce((total, value) => total + value, 0);
    return row.map((value) => value / sum);
  });
}

const IDS = [4, 7, 4, 9, 7, 4, 9, 9, 1, 4];

test("patterns are mean weights over the queries that can follow them", () => {
  const rows = mixed(IDS.length);
  const found = patternsOf(weightsOf(rows), IDS, IDS.length);
  /** @param {(query: number, key: number) => boolean} looks */
  const counted = (looks) => {
    let [sum, even, places] = [0, 0, 0];
    for (let query = 1; query < rows.length; query++) {
      const keys = rows[query].map((_, key) => key).filter((key) => looks(query, key));
      if (!keys.length) continue;
      places++;
      sum += keys.reduce((total, key) => total + rows[query][key], 0);
      even += keys.length / (query + 1);
    }
    return { mean: sum / places, even: even / places, places };
  };
  const expected = {
    previous_token: counted((query, key) => key === query - 1),
    first_token: counted((_, key) => key === 0),
    self: counted((query, key) => key === query),
    duplicate_token: counted((query, key) => key < query && IDS[key] === IDS[query]),
    induction: counted((query, key) => key > 0 && key < query && IDS[key - 1] === IDS[query]),
    back3: counted((query, key) => key === query - 3),
  };
  for (const [name, { mean, even, places }] of Object.entries(expected)) {
    const pattern = found.find((one) => (one.name === "back" ? `back${one.back}` : one.name) === name);
    assert.equal(pattern.places, places, name);
    assert.ok(Math.abs(pattern.mean - mean) < 1e-6 && Math.abs(pattern.even - even) < 1e-9, name);
  }
});

test("the pattern of a head's role comes first, else the strongest, else none", () => {
  const pattern = (name, mean, even, places = 9) => ({ name, mean, even, places, back: 0, keys: () => [] });
  const first = pattern("first_token", 0.6, 0.05);
  const induction = pattern("induction", 0.2, 0.04);
  assert.equal(tellingPattern([first, induction], "induction"), induction);
  assert.equal(tellingPattern([first, induction], ""), first);
  assert.equal(tellingPattern([first, pattern("induction", 0.05, 0.01)], "induction"), first);
  assert.equal(tellingPattern([pattern("self", 0.5, 0.3), pattern("back", 0.09, 0.01)], ""), null);
  assert.equal(tellingPattern([pattern("induction", 0, 0, 0)], "induction"), null);
});

test("a favourite word counts all places at which it was written", () => {
  const tokens = ["Sue", " saw", " Sue", ",", " a", " dog"].map((text) => ({ text }));
  const rows = mixed(6);
  let sum = 0;
  for (let query = 1; query < 6; query++) sum += rows[query][0] + (query > 1 ? rows[query][2] : 0);
  const favourite = favouriteWord(weightsOf(rows), tokens, 6);
  assert.equal(favourite.word, "Sue");
  assert.ok(Math.abs(favourite.share - sum / 5) < 1e-6);
  assert.equal(favouriteWord(weightsOf(rows), Array(6).fill({ text: "," }), 6), null);
});

test("the place that is shown is one at which the pattern is the strongest key", () => {
  const n = 20;
  const rows = Array.from({ length: n }, (_row, query) =>
    Array.from({ length: query + 1 }, (_, key) => (query === 8 ? Number(key === 7) : Number(key === 0))),
  );
  const tokens = Array(n).fill({ text: " word" });
  const ids = Array.from({ length: n }, (_, i) => i);
  const weights = weightsOf(rows);
  const [previous] = patternsOf(weights, ids, n);
  assert.equal(clearestPlace(weights, tokens, n, previous, 1), 8);
  assert.equal(clearestPlace(weights, tokens, n, { ...previous, keys: () => [] }, 1), null);
  assert.equal(clearestPlace(weights, tokens, 1, null, 1), null);
});
