// Sliders: their tracks are filled up to their values.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { setRange } from "../../../web/js/widgets/controls.mjs";

test("a slider is filled up to its value, also between other ends", () => {
  let part = "";
  const style = { setProperty: (/** @type {string} */ _name, /** @type {string} */ value) => (part = value) };
  const range = /** @type {any} */ ({ min: "0", max: "10", value: "0", style });
  setRange(range, 5);
  assert.equal(part, "0.5");
  setRange(range, 5, { max: 20 });
  assert.deepEqual([part, range.max], ["0.25", "20"]);
  setRange(range, 0, { min: -2, max: 2 });
  assert.equal(part, "0.5");
  setRange(range, 3, { min: 3, max: 3 });
  assert.equal(part, "0");
});

test("all sliders of the page are made in one way", () => {
  const js = new URL("../../../web/js/", import.meta.url);
  const files = readdirSync(js, { recursive: true }).map(String);
  const sources = files.filter((file) => file.endsWith(".mjs") && file !== "widgets/controls.mjs");
  assert.ok(sources.length > 100);
  const made = sources.filter((file) => /["']range["']/.test(readFileSync(new URL(file, js), "utf8")));
  assert.deepEqual(made, []);
});
