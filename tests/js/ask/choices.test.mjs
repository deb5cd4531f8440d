import assert from "node:assert/strict";
import { test } from "node:test";
import { readChoices, writeChoices } from "../../../web/js/look/state/choices.mjs";

const DEFAULTS = { method: "zero", about: "text", ids: "" };

test("choices are read back, and defaults are left out", () => {
  for (const [changes, text] of [
    [{}, ""],
    [{ about: "token" }, "about.token"],
    [{ method: "mean", ids: "A-_9" }, "method.mean~ids.A-_9"],
  ]) {
    const choices = { ...DEFAULTS, ...changes };
    assert.equal(writeChoices(choices, DEFAULTS), text);
    assert.deepEqual(readChoices(text, DEFAULTS), choices);
  }
});

test("choices that a question does not know are left out", () => {
  for (const text of ["x", "x.y", "toString.y", "method.", "method.a.b", "method.a b", "~~", ".mean"]) {
    assert.deepEqual(readChoices(text, DEFAULTS), DEFAULTS, text);
  }
});
