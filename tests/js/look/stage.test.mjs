// How much heads matter, how that looks, and what is said of it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { softmax } from "../../../web/js/lib/sampling.mjs";
import { fieldLayout, startsGroup } from "../../../web/js/look/stage/field.mjs";
import {
  gainsOf,
  kindOf,
  kindWords,
  looksOf,
  MATTERS,
  namedWords,
  opacityOf,
  widthOf,
} from "../../../web/js/look/stage/gains.mjs";
import { ghostsOf, SHOWN } from "../../../web/js/look/stage/ghosts.mjs";

const role = (/** @type {string} */ label) => /** @type {any} */ ({ label });

test("a gain is the part of the largest contribution, below 0 against the word", () => {
  assert.deepEqual(gainsOf([2, -1, 4, 0]), [0.5, -0.25, 1, 0]);
  assert.deepEqual(gainsOf([-2, 1]), [-1, 0.5]);
  assert.deepEqual(gainsOf([0, 0]), [0, 0]);
  assert.deepEqual(gainsOf([]), []);
});

test("without attribution, a head matters by its weight on one word, unless it rests", () => {
  const rows = [
    [0.9, 0.05, 0.05],
    [0.1, 0.8, 0.1],
    [0.1, 0.1, 0.8],
  ];
  assert.deepEqual(looksOf(rows), [0, 0.8, 0]);
});

test("width and strength grow with the gain, and heads that are not named are fog", () => {
  assert.equal(widthOf(0, 4.5), 0.75);
  assert.equal(widthOf(1, 4.5), 4.5);
  assert.ok(opacityOf(1, true) > opacityOf(MATTERS, true));
  assert.ok(opacityOf(MATTERS, true) > 3 * opacityOf(1, false));
  assert.equal(opacityOf(0.03, false), opacityOf(1, false));
  assert.equal(opacityOf(0.01, false), 0);
  for (const gain of [0.02, 0.3, 1]) {
    for (const isNamed of [true, false]) assert.equal(opacityOf(-gain, isNamed), opacityOf(gain, isNamed));
    assert.equal(widthOf(-gain, 4.5), widthOf(gain, 4.5));
  }
});

test("what a head does is its measured role, where it does that here; without one, where it looks here", () => {
  const even = [0.25, 0.25, 0.25, 0.25];
  assert.equal(kindOf(role("induction"), even, true), "copies");
  assert.equal(kindOf(role("induction"), [0.1, 0.6, 0.2, 0.1], false), "other");
  assert.equal(kindOf(role("previous token"), [0.2, 0.2, 0.35, 0.25], false), "previous");
  assert.equal(kindOf(role("previous token"), [0.1, 0.6, 0.2, 0.1], false), "other");
  assert.equal(kindOf(role("first token"), even, false), "first");
  assert.equal(kindOf(role("no clear role"), [0.1, 0, 0.9, 0], false), "other");
  assert.equal(kindOf(role("first token"), [0.1, 0, 0.9, 0], false), "other");
  assert.equal(kindOf(null, [0.1, 0, 0.9, 0], false), "previous");
  assert.equal(kindOf(null, [0.4, 0.2, 0.2, 0.2], false), "first");
  assert.equal(kindOf(null, even, false), "other");
  assert.equal(kindOf(null, [1], false), "first"); // a text of one word
});

test("a frame or dashes are the heads that the sentence names", () => {
  assert.equal(namedWords(true, 7, false), "Framed: these 7 heads.");
  assert.equal(namedWords(true, 1, true), "Dashed: the head that is off.");
  assert.equal(namedWords(false, 2, false), "Framed: these 2 heads, with the most attention to one word.");
  assert.equal(namedWords(true, 0, false), "");
});

test("letters are called letters", () => {
  assert.equal(kindWords("word").previous, "previous word");
  assert.equal(kindWords("letter").first, "first letter");
});

