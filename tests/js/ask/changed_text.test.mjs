// The other text that a question begins with, before anybody types one.

import assert from "node:assert/strict";
import { test } from "node:test";
import { changeWords, otherText } from "../../../web/js/look/ask/prompts/changed_text.mjs";

const token = (id, text) => ({ id, text });
const [A, KITE, NEW, TOY, BARE, STOP] = [" a", " kite", " new", " toy", "bird", "."].map((text, id) => token(id, text));
const words = (tokens) => tokens?.map(({ text }) => text).join("") ?? null;

test("every occurrence of the answer becomes the likeliest next word that the text does not have", () => {
  const text = [A, NEW, KITE, STOP, A, KITE];
  assert.equal(words(otherText(text, KITE, [KITE, NEW, STOP, BARE, TOY])), " a new toy. a toy");
});

test("without an earlier occurrence, without another word, or for a letter, there is none", () => {
  assert.equal(otherText([A, NEW], KITE, [TOY]), null);
  assert.equal(otherText([A, KITE], KITE, [KITE, A, STOP, BARE]), null);
  assert.equal(otherText([token(7, "e")], token(7, "e"), [token(8, "a")]), null);
});

test("one word that was changed is named, wherever it stands", () => {
  assert.equal(changeWords("My kite, the kite.", "My hat, the hat."), "with “hat” in place of “kite”");
  for (const other of ["His hat", "My red kite", "My, kite"]) {
    assert.equal(changeWords("My kite", other), "compared with the changed one");
  }
});
