import assert from "node:assert/strict";
import { test } from "node:test";
import { sortCards } from "../../../web/js/look/panels/grid.mjs";

const card = (name, value, changes = {}) => ({ name, value, isHead: true, filtered: false, ...changes });
const CARDS = [card("a", 2), card("b", 3), card("mean", 9, { isHead: false }), card("c", 1), card("d", 2)];
const names = (cards) => cards.map(({ name }) => name).join(" ");

test("by layer all cards stay where they are, with or without means", () => {
  assert.equal(sortCards(CARDS, "", true), CARDS);
  assert.equal(names(sortCards(CARDS, "", false)), "a b c d");
});

test("sorted, there are only heads, and equal ones keep their order", () => {
  assert.equal(names(sortCards(CARDS, "high", true)), "b a d c");
  assert.equal(names(sortCards(CARDS, "low", false)), "c a d b");
  assert.equal(names(CARDS), "a b mean c d");
});

test("heads outside the range are left out", () => {
  assert.equal(names(sortCards([card("a", 1, { filtered: true }), card("b", 2)], "high", true)), "b");
});