const texts = ["a", "b", "c", "d", "e", "f", "g", "h"];
const all = softmax(Float64Array.from([5, 4, 3, 2, 1, 0, -1, -2]));
const without = softmax(Float64Array.from([-2, 4, 3, 2, 1, 0, -1, 5]));

test("ghosts are the likeliest words and all others together, and add up to 1", () => {
  for (const off of [null, without]) {
    const ghosts = ghostsOf(all, off, texts, null);
    for (const name of /** @type {const} */ (["probability", "withAll"])) {
      const sum = ghosts.reduce((total, ghost) => total + ghost[name], 0);
      assert.ok(Math.abs(sum - 1) < 1e-12);
    }
    const named = ghosts.slice(0, -1).map(({ probability }) => probability);
    assert.deepEqual(
      named,
      [...named].sort((a, b) => b - a),
    );
    assert.equal(ghosts.at(-1)?.id, null);
    assert.equal(ghosts.length, SHOWN + 1);
  }
});

test("with heads off, the words that were and those that are the likeliest are both there", () => {
  const ghosts = ghostsOf(all, without, texts, null);
  assert.equal(ghosts[0].text, "h");
  const a = ghosts.find(({ text }) => text === "a");
  assert.equal(a?.withAll, all[0]);
  assert.equal(a?.probability, without[0]);
});

test("the word that stands in the text is always among the ghosts", () => {
  for (const off of [null, without]) assert.ok(ghostsOf(all, off, texts, 6).some(({ id }) => id === 6));
  assert.equal(ghostsOf(all, null, texts, 6).length, SHOWN + 1);
});

test("a small vocabulary has no other words", () => {
  const ghosts = ghostsOf(softmax(Float64Array.from([1, 2])), null, ["x", "y"], null);
  assert.deepEqual(
    ghosts.map(({ text }) => text),
    ["y", "x"],
  );
});

const SHAPES = [
  { n_layer: 8, n_head: 8, tile: 61 },
  { n_layer: 12, n_head: 12, tile: 39 },
  { n_layer: 2, n_head: 4, tile: 124 },
  { n_layer: 32, n_head: 32, n_kv_head: 8, tile: 13 },
];

for (const { tile, ...shape } of SHAPES) {
  test(`a field of ${shape.n_layer} x ${shape.n_head} fills its place and no more`, () => {
    const { width, height, gap, group } = fieldLayout(shape, 520);
    assert.equal(width, tile);
    const more = group > 1 ? shape.n_head / group - 1 : 0;
    assert.ok(shape.n_head * width + (shape.n_head - 1 + more) * gap <= 520);
    assert.ok(shape.n_layer * height + (shape.n_layer - 1) * gap <= 520);
    assert.ok(height <= width);
  });
}

test("a field may be lower than wide", () => {
  const { width, height } = fieldLayout({ n_layer: 8, n_head: 8 }, 520, 372);
  assert.deepEqual([width, height], [61, 43]);
});

test("what is written on a tile leaves its picture free", () => {
  const labels = [
    [4, 2, 398],
    [8, 8, 398],
    [8, 8, 254],
    [16, 30, 398],
  ].map(([n_head, n_layer, most]) => fieldLayout({ n_layer, n_head }, 520, most).label);
  assert.deepEqual(labels, ["role", "name", "name", "none"]);
});

test("30 layers of 16 heads keep the field's size, with flat tiles", () => {
  const { width, height, gap } = fieldLayout({ n_layer: 30, n_head: 16 }, 520);
  assert.ok(16 * (width + gap) > 490 && 30 * (height + gap) > 450);
});

test("tiles are named by layer and head; groups begin where their heads do", () => {
  const shape = { n_head: 8, n_kv_head: 2 };
  assert.deepEqual(
    [0, 1, 4, 5].map((head) => startsGroup([0, head], shape)),
    [false, false, true, false],
  );
  assert.ok(!startsGroup([0, 4], { n_head: 8 }));
});
