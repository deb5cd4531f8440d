import assert from "node:assert/strict";
import { test } from "node:test";
import { SCALES, Scale, position, ticksOf } from "../../web/js/lib/drawing/scale.mjs";

const scale = (name, changes = {}) => new Scale({ scale: name, threshold: 0, hideFirst: false, ...changes });

test("every scale rises from no colour to full colour, and never falls", () => {
  for (const name of Object.keys(SCALES)) {
    const shades = Array.from({ length: 101 }, (_, i) => scale(name).shade(i / 100, 0, 1));
    assert.equal(shades[0], 0);
    assert.equal(shades[100], 255);
    assert.deepEqual(
      shades,
      shades.toSorted((a, b) => a - b),
    );
  }
});

test("the curves are what their names say", () => {
  assert.equal(scale("linear").shade(0.5, 0, 1), 128);
  assert.equal(scale("sqrt").shade(0.25, 0, 1), 128);
  assert.equal(scale("log").shade(0.01, 0, 1), 128); // halfway through four decades
  assert.equal(scale("log").shade(0.00001, 0, 1), 0);
});

test("the row maximum relates a weight to the largest shown one of its row", () => {
  const row = Float32Array.from([0.5, 0.25, 0.125]);
  assert.equal(scale("row").largest(row, 0, 3), 0.5);
  assert.equal(scale("row", { hideFirst: true }).largest(row, 0, 3), 0.25);
  assert.equal(scale("row").shade(0.25, 1, 0.5), 128);
  assert.equal(scale("row").shade(0, 1, 0), 0);
  assert.equal(scale("sqrt").largest(row, 0, 3), 1);
});

test("what is below the threshold or the hidden first token has no colour", () => {
  assert.equal(scale("linear", { threshold: 0.3 }).shade(0.29, 1, 1), 0);
  assert.equal(scale("linear", { threshold: 0.3 }).shade(0.3, 1, 1), 77);
  assert.equal(scale("linear", { hideFirst: true }).shade(1, 0, 1), 0);
});

test("ticks lie on their scale in order", () => {
  for (const name of Object.keys(SCALES)) {
    const places = ticksOf(name, 1e-7).map(([place]) => place);
    assert.equal(places[0], 0);
    assert.equal(places.at(-1), 1);
    assert.deepEqual(
      places,
      places.toSorted((a, b) => a - b),
    );
  }
});

test("a logarithmic scale ends at its floor, and says so", () => {
  assert.equal(position("log", 1e-6, 1e-6), 0);
  assert.ok(Math.abs(position("log", 1e-3, 1e-6) - 0.5) < 1e-9);
  const texts = ticksOf("log", 1e-6).map(([, text]) => text);
  assert.deepEqual([texts[0], texts.at(-1)], ["≤1e-6", "1"]);
});
