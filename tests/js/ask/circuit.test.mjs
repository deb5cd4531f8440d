import assert from "node:assert/strict";
import { test } from "node:test";

import { arcsOf, circuitPlain, leftPlain, wordsRead } from "../../../web/js/look/ask/questions/circuit.mjs";
import { layOut } from "../../../web/js/look/ask/questions/head_graph.mjs";

test("heads of one layer stand below each other, and later layers further to the right", () => {
  const found = /** @type {[number, number][]} */ ([
    [0, 0],
    [0, 3],
    [0, 5],
    [2, 1],
    [3, 1],
    [4, 4],
    [4, 2],
  ]);
  const { places, titles, height, words, end } = layOut(found, 2);
  assert.equal(places.size, found.length);
  assert.deepEqual(
    titles.map(({ layer }) => layer),
    [0, 2, 3, 4],
  );
  const [a, b, c, d] = ["0·0", "0·3", "2·1", "4·2"].map((name) => places.get(name) ?? assert.fail(name));
  assert.ok(words[0].x < a.x && a.x === b.x && b.x < c.x && c.x < d.x && d.x < end.x);
  assert.ok(b.y - a.y >= 55); // a head with the number below it
  assert.notEqual(places.get("2·1")?.y, places.get("3·1")?.y); // a line past one single head does not cross another
  for (const { x, y } of [...places.values(), ...words]) assert.ok(x > 0 && x < 100 && y >= 30 && y <= height - 30);
});

test("the MLP of a layer stands after the heads that it reads", () => {
  const { places, titles } = layOut([[1, 0], [0, null], [0, 2]]); // prettier-ignore
  const [before, mlp, after] = ["0·2", "MLP 0", "1·0"].map((name) => Number(places.get(name)?.x));
  assert.ok(before < mlp && mlp < after && titles.length === 3);
});

test("the words that heads look at most stand in the order of the text", () => {
  const reads = (/** @type {number} */ key, /** @type {number} */ weight) => ({
    key,
    weight,
    reads: { id: key, text: `w${key}` },
  });
  const all = [reads(9, 0.5), reads(2, 0.2), reads(9, 0.4), ...[3, 4, 5, 6, 7].map((key) => reads(key, 0.3))];
  assert.deepEqual(
    wordsRead(all).map(({ text }) => text),
    ["w3", "w4", "w5", "w6", "w7", "w9"],
  );
});

test("how faithful a circuit is says what the answers are", () => {
  const pair = (/** @type {number} */ id) => ({ row: 0, answer: { id, text: " kite" }, clean: 3, corrupted: 1 });
  const answer = /** @type {any} */ ({ kept: 0.912, heads: [{}], edges: [{}, {}], pairs: [pair(1), pair(1)] });
  assert.equal(
    circuitPlain(answer),
    "Over 2 other prompts, 1 head and 2 edges are enough: with everything else silenced, 91% of the pull towards " +
      "“kite” is left.",
  );
  assert.match(
    circuitPlain(answer, "with “hat” in place of “kite”"),
    /^In this text, with “hat” in place of “kite”, 1/,
  );
  assert.match(circuitPlain({ ...answer, mlps: [{}], route: "direct" }), / 1 head, 1 MLP and 2 edges are enough/);
  assert.match(circuitPlain({ ...answer, pairs: [pair(1), pair(2)] }), /towards the answers is left/);
  assert.match(
    circuitPlain({ ...answer, pairs: [{ ...pair(1), clean: -2 }] }),
    /91% of the pull away from “kite” is left/,
  );
});

test("what is left while a circuit is found", () => {
  const nodes = [0, 1, null].map((head) => ({ layer: 2, head, lost: 0.1 }));
  const words = (/** @type {any} */ left) => leftPlain(left).join(" ");
  assert.match(words({ nodes, edges: [], n_edges: null }), /^Left so far: 2 heads and 1 MLP\. They are enough; /);
  const edges = /** @type {any} */ ([{}, {}]);
  assert.match(
    words({ nodes, edges, n_edges: 9 }),
    /2 heads, 1 MLP and 9 edges\. .* The 2 that matter most are drawn\.$/,
  );
  const many = [0, 1, 2, 3, 4].map((head) => ({ ...nodes[0], head }));
  assert.match(words({ nodes: many, edges: [], n_edges: null }), /5 heads\. .* Up to 4 of each layer are drawn\.$/);
  assert.match(words({ nodes: nodes.slice(1, 2), edges, n_edges: 2 }), /1 head and 2 edges\. .* effect stays\.$/);
});

test("a graph keeps its height while nodes leave it", () => {
  const many = Array.from({ length: 8 }, (_, head) => /** @type {const} */ ([0, head]));
  const before = layOut(many);
  const after = layOut(many.slice(0, 1), 0, before.height);
  assert.equal(after.height, before.height);
  assert.ok(layOut(many.slice(0, 1)).height < before.height);
});

test("one head, and none", () => {
  assert.equal(layOut([[3, 1]]).places.size, 1);
  assert.equal(layOut([]).places.size, 0);
});

test("one arc for each pair of heads, with the strongest edge between them", () => {
  /** @type {import("../../../web/js/lens.js").EdgeInCircuit[]} */
  const edges = [
    { sender: [0, 1], receiver: [1, 2], way: "k", lost: 0.4 },
    { sender: [0, 1], receiver: [1, 2], way: "v", lost: -0.8 },
    { sender: [1, 2], receiver: null, way: null, lost: 0.6 },
    { sender: [0, null], receiver: [1, 2], way: "v", lost: 0.8 },
    { sender: [1, 2], receiver: [1, null], way: null, lost: 0.1 },
  ];
  assert.deepEqual(arcsOf(edges), [{ from: [0, 1], to: [1, 2], part: 1 }]);
});
