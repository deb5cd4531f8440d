// Which tokens of two texts belong together, and what the differences between their heads are.

import assert from "node:assert/strict";
import { test } from "node:test";
import { HeadWeights } from "../../web/js/lib/triangle.mjs";
import { isOwn } from "../../web/js/look/state/pointer.mjs";
import { align } from "../../web/js/look/compare/alignment.mjs";
import { Difference, firstDifferingRow } from "../../web/js/look/compare/difference.mjs";
import { hasPlace, matchingPlace } from "../../web/js/look/compare/linked_heads.mjs";
import { logSoftmax } from "../../web/js/lib/sampling.mjs";
import { nextRows } from "../../web/js/look/compare/next_tokens.mjs";
import { maskWords, sideTitles } from "../../web/js/look/compare/titles.mjs";
import { changeSentence, tokenChanges } from "../../web/js/look/compare/token_changes.mjs";

/** A text of tokens between bars; equal tokens have equal ids. */
const text = (line, n_prompt = 1) => ({
  n_prompt,
  tokens: line.split("|").map((part) => ({ text: part, id: Number.parseInt(Buffer.from(part).toString("hex"), 16) })),
});
const pieces = (alignment) =>
  alignment.pieces.map(({ a0, a1, b0, b1, same }) => [a0, a1, b0, b1, same].map(Number).join(" "));

test("tokens at the same place belong together, and are the same until the texts part", () => {
  const alignment = align(text("a|b|c|d|e"), text("a|b|x|d"), true);
  assert.deepEqual(pieces(alignment), ["0 1 0 1 1", "1 2 1 2 1", "2 3 2 3 0", "3 4 3 4 0"]); // d may be a coincidence
  assert.deepEqual([alignment.parting, alignment.partsAt("a"), alignment.partsAt("b")], [2, 2, 2]);
  assert.ok(alignment.isTokenByToken);
  assert.deepEqual([alignment.stepOf("a", 4), alignment.tokenAt("b", 4), alignment.tokenAt("b", 3)], [4, 4, 3]);
  const grows = align(text("a|b|c"), text("a|b"), true);
  assert.deepEqual([grows.parting, grows.pieces.length], [null, 2]); // the shorter one may still be written
});

test("in prompts the same token at the same place is no coincidence", () => {
  const alignment = align(text("When|Tom|and|Jim|went", 4), text("When|Ann|and|Sue|went", 5), true);
  assert.deepEqual(
    alignment.pieces.map(({ same }) => same),
    [true, false, true, false, true], // all of the second text was given
  );
  const written = align(text("When|Tom|and|Jim|went", 4), text("When|Ann|and|Sue|went", 4), true);
  assert.deepEqual(
    written.pieces.map(({ same }) => same),
    [true, false, true, false, false],
  );
  assert.equal(alignment.parting, 1);
});

test("with two tokenizers the least pieces with common ends belong together", () => {
  const alignment = align(text("t|h|e| |c|a|t"), text("the| c|at"), false);
  assert.deepEqual(pieces(alignment), ["0 3 0 1 1", "3 5 1 2 1", "5 7 2 3 1"]);
  assert.equal(alignment.parting, null);
  assert.ok(!alignment.isTokenByToken);
  const steps = ["a", "b"].map((side) => [0, 1, 2, 3].map((step) => alignment.tokenAt(side, step)));
  assert.deepEqual(steps, [
    [0, 3, 5, 7],
    [0, 1, 2, 3],
  ]);
  assert.deepEqual([alignment.stepOf("a", 4), alignment.stepOf("b", 2), alignment.stepOf("b", 3)], [1, 2, 3]);
  assert.deepEqual([alignment.first("a", 1), alignment.last("a", 1), alignment.pieceOf("a", 6)], [3, 4, 2]);
  // A piece whose end one text has not reached yet is left out, and is no difference.
  const cut = align(text("t|h|e| |c"), text("the| cat"), false);
  assert.deepEqual([pieces(cut), cut.parting], [["0 3 0 1 1"], null]);
  const parted = align(text("t|h|e|y|s"), text("the|m|s"), false);
  assert.deepEqual(
    [pieces(parted), parted.partsAt("a"), parted.partsAt("b")],
    [["0 3 0 1 1", "3 4 1 2 0", "4 5 2 3 0"], 3, 1],
  );
});

test("with one tokenizer both ways align alike", () => {
  const [a, b] = [text("a|bc|d|e"), text("a|bc|x|e")];
  assert.deepEqual(pieces(align(a, b, false)), pieces(align(a, b, true)));
});

/** The weights of a head, from its rows. */
function weights(...rows) {
  const all = new HeadWeights();
  all.append(Float32Array.from(rows.flat()));
  return all;
}

test("a difference is B less A, exactly, and nothing where the key is another token", () => {
  const a = weights([1], [0.3, 0.7], [0.2, 0.3, 0.5]);
  const b = weights([1], [0.6, 0.4], [0.1, 0.1, 0.8]);
  const difference = new Difference(align(text("a|b|c"), text("a|b|x"), true), { a, b });
  assert.equal(difference.rows, 3);
  assert.equal(difference.at(1, 0).difference, Math.fround(0.6) - Math.fround(0.3));
  assert.deepEqual(difference.at(2, 1), {
    a: Math.fround(0.3),
    b: Math.fround(0.1),
    difference: Math.fround(0.1) - Math.fround(0.3),
  });
  assert.ok(Number.isNaN(difference.at(2, 2).difference));
  assert.ok(Math.abs(difference.largest - 0.3) < 1e-6);
  assert.equal(difference.values.rows, 3);
  const growing = new Difference(align(text("a|b|c"), text("a|b|c"), true), { a, b: weights([1], [0.6, 0.4]) });
  assert.equal(growing.rows, 2); // what both have read
});

