import assert from "node:assert/strict";
import { test } from "node:test";

import {
  changeWords,
  differenceWords,
  favoured,
  lastTokenWarning,
  nothingToCarry,
  verdict,
} from "../../../web/js/look/ask/questions/patching.mjs";
import { characters } from "../../../web/js/lib/words.mjs";
import {
  applyEdit,
  decodeText,
  encodeText,
  findEdit,
  readEdit,
  writeEdit,
} from "../../../web/js/look/state/choices.mjs";

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

test("an edit takes and gives whole characters", () => {
  const whole = ["😀", "😁", "👍", "👍🏽", "e", "é", "é", "🇩🇪", "🇪🇸", "👨‍👩‍👧", "👨‍👩‍👦", "❤", "❤️", "한", "क्षि", "\r\n"];
  for (const one of whole)
    for (const other of whole) {
      for (const [before, after] of [
        ["", ""],
        ["I like ", "!"],
        ["🇫🇷🇩🇪", "🇩🇪"],
        ["😀", "é"],
      ]) {
        const [from, to] = [before + one + after, before + other + after];
        const edit = readEdit(writeEdit(findEdit(from, to)));
        assert.equal(applyEdit(from, edit), to);
        if (!edit) continue;
        const [start, end] = [edit.at, edit.at + edit.removed];
        for (const cut of [start, end]) assert.equal(characters(from).join("|"), cutAt(from, cut), `${from} at ${cut}`);
        assert.equal(edit.text.isWellFormed(), true);
      }
    }
});

/** The characters of a text that is cut at a place first: the same ones if that is not within one. */
const cutAt = (/** @type {string} */ text, /** @type {number} */ at) =>
  [...characters(text.slice(0, at)), ...characters(text.slice(at))].join("|");

test("an edit from a link that would leave half a character changes nothing", () => {
  assert.equal(applyEdit("a😀b", { at: 2, removed: 1, text: "x" }), "a😀b");
  assert.equal(applyEdit("a😀b", { at: 1, removed: 1, text: "" }), "a😀b");
  assert.equal(applyEdit("a😀b", { at: 1, removed: 2, text: "x" }), "axb");
});

test("an invalid edit changes nothing", () => {
  for (const code of ["", "none", "1-2", "x-1-YQ", "1-1-*"]) assert.equal(readEdit(code), null);
  assert.equal(applyEdit("short", { at: 4, removed: 3, text: "x" }), "short");
  assert.equal(decodeText("_w"), null); // no UTF-8
  assert.equal(decodeText(encodeText(" Mia")), " Mia");
});

test("where two texts differ, and what that says about the heads", () => {
  const text = (words) => words.split(" ").map((word) => ({ id: word.length * 100 + word.charCodeAt(0), text: word }));
  const [one, other, both] = ["Lily ran and saw", "Ben ran and saw", "Ben ran and hid"].map(text);
  assert.equal(differenceWords(one, other), "The two texts differ in token 0 (“Lily” / “Ben”).");
  assert.equal(changeWords(one, other), "The changed text has “Ben” in place of “Lily”.");
  assert.equal(
    differenceWords(one, both),
    "The two texts differ in token 0 (“Lily” / “Ben”) and token 3 (“saw” / “hid”), so a share may be due to any of " +
      "these.",
  );
  assert.equal(lastTokenWarning(one, other, 0, "restores"), "");
  assert.match(lastTokenWarning(one, both, 0.57, "restores"), /^The last token differs too: .* alone restores 57%/);
  /** @type {[string, string]} */
  const words = ["“a”", "“b”"];
  const weak = verdict(words, { name: "head 2 of layer 3", value: 0.14 }, "restores");
  assert.match(weak, /^No single head carries “a” rather than “b”: .* 14% .* less than 20%/);
  const strong = verdict(words, { name: "head 2 of layer 1", value: 0.9 }, "restores");
  assert.match(strong, /^Head 2 of layer 1 carries “a” rather than “b” most: .* 90%/);
  const [answer, wrong] = words;
  assert.deepEqual(favoured({ clean: 1, corrupted: -2 }, answer, wrong), ["“a”", "“b”"]);
  assert.deepEqual(favoured({ clean: 1, corrupted: 2 }, answer, wrong), ["“b”", "“a”"]);
  assert.match(nothingToCarry({ clean: 2.88, corrupted: 2.94 }, answer, wrong), /2\.8800 in this text and 2\.9400 in /);
  assert.equal(nothingToCarry({ clean: 2.88, corrupted: -0.5 }, answer, wrong), "");
});
