import assert from "node:assert/strict";
import { test } from "node:test";
import { clamp, counted, exact, fixed, full, measured, number, surprise } from "../../web/js/lib/numbers.mjs";
import {
  isJoined,
  characters,
  ending,
  endsWithSpace,
  nameWithBytes,
  pictureName,
  plainly,
  promptText,
  readAfter,
  sentence,
  shorten,
  spoken,
  spokenApart,
  spokenAt,
  textOf,
  unitOf,
  visible,
  spokenInWord,
  whyQuestion,
  wordUpTo,
} from "../../web/js/lib/words.mjs";
import { clock, cost, duration, megabytes } from "../../web/js/train/words.mjs";
import { chance } from "../../web/js/train/words.mjs";

test("a token is in quotes in a sentence, unless it has a name", () => {
  const tokens = [" kite", ",", " ", "<|endoftext|>"];
  assert.deepEqual(tokens.map(spoken), ["“kite”", "“,”", "a space", "the end of the text"]);
  assert.equal(plainly("<|endoftext|>"), "end of text");
  assert.deepEqual(spokenApart(" kite", "kite"), ["“·kite”", "“kite”"]);
  assert.deepEqual(spokenApart(" kite", " big"), ["“kite”", "“big”"]);
});

test("a word up to a token that continues it", () => {
  const read = (...texts) =>
    wordUpTo(
      texts.map((text) => ({ text })),
      texts.length - 1,
    );
  assert.equal(read(" the", " b", "l", "ue"), "blue");
  assert.equal(read(" the", " blue"), "blue");
  assert.equal(read(" cat", "'s"), "cat's");
  assert.equal(read(" end", "."), ".");
  assert.equal(read("b", "l", "u"), "u"); // letters stand for themselves
});

test("spaces and line breaks of a token can be seen", () => {
  assert.equal(visible(" a b\n\t\r"), "·a·b↵⇥␍");
  assert.equal(visible(""), "∅");
});

test("a space at the end is one after a word", () => {
  assert.deepEqual(["a ", "a  ", "a\n\tb ", "é "].map(endsWithSpace), [true, true, true, true]);
  assert.deepEqual(["a", "", " ", "  ", "a\n", "a\n    ", "a \n", "a\t"].map(endsWithSpace), Array(8).fill(false));
});

const PARTS = [
  { text: "a" },
  { text: " <0xE2><0x80>", bytes: " <0xE2><0x80>" },
  { text: "“", bytes: "<0x9C>" },
  { text: "<0xD0>", bytes: "<0xD0>" },
  { text: "Х", bytes: "<0xA5>" },
  { text: "и" },
  { text: "<0xF0><0x9F>", bytes: "<0xF0><0x9F>" },
  { text: "<0x98>", bytes: "<0x98>" },
];

test("a character of several tokens stands on the last of them", () => {
  assert.equal(textOf(PARTS), "a “Хи");
  assert.equal(textOf([{ text: "<0xD0>" }, { text: "a" }]), "<0xD0>a"); // never completed, or a text of these signs
  assert.deepEqual(PARTS.slice(2, 5).map(nameWithBytes), ["““” (<0x9C>)", "“<0xD0>”", "“Х” (<0xA5>)"]);
  assert.deepEqual(
    [0, 1, 2, 3, 6].map((at) => spokenAt(PARTS, at)),
    ["“a”", "a part of ‘“’", "‘“’", "a part of “Х”", "“<0xF0><0x9F>”"],
  );
  assert.equal(wordUpTo(PARTS, 5), "Хи");
  assert.equal(wordUpTo(PARTS, 3), "<0xD0>");
});

test("a prompt has neither what the vocabulary puts before it nor the names of bytes", () => {
  const pointer = { before: "<s> " }; // of Llama 2, which has no token for these letters
  const tokens = [
    { text: "<s>" },
    { text: " " },
    { text: "<0xD0>", bytes: "<0xD0>" },
    { text: "Х", bytes: "<0xA5>" },
    { text: " or" },
    { text: "<0xFF>" },
    { text: " <0x41>" },
    { text: "<0xD0>", bytes: "<0xD0>" },
  ];
  assert.equal(promptText({ tokens, pointer }), "Х or\uFFFD <0x41>");
  assert.deepEqual(
    [0, 1, 2, 3, 4, 5].map((n) => promptText({ tokens, pointer }, n)),
    ["", "", "", "", "Х", "Х or"],
  );
  assert.equal(promptText({ tokens: tokens.slice(4), pointer: { before: " " } }, 1), "or"); // after a context shift
  assert.equal(promptText({ tokens: [{ text: " a" }], pointer: { before: "" } }), " a");
});

test("a token of the vocabulary reads as the character that it completes", () => {
  assert.equal(readAfter("<0x80>", PARTS), "😀");
  assert.equal(readAfter("<0x98>", PARTS.slice(0, 7)), "<0x98>"); // one byte is still missing
  assert.equal(readAfter("<0x9D>", PARTS.slice(0, 2)), "”");
  assert.equal(readAfter("<0xD0>", PARTS.slice(0, 5)), "<0xD0>");
  assert.equal(readAfter("<0xFF>", PARTS), "<0xFF>");
  assert.equal(readAfter("x", PARTS), "x");
});

test("long texts end in an ellipsis", () => {
  assert.equal(shorten("abcdef", 6), "abcdef");
  assert.equal(shorten("abcdefg", 6), "abcde…");
});

test("every picture of a model has a name", () => {
  const shape = { n_layer: 2, n_head: 3 };
  const places = [
    [0, 0],
    [1, 2],
    [1, 3],
    [0, 4],
    [2, 3],
  ];
  const expected = ["0·0", "1·2", "Mean of layer 1", "Rollout of layer 0", "Mean of all heads"];
  assert.deepEqual(
    places.map((place) => pictureName(place, shape)),
    expected,
  );
});

