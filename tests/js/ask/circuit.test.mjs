import assert from "node:assert/strict";
import { test } from "node:test";

import { arcsOf } from "../../../web/js/look/ask/questions/circuit.mjs";
import { layOut } from "../../../web/js/look/ask/questions/circuit_graph.mjs";

const BOX = 124;

/** @param {[number, number][]} places */
const heads = (places) => places.map(([layer, head]) => ({ layer, head }));

test("boxes of one layer do not overlap, and a line down from a box crosses no other", () => {
  const found = heads([
    [0, 0],
    [0, 3],
    [0, 5],
    [2, 1],
    [4, 4],
    [4, 2],
  ]);
  const { places, width, logits } = layOut(found);
  const boxes = [...places.values()];
  assert.equal(boxes.length, found.length);
  for (const one of boxes) {
    assert.ok(one.x >= BOX / 2 && one.x <= width - BOX / 2 && one.y < logits.y);
    for (const other of boxes) {
      if (one === other) continue;
      if (one.y === other.y) assert.ok(Math.abs(one.x - other.x) > BOX);
      else assert.ok(Math.abs(one.x - other.x) > BOX / 2);
    }
  }
  assert.equal(places.get("L4 H2")?.y, places.get("L4 H4")?.y);
  assert.ok(Number(places.get("L0 H0")?.y) < Number(places.get("L2 H1")?.y));
});

test("one head, and none", () => {
  assert.equal(layOut(heads([[3, 1]])).places.size, 1);
  assert.equal(layOut([]).places.size, 0);
});

test("one arc for each pair of heads, with the strongest edge between them", () => {
  /** @type {import("../../../web/js/lens.js").EdgeInCircuit[]} */
  const edges = [
    { sender: [0, 1], receiver: [1, 2], way: "k", lost: 0.4 },
    { sender: [0, 1], receiver: [1, 2], way: "v", lost: -0.8 },
    { sender: [1, 2], receiver: null, way: null, lost: 0.6 },
  ];
  assert.deepEqual(arcsOf(edges), [{ from: [0, 1], to: [1, 2], part: 1 }]);
});
