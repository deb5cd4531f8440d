import assert from "node:assert/strict";
import { test } from "node:test";
import { ownSettings } from "../../../web/js/look/settings.mjs";

const CONTROLS = [
  { name: "temperature", label: "temperature", word: "", help: "", least: 0, most: 2 },
  { name: "top_k", label: "top-k (0 = all)", word: "", help: "", least: 0, most: 100 },
  { name: "seed", word: "", help: "" },
];

test("a model's own settings are named, and used where a slider can show them", () => {
  const { sentence, usable } = ownSettings({ temperature: 0.6, top_k: 20 }, CONTROLS);
  assert.equal(sentence, "The model’s own settings: temperature 0.6, top-k 20.");
  assert.deepEqual(usable, { temperature: 0.6, top_k: 20 });
});

test("what no slider can show is named too", () => {
  const { sentence, usable } = ownSettings({ temperature: 3, top_k: 0, repetition_penalty: 1.1 }, CONTROLS);
  const not = "(which cannot be set here)";
  assert.equal(sentence, `The model’s own settings: temperature 3 ${not}, top-k 0, repetition penalty 1.1 ${not}.`);
  assert.deepEqual(usable, { top_k: 0 });
});

test("a model without settings of its own offers none", () => {
  assert.deepEqual(ownSettings({}, CONTROLS), { sentence: "", usable: {} });
});
