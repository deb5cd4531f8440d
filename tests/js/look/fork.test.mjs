// What is said of two texts that are compared: whether chance has a part in it, by the same rule on both sides.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openWindow } from "../widgets/small_dom.mjs";

openWindow("");
const { chanceWords } = await import("../../../web/js/look/compare/fork.mjs");

const text = (settings, state = "done", more = {}) => ({ state, settings, branch: null, ...more });
const drawn = text({ temperature: 0.8, seed: 5 });
const likeliest = text({ temperature: 0, seed: 5 });
const given = text({}, "read");

test("words that were drawn are drawn by chance, with temperature and seed named", () => {
  assert.deepEqual(chanceWords(drawn, drawn), [
    "By chance:",
    "on both sides the words after the prompt were drawn at temperature 0.8, seed 5, with the same random numbers.",
  ]);
  const [start, rest] = chanceWords(drawn, text({ temperature: 0.8, seed: 6 }));
  assert.equal(start, "By chance:");
  assert.ok(rest.startsWith("the words of A after its prompt were drawn at temperature 0.8, seed 5; the words of B"));
  assert.match(rest, /^.*; the words of B after its prompt were drawn at .*seed 6\.$/);
});

test("where no word was drawn, chance has no part", () => {
  assert.equal(chanceWords(likeliest, likeliest)[0], "Not by chance:");
  assert.match(chanceWords(likeliest, likeliest)[1], /likeliest word/);
  assert.match(chanceWords(given, given)[1], /given/);
  assert.deepEqual(chanceWords(drawn, given), [
    "Partly by chance:",
    "the words of A after its prompt were drawn at temperature 0.8, seed 5; " +
      "the words of B were given, not written by a model.",
  ]);
  assert.deepEqual(chanceWords(drawn, given, true), ["Not by chance:", "both read the same words."]);
});

test("a word that was chosen is not said to be drawn", () => {
  const branch = text({ temperature: 0.8, seed: 5 }, "done", { branch: { at: 3, token: " cat", instead: "" } });
  assert.match(chanceWords(drawn, branch)[1], /B begins with a word that you chose: “cat”\. /);
});
