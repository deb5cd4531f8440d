// The waterfall of "Why this word?".

import assert from "node:assert/strict";
import { test } from "node:test";
import { openWindow } from "../widgets/small_dom.mjs";

openWindow("");
Object.assign(globalThis, { matchMedia: () => ({ matches: false, addEventListener: () => {} }) });
const { barsOf, causeWords, headsWithRows, largestHeads } = await import("../../../web/js/look/stage/why.mjs");

const ANSWER = {
  heads: [
    [1, -2],
    [4, 0.5],
  ],
  mlps: [0.25, 0.25],
  embedding: -1,
  biases: 0.5,
};

test("the bars follow one another and end at the score", () => {
  const bars = barsOf(ANSWER, [2, 1]);
  assert.deepEqual(
    bars.map(({ name, value, from, head }) => [name, value, from, head]),
    [
      ["Before any layer", -0.5, 0, undefined],
      ["All 2 MLPs", 0.5, -0.5, undefined],
      ["", -2, 0, 1],
      ["", 4, -2, 2],
      ["2 other heads, net", 1.5, 2, undefined],
    ],
  );
});

test("heads that are off are not among the others", () => {
  const off = {
    ...ANSWER,
    heads: [
      [1, 0],
      [4, 0.5],
    ],
  };
  const names = barsOf(off, [2], (head) => head === 1).map(({ name }) => name);
  assert.equal(names.at(-1), "2 other heads, net");
});

test("a model with one MLP and no other head says so", () => {
  const bars = barsOf({ heads: [[3]], mlps: [1], embedding: 0, biases: 0 }, [0]);
  assert.deepEqual(
    bars.map(({ name }) => name),
    ["Before any layer", "The MLP", ""],
  );
});

test("heads that work against a word are among the largest", () => {
  assert.deepEqual(largestHeads([0.1, -3, 2], 2), [1, 2]);
});

test("a head that adds more than one that copies has a row, too", () => {
  const adds = [0.7, 0, 2.1, 3, 0.6, -0.9];
  assert.deepEqual(headsWithRows(adds, [0, 3]), [0, 3, 2, 5]);
  assert.deepEqual(headsWithRows(adds, [3]), largestHeads(adds));
});

test("the sentence names the largest cause of the waterfall", () => {
  const part = { token: { id: 1, text: "." }, logit: 11.6, probability: 0.57 };
  const says = (/** @type {any} */ answer, /** @type {number[]} */ copying, own = largestHeads(answer.heads.flat())) =>
    causeWords({ ...part, ...answer }, barsOf(answer, own), copying)
      .map((each) => (typeof each === "string" ? each : each.textContent))
      .join("");
  const byMlps = { heads: [[0.4, 1.8]], mlps: [3, 2.5], embedding: 2, biases: 0.9 };
  const whole = "the whole score of 11.6 gives it 57%.";
  assert.equal(
    says(byMlps, [0]),
    `The largest part of the score of “.” comes from all 2 MLPs (+5.5); ${whole} ` +
      "Of the heads, head 1 of layer 0 adds most (+1.8).",
  );
  assert.equal(
    says({ ...byMlps, mlps: [0.1], embedding: 0 }, [0]),
    `The largest part of the score of “.” comes from head 1 of layer 0 (+1.8); ${whole}`,
  );
  assert.equal(
    says({ ...byMlps, heads: [[3, 3]] }, [0, 1]),
    "“.” is already in the text: 2 heads copy it and add +6.0 to its score of 11.6, which gives it 57%.",
  );
  assert.equal(
    says({ ...byMlps, heads: [[3, 3]], mlps: [1] }, [], []),
    `The largest part of the score of “.” comes from the 2 other heads together (+6.0); ${whole}`,
  );
  const against = { heads: [[-1]], mlps: [-1], embedding: -1, biases: 0 };
  assert.equal(says(against, []), `No part of the model adds to the score of “.”; ${whole}`);
});