test("the weights on a piece are summed", () => {
  const a = weights([1], [0.5, 0.5], [0.25, 0.25, 0.5]);
  const b = weights([1], [0.125, 0.875]);
  const difference = new Difference(align(text("x|y|z"), text("xy|z"), false), { a, b });
  assert.equal(difference.rows, 2);
  assert.deepEqual(difference.at(0, 0), { a: 1, b: 1, difference: 0 });
  assert.deepEqual(difference.at(1, 0), { a: 0.5, b: 0.125, difference: -0.375 });
  assert.equal(difference.at(1, 1).difference, 0.375);
});

test("one reader differs from itself only after the parting", () => {
  const parted = align(text("a|b|c"), text("a|b|x"), true);
  const same = { sha256: "1", head_mask: null };
  assert.equal(firstDifferingRow(parted, same, same), 2);
  assert.equal(firstDifferingRow(parted, same, { ...same, sha256: "2" }), 0);
  assert.equal(firstDifferingRow(parted, same, { ...same, head_mask: [[0]] }), 0);
});

test("a picture of another model in the same place", () => {
  const [small, large] = [
    { n_layer: 2, n_head: 3 },
    { n_layer: 4, n_head: 8 },
  ];
  assert.deepEqual(matchingPlace([1, 2], small, large), [1, 2]);
  assert.deepEqual(matchingPlace([3, 7], large, small), [1, 2]);
  assert.deepEqual(matchingPlace([1, 4], small, large), [1, 9]); // a rollout for a rollout
  assert.deepEqual(matchingPlace([2, 3], small, large), [4, 8]); // the mean of all heads
  for (const [place, has] of [
    [[1, 2], true],
    [[2, 2], false],
    [[1, 5], false],
    [[1, 9], true], // a rollout
    [[3, 8], false],
    [[4, 8], true],
  ]) {
    assert.equal(hasPlace(place, large, small), has, place.join());
  }
});

test("the next tokens of both sides, with the difference of their log-probabilities", () => {
  const texts = ["x", "y", "z"];
  const side = (logits, own = texts) => {
    const logprobs = logSoftmax(Float32Array.from(logits));
    return { logprobs, most: [0, 1, 2].sort((one, other) => logits[other] - logits[one]), texts: own };
  };
  const [a, b] = [side([2, 1, 0]), side([0, 1, 2])];
  const sum = Math.exp(2) + Math.exp(1) + 1;
  assert.ok(Math.abs(Math.exp(a.logprobs[0]) - Math.exp(2) / sum) < 1e-12);
  const rows = nextRows(a, b, [1, null], 2);
  assert.deepEqual(
    rows.map(({ text: token }) => token),
    ["x", "y"],
  ); // the one that was written, whatever its probability
  assert.ok(Math.abs(rows[0].difference + 2) < 1e-12);
  const others = nextRows(a, side([0, 1, 2], ["q", "x", "z"]), [null, null], 4);
  const byText = Object.fromEntries(others.map((row) => [row.text, row]));
  assert.ok(Math.abs(byText.x.difference - (Math.log(Math.exp(1) / sum) - Math.log(Math.exp(2) / sum))) < 1e-12);
  assert.deepEqual([byText.q.a, byText.q.difference], [null, null]); // a token that A does not have
});

test("a side is called by what it differs in", () => {
  const side = (line, more = {}) => ({
    tokens: text(line).tokens,
    pointer: {
      model: "tiny",
      state: "done",
      n_layer: 1,
      n_head: 3,
      head_mask: null,
      settings: {},
      branch: null,
      beside: "",
      ...more,
    },
  });
  const titles = (a, b) =>
    sideTitles(
      a,
      b,
      align({ ...text("a"), tokens: a.tokens }, { tokens: b.tokens, n_prompt: 1, isGiven: isOwn(b.pointer) }, true),
    );
  assert.deepEqual(titles(side("a|b"), side("a| ")), ["First text", "Branch at token 1: “·” instead of “b”"]);
  assert.deepEqual(titles(side("a|b"), side("a|c", { settings: { seed: 7 } }))[1], "Another text, seed 7");
  assert.deepEqual(titles(side("a"), side("a", { model: "tiny@16" })), ["tiny", "tiny, training step 16"]);
  assert.deepEqual(titles(side("a"), side("a", { head_mask: [[0, 1, 0.5]] })), [
    "All heads",
    "Without L0 H0, L0 H2 × 0.5",
  ]);
  assert.deepEqual(titles(side("a"), side("a")), ["First text", "The same text"]);
  assert.equal(
    titles(side("a|b|c|d"), side("x|b|y|z", { state: "read" }))[1],
    "Another text: “x” instead of “a” at token 0, and 1 other change",
  );
  assert.equal(maskWords({ head_mask: [[1, 2]], n_layer: 1, n_head: 2 }), "L0 H1 × 2");
});

test("how much the tokens change that both texts have", () => {
  const a = text("a|b|c|d|e");
  const b = text("a|b|c|x|e");
  const alignment = align(a, b, true);
  const withLogprobs = ({ tokens }, logprobs) => tokens.map((token, i) => ({ ...token, logprob: logprobs[i] }));
  const [left, right] = [withLogprobs(a, [null, -1, -2, -3, -4]), withLogprobs(b, [null, -1.5, -1, -1, -1])];
  const changes = tokenChanges(alignment, left, right);
  assert.deepEqual(
    changes.map((each) => each?.change ?? null),
    [null, -0.5, 1],
  );
  assert.equal(
    changeSentence(changes, 3),
    "The texts part at token 3. The 2 tokens that both predict before that are on average 28 % more probable in B: " +
      "+0.500 nats in all, +0.250 a token.",
  );
  assert.equal(changeSentence([null], null), "");
});
