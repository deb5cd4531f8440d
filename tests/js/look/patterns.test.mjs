// What the page says a head does, compared with counting by hand.

import assert from "node:assert/strict";
import { test } from "node:test";
import { METRICS, indexOfDistance } from "../../../web/js/lib/metrics.mjs";
import { HeadWeights } from "../../../web/js/lib/triangle.mjs";
import { describePicture } from "../../../web/js/look/panels/top_heads.mjs";
import { labelOf } from "../../../web/js/look/roles/role_words.mjs";
import { clearestPattern, patternsOf } from "../../../web/js/look/roles/text_patterns.mjs";
import { measuredPatterns, patternDoes, patternName } from "../../../web/js/look/roles/text_patterns.mjs";

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
    let [sum, even, queries] = [0, 0, 0];
    for (let query = 1; query < rows.length; query++) {
      const keys = rows[query].map((_, key) => key).filter((key) => looks(query, key));
      if (!keys.length) continue;
      queries++;
      sum += keys.reduce((total, key) => total + rows[query][key], 0);
      even += keys.length / (query + 1);
    }
    return { mean: sum / queries, even: even / queries, queries };
  };
  const expected = {
    previous_token: counted((query, key) => key === query - 1),
    first_token: counted((_, key) => key === 0),
    self: counted((query, key) => key === query),
    duplicate_token: counted((query, key) => key < query && IDS[key] === IDS[query]),
    induction: counted((query, key) => key > 0 && key < query && IDS[key - 1] === IDS[query]),
    back3: counted((query, key) => key === query - 3),
  };
  for (const [name, { mean, even, queries }] of Object.entries(expected)) {
    const pattern = found.find((one) => (one.name === "back" ? `back${one.back}` : one.name) === name);
    assert.equal(pattern.queries, queries, name);
    assert.ok(Math.abs(pattern.mean - mean) < 1e-6 && Math.abs(pattern.even - even) < 1e-9, name);
  }
});

test("what a head does is its strongest clear pattern, or none", () => {
  const pattern = (name, mean, even, queries = 20) => ({ name, mean, even, queries, back: 0 });
  const first = pattern("first_token", 0.6, 0.05);
  assert.equal(clearestPattern([pattern("induction", 0.4, 0.04), first]), first);
  assert.equal(clearestPattern([pattern("self", 0.5, 0.3), pattern("back", 0.29, 0.01)]), null); // near chance, weak
  assert.equal(clearestPattern([pattern("back", 0.9, 0.1, 11), pattern("induction", 0.9, 0.1, 3)]), null); // too few
  assert.notEqual(clearestPattern([pattern("induction", 0.9, 0.1, 4)]), null);
});

test("the metrics of all heads agree with the exact weights of one", () => {
  const n = 16;
  const rows = mixed(n).map((row, query) =>
    query < 3 ? row : row.map((weight, key) => 0.1 * weight + (key === query - 3 ? 0.9 : 0)),
  );
  const ids = Array.from({ length: n }, (_, i) => i);
  const exact = patternsOf(weightsOf(rows), ids, n);
  const byIndex = new Map([
    [METRICS.previous.index, exact[0].mean],
    [METRICS.first.index, exact[1].mean],
    ...exact.filter(({ name }) => name === "back").map(({ back, mean }) => [indexOfDistance(back), mean]),
  ]);
  const store = { rows: n, data: { metric: (_head, index) => byIndex.get(index) } };
  for (const { name, back, ...numbers } of measuredPatterns(store, [0, 0])) {
    const same = exact.find((one) => one.name === name && (name !== "back" || one.back === back));
    assert.equal(numbers.queries, same.queries);
    assert.equal(numbers.mean, same.mean);
    assert.ok(Math.abs(numbers.even - same.even) < 1e-9, `${name} ${back}`);
  }
  const clear = clearestPattern(measuredPatterns(store, [0, 0]));
  assert.equal(patternName(clear), "3 tokens back");
  assert.equal(patternDoes(clear), "looks 3 tokens back");
  const text = `3 tokens back ${clear.mean.toFixed(2)}`;
  const label = { tag: "3 back", word: "3 back", text, where: "in this text" };
  assert.deepEqual(labelOf({ ...store, roles: null }, [0, 0]), label);
});

test("what is said about a head agrees with the role on its tile, in a short text too", () => {
  const scores = { previous_token: 0.91, first_token: 0, self: 0, duplicate_token: 0, induction: 0, copying: 0.5 };
  const roles = [[{ label: "previous token", scores, baseline: scores }]];
  const pointer = { n_layer: 2, n_head: 1 };
  const metric = (_, index) => (index === METRICS.entropy.index ? 0.1 : 0);
  const store = { rows: 5, roles, pointer, data: { metric }, open: [1, 0] };
  assert.equal(labelOf(store, [0, 0]).tag, "prev");
  assert.equal(
    describePicture(store, [0, 0]),
    "On random tokens head 0 of layer 0 looks at the token before: 0.91. Here: this text is too short for a pattern; " +
      "nearly all of its attention goes to one token at a time.",
  );
  assert.match(
    describePicture({ ...store, rows: 50 }, [0, 0]),
    /0\.91\. Here: it follows no simple rule in this text; nearly/,
  );
});
