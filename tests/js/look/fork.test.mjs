// What is said of two texts that are compared: what was found, and whether chance has a part in it, by the same rule on
// both sides.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openWindow } from "../widgets/small_dom.mjs";

openWindow("");
const { findingWords, fromFirstChange, likeliestOf, whyAlike } =
  await import("../../../web/js/look/compare/finding.mjs");
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

const row = (word, ids, a, b) => ({ text: word, ids, a, b, difference: null });
const KITE = row(" kite", [7, 7], 0.943, 0.349);
const NEW = row(" new", [8, 8], 0.048, 0.6235);
const MY = ["“my”", "“my”"];
const say = (words, before = MY) => findingWords(words, before).join("");

test("a text read with and without some heads names the heads of both readings", () => {
  const heads = ["with all heads", "without 8 heads"];
  const found = { a: KITE, b: NEW };
  const said = "After “my”, with all heads: “kite” 94%; without 8 heads: “new” 62%. “kite” falls from 94% to 35%.";
  assert.equal(findingWords(found, MY, heads).join(""), said);
  const alike = findingWords({ a: KITE, b: KITE }, MY, heads).join("");
  assert.equal(alike, "After “my”, both expect “kite”: with all heads 94%, without 8 heads 35%.");
});

test("two texts that expect different words say what became of the word of A", () => {
  const found = likeliestOf([NEW, KITE], 7, 8);
  assert.equal(say(found), "After “my”, A expects “kite” (94%), B “new” (62%). “kite” falls from 94% to 35%.");
  assert.deepEqual(
    findingWords(found, MY).filter((_, at) => at % 2),
    ["“kite”", "“new”"],
  );
  const risen = { a: row(" kite", [7, 7], 0.2, 0.3), b: NEW };
  assert.match(say(risen), /“kite” rises from 20% to 30%\.$/);
  assert.match(say({ a: row(" kite", [7, 7], 0.2, 0.2001), b: NEW }), /“kite” has 20% in both\.$/);
});

test("two texts may expect the same word", () => {
  const found = likeliestOf([KITE], 7, 7);
  assert.equal(say(found), "After “my”, both expect “kite”: A with 94%, B with 35%.");
  assert.equal(say(found, ["“my”", "“a”"]), "Both expect “kite”, A after “my”, B after “a”: A with 94%, B with 35%.");
});

test("texts that have read different words last name both", () => {
  const words = say({ a: KITE, b: NEW }, ["“my”", "“a”"]);
  assert.equal(words, "A after “my” expects “kite” (94%), B after “a” “new” (62%). “kite” falls from 94% to 35%.");
});

test("a word may be missing in the vocabulary of B, and a row in what is known", () => {
  const alone = row(" kite", [7, null], 0.9, null);
  const other = row(" k", [null, 3], null, 0.5);
  assert.match(say(likeliestOf([alone, other], 7, 3)), /B “k” \(50%\)\. The vocabulary of B has no “kite”\.$/);
  assert.equal(likeliestOf([KITE], 7, 8), null);
  assert.match(say({ a: row("<|endoftext|>", [0, 0], 0.9, 0), b: NEW }), /The end of the text falls from 90% to 0%\.$/);
});

const { Alignment } = await import("../../../web/js/look/compare/alignment.mjs");

/** Two texts of tokens between bars, the first `shared` of which are the same, and how many pieces are aligned. */
function texts(a, b, shared, pieces, divergence = null) {
  const [left, right] = [a, b].map((line) => line.split("|").map((word) => ({ text: word })));
  const all = Array.from({ length: pieces }, (_, i) => ({ a0: i, a1: i + 1, b0: i, b1: i + 1, same: i < shared }));
  const store = (tokens) => ({ tokens, length: tokens.length });
  return {
    alignment: new Alignment(all, divergence),
    stores: { a: store(left), b: store(right) },
    firstRow: divergence ?? pieces,
  };
}

test("where no head can differ, it is said why", () => {
  assert.match(whyAlike(texts("a|b|c", "a|b", 2, 2)), /A begins with all of B/);
  assert.match(whyAlike(texts("a|b", "a|b|c", 2, 2)), /B begins with all of A/);
  assert.match(whyAlike(texts("a|b", "a|b", 2, 2)), /the same text/);
  assert.match(whyAlike(texts("x|y", "z", 0, 0, 0)), /^$/); // nothing is aligned: nothing is said of the heads
  assert.match(whyAlike(texts("a|b", "a|b|c", 2, 2, 2)), /no token after the texts diverge/);
  assert.equal(whyAlike(texts("a|b", "a|c", 1, 2, 1)), "");
});

test("where only the last word was changed, the heads are compared from there", () => {
  const words = fromFirstChange(texts(" at| my| kite", " at| his", 1, 2, 1));
  assert.match(words, /from “my” in A to “his” in B: the first words that differ/);
});

const { OwnText, UNCHANGED } = await import("../../../web/js/look/compare/compare_menu.mjs");
const { PairNext } = await import("../../../web/js/look/compare/pair_next.mjs");

/** A text of tokens between bars that was read. */
function read(run, line) {
  const tokens = line.split("|").map((word, id) => ({ id, text: word }));
  const pointer = { run, state: "read", sha256: "a", context_length: 64, head_mask: null };
  return { tokens, pointer, length: tokens.length };
}

test("Enter compares a second text, and the first one itself is refused with a sentence", async () => {
  const asked = [];
  const readText = async (words) => {
    asked.push(words);
    return "";
  };
  const form = new OwnText(read("b", "my| kite"), { first: read("a", "my| drum"), rereads: { readText } }, () => {});
  globalThis.document.body.append(form.element);
  const enter = (words, more = {}) => {
    form.field.value = words;
    const key = { key: "Enter", bubbles: true, cancelable: true, ...more };
    form.field.dispatchEvent(new globalThis.KeyboardEvent("keydown", key));
  };
  form.open();
  assert.equal(form.field.value, "my kite");
  enter("my drum");
  assert.deepEqual([asked, form.problem.textContent, form.problem.hidden], [[], UNCHANGED, false]);
  enter("");
  assert.match(form.problem.textContent, /^The text is empty/);
  enter("my ball", { shiftKey: true }); // a line break
  enter("my ball", { isComposing: true });
  assert.deepEqual(asked, []);
  enter("my ball");
  assert.deepEqual([asked, form.problem.hidden], [["my ball"], true]);
});

test("the headline is that of the words that both texts expect after their own last words", async () => {
  const words = [" drum", " kite", " red"];
  globalThis.fetch = async () => Response.json(words);
  /** The logits after the last token are the logarithms of `chances`. */
  const side = (run, line, chances) => {
    const store = read(run, line);
    const after = (position) => (position === store.length - 1 ? chances : chances.toReversed());
    const logits = async (position) => Float32Array.from(after(position), Math.log);
    return { ...store, fetcher: { logits }, report: assert.fail };
  };
  const stores = { a: side("a", "his| red| drum| my", [0.8, 0.15, 0.05]), b: side("b", "his| my", [0.1, 0.6, 0.3]) };
  const pair = { stores, progress: [], place: [], chosen: null, isAligned: true };
  pair.asked = (name) => stores[name].length - 1;
  const { finding } = new PairNext(pair);
  while (!finding.textContent) await new Promise(setImmediate);
  const said = "After “my”, A expects “drum” (80%), B “kite” (60%). “drum” falls from 80% to 10%.";
  assert.equal(finding.textContent, said);
});