test("a cell in a sentence", () => {
  const tokens = [{ text: "To" }, { text: " be" }];
  assert.equal(sentence(tokens, 1, 0, 0.25), "“·be” at position 1 (query) looks at “To” at position 0 (key): 0.2500");
});

test("weights have four decimals, small ones powers of ten", () => {
  assert.deepEqual([0, 1, 0.001, 0.00099, 1e-9].map(exact), ["0.0000", "1.0000", "0.0010", "9.90e-4", "1.00e-9"]);
  const weights = [0, 1, 0.1, 0.0033801, 1 / 3, 1e-9].map(Math.fround);
  assert.deepEqual(weights.map(full), ["0", "1", "0.1", "0.0033801", "0.33333334", "1e-9"]);
});

test("numbers of the lessons", () => {
  assert.deepEqual(
    [3, -3, 0.5, -0.00001, 0.00004].map((value) => number(value)),
    ["3", "−3", "0.5000", "−1.0e−5", "4.0e−5"],
  );
  assert.deepEqual(
    [-0.00001, -1.5, 2].map((value) => fixed(value)),
    ["0.0000", "−1.5000", "2.0000"],
  );
});

test("units, plurals and limits", () => {
  assert.equal(measured(1.234, { unit: "bits" }), "1.23 bits");
  assert.equal(measured(0.1234, { unit: "" }), "0.123");
  assert.equal(counted(1, "token"), "1 token");
  assert.equal(counted(0, "token"), "0 tokens");
  assert.deepEqual([clamp(-1, 0, 5), clamp(7, 0, 5), clamp(3, 0, 5)], [0, 5, 3]);
});

test("surprise is in bits, and unknown without a log-probability", () => {
  assert.equal(surprise({ logprob: Math.log(0.125) })?.toFixed(9), "3.000000000");
  assert.equal(surprise({ logprob: null }), null);
});

test("what a size costs is said in words", () => {
  assert.equal(cost({ n_parameters: 348_096, seconds: 60 }), "0.35 million weights, about a minute");
  assert.deepEqual([20, 54, 60, 180, 3600].map(duration), [
    "20 seconds",
    "54 seconds",
    "a minute",
    "3 minutes",
    "an hour",
  ]);
  assert.deepEqual([0, 9.9, 61].map(clock), ["0:00", "0:09", "1:01"]);
  assert.deepEqual([999, 5_000_000].map(megabytes), ["999 bytes", "5.0 MB"]);
});

test("a probability is never rounded to 0 or to 100%", () => {
  const written = [0.5, 0.2304, Math.exp(-6.055), 1e-5, 0.9987].map((p) => chance(-Math.log(p)));
  assert.deepEqual(written, ["50%", "23%", "0.23%", "less than 0.01%", "99.9%"]);
});

test("texts are shortened between characters, at either end", () => {
  for (const one of ["a", "😀", "👍🏽", "é", "🇩🇪", "👨‍👩‍👧"]) {
    const text = one.repeat(12);
    assert.equal(shorten(text, 5), `${one.repeat(4)}…`);
    assert.equal(ending(text, 5), `…${one.repeat(5)}`);
    assert.equal(shorten(text, 12), text);
    assert.equal(ending(text, 12), text);
    assert.deepEqual(characters(text), Array(12).fill(one));
  }
});

test("a text of single characters, of however many units, is one of letters", () => {
  const unit = (/** @type {string[]} */ ...texts) => unitOf({ tokens: texts.map((text) => ({ text })) });
  assert.equal(unit("a", "😀", "\n"), "letter");
  assert.equal(unit("a", "😀😀"), "word");
  assert.equal(unit(), "word");
});

test("a token is said with the word that it is a part of", () => {
  const tokens = [" L", "ily", " had", " a", " bl", "ue", " cat", "."].map((text) => ({ text }));
  const said = tokens.map((_, at) => spokenInWord(tokens, at));
  assert.deepEqual(said, [
    "“L” in “Lily”",
    "“ily” in “Lily”",
    "“had”",
    "“a”",
    "“bl” in “blue”",
    "“ue” in “blue”",
    "“cat”",
    "“.”",
  ]);
  const letters = [..."Look"].map((text) => ({ text }));
  assert.equal(spokenInWord(letters, 1), "“o”");
});

test("a token is joined to the word before it where no line may end between them", () => {
  const joined = (...texts) =>
    isJoined(
      texts.map((text) => ({ text })),
      texts.length - 1,
    );
  assert.ok(joined(" bl", "ue"));
  assert.ok(joined(" flew", ","));
  assert.ok(joined(" can", "’t"));
  assert.ok(joined(' "', "Look"));
  assert.ok(!joined(" blue", " hat"));
  assert.ok(!joined("said", "\n"));
  assert.ok(!joined("said.\n", "Tom"));
  assert.ok(!joined("Tom"));
  assert.ok(!joined("f", "l")); // letter by letter
  assert.ok(!joined("漢字", "かな")); // of which any may begin a line
});

test("why a token comes next is asked so that a mark reads well, too", () => {
  const questions = [" kite", "!", '."', "\n", "7"].map((text) => whyQuestion(text, spoken(text)).join(""));
  const [kite, mark, marks, line, digit] = questions;
  assert.deepEqual([kite, line, digit], ["Why “kite”?", "Why a line break?", "Why “7”?"]);
  assert.deepEqual([mark, marks], ["Why does “!” come next?", 'Why does ‘."’ come next?']);
});
