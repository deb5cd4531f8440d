import assert from "node:assert/strict";
import { test } from "node:test";

import {
  applyEdit,
  decodeText,
  encodeText,
  findEdit,
  readEdit,
  writeEdit,
} from "../../../web/js/look/ask/patching/edit.mjs";

test("an edit turns one text into the other, and survives a link", () => {
  for (const [from, to] of [
    ["named Lily.", "named Mia."],
    ["aa", "aaa"],
    ["aaa", "aa"],
    ["", "x"],
    ["naïve — “ok”", "naïve — “no”"],
  ]) {
    const edit = findEdit(from, to);
    assert.equal(applyEdit(from, edit), to);
    const code = writeEdit(edit);
    assert.match(code, /^[\w-]+$/);
    assert.deepEqual(readEdit(code), edit);
  }
  assert.equal(findEdit("same", "same"), null);
  assert.equal(readEdit(writeEdit(null)), null);
});

test("what is no edit changes nothing", () => {
  for (const code of ["", "none", "1-2", "x-1-YQ", "1-1-*"]) assert.equal(readEdit(code), null);
  assert.equal(applyEdit("short", { at: 4, removed: 3, text: "x" }), "short");
  assert.equal(decodeText("_w"), null); // no UTF-8
  assert.equal(decodeText(encodeText(" Mia")), " Mia");
});
