// Two texts that are compared: their clock, what their heads and tokens differ in, and what they are called.

import assert from "node:assert/strict";
import { test } from "node:test";
import { HeadWeights } from "../../web/js/lib/triangle.mjs";
import { logSoftmax } from "../../web/js/lib/sampling.mjs";
import { Alignment } from "../../web/js/look/compare/alignment.mjs";
import { AlignmentRequests, fromServer } from "../../web/js/look/compare/alignment_requests.mjs";
import {
  changeSentence,
  Difference,
  firstDifferingRow,
  nextRows,
  tokenChanges,
} from "../../web/js/look/compare/difference.mjs";
import { maskWords } from "../../web/js/lib/head_masks.mjs";
import { sideTitles } from "../../web/js/look/compare/names.mjs";
import { scaledWords } from "../../web/js/look/roles/role_words.mjs";
import { hasPicture, matchingPicture } from "../../web/js/look/compare/linked_heads.mjs";

/** Tokens between bars. */
const tokens = (line) => line.split("|").map((text) => ({ text }));

/** Pieces "a0 a1 b0 b1 same", between bars. */
const aligned = (pieces, divergence = null) =>
  new Alignment(
    pieces.split("|").map((piece) => {
      const [a0, a1, b0, b1, same] = piece.split(" ").map(Number);
      return { a0, a1, b0, b1, same: same === 1 };
    }),
    divergence,
  );

/** Token by token: 1 where they are the same, 0 where they differ. */
const inOrder = (same, divergence = null) =>
  aligned([...same].map((flag, i) => `${i} ${i + 1} ${i} ${i + 1} ${flag}`).join("|"), divergence);

test("an alignment as the server sends it", () => {
  const sent = {
    pieces: [
      [0, 0, 1, 1, 1, 2],
      [2, 3, 2, 1, 1, 2],
      [6, 5, 1, 1, 0, 1],
    ],
    divergence: 2,
  };
  const expected = aligned("0 1 0 1 1|1 2 1 2 1|2 4 3 4 1|4 6 4 5 1|6 7 5 6 0", 2);
  assert.deepEqual(fromServer(sent).pieces, expected.pieces);
  assert.deepEqual([fromServer(sent).divergence, fromServer(sent).shared], [2, 4]);
});

test("tokens at the same place, and what comes after the last piece", () => {
  const alignment = inOrder("1100", 2);
  assert.deepEqual([alignment.divergence, alignment.divergesAt("a"), alignment.divergesAt("b")], [2, 2, 2]);
  assert.ok(alignment.isTokenByToken);
  assert.deepEqual([alignment.stepOf("a", 4), alignment.tokenAt("b", 4), alignment.tokenAt("b", 3)], [4, 4, 3]);
  assert.deepEqual([alignment.fits(4, 4), alignment.fits(4, 3)], [true, false]);
  const [first, other] = ["Lily has a dog. Lily is glad.", "Anna has a dog. Anna is glad."];
  const words = inOrder([...first].map((letter, i) => Number(letter === other[i])).join(""), 0);
  assert.deepEqual([words.shared, words.changes("a", first.length)], [first.length - 8, [0, 16]]);
});

test("pieces of several tokens", () => {
  const alignment = aligned("0 3 0 1 1|3 5 1 2 1|5 7 2 3 1");
  assert.ok(!alignment.isTokenByToken);
  const steps = ["a", "b"].map((side) => [0, 1, 2, 3].map((step) => alignment.tokenAt(side, step)));
  assert.deepEqual(steps, [
    [0, 3, 5, 7],
    [0, 1, 2, 3],
  ]);
  assert.deepEqual([alignment.stepOf("a", 4), alignment.stepOf("b", 2), alignment.stepOf("b", 3)], [1, 2, 3]);
  assert.deepEqual([alignment.first("a", 1), alignment.last("a", 1), alignment.pieceOf("a", 6)], [3, 4, 2]);
  const diverging = aligned("0 3 0 1 1|3 4 1 2 0|4 5 2 3 0", 1);
  assert.deepEqual([diverging.divergesAt("a"), diverging.divergesAt("b")], [3, 1]);
});

/** abcdef and abXYcdf: two tokens that only B has, and one that only A has. */
const GAPS = "0 1 0 1 1|1 2 1 2 1|2 3 4 5 1|3 4 5 6 1|5 6 6 7 1";

test("a token that only one text has gets a step of its own", () => {
  const alignment = aligned(GAPS, 2);
  const steps = [0, 1, 2, 3, 4, 5, 6, 7, 8];
  const shown = (side) => steps.map((step) => (alignment.isGap(side, step) ? "-" : alignment.tokenAt(side, step)));
  assert.deepEqual(shown("a"), [0, 1, "-", "-", 2, 3, 4, 5, 6]);
  assert.deepEqual(shown("b"), [0, 1, 2, 3, 4, 5, "-", 6, 7]);
  assert.deepEqual(
    [0, 1, 2, 3, 4, 5, 6].map((at) => alignment.stepOf("b", at)),
    [0, 1, 2, 3, 4, 5, 7],
  );
  assert.deepEqual([alignment.pieceOf("a", 4), alignment.pieceOf("b", 2), alignment.divergence], [null, null, 2]);
  assert.deepEqual([alignment.divergesAt("a"), alignment.divergesAt("b")], [2, 2]);
  assert.deepEqual([alignment.changes("a", 6), alignment.changes("b", 7)], [[2, 4], [2]]);
  assert.ok(!alignment.isTokenByToken);
  assert.deepEqual([alignment.numberOf(1), alignment.numberOf(2)], ["1", "2|4"]);
});

test("the difference is taken between the rows and keys that correspond", () => {
  /** @param {number} n @param {number} seed */
  const head = (n, seed) => {
    const rows = Array.from({ length: n }, (_, row) => {
      const raw = Array.from({ length: row + 1 }, (__, key) => ((row * 7 + key * 3 + seed) % 11) + 1);
      const sum = raw.reduce((total, value) => total + value, 0);
      return raw.map((value) => value / sum);
    });
    const kept = new HeadWeights();
    kept.append(Float32Array.from(rows.flat()));
    return { rows, weights: kept };
  };
  const [a, b] = [head(6, 1), head(7, 5)];
  const alignment = aligned(GAPS, 2);
  const difference = new Difference(alignment, { a: a.weights, b: b.weights });
  assert.equal(difference.rows, 5);
  assert.deepEqual(difference.at(4, 2), {
    a: Math.fround(a.rows[5][2]),
    b: Math.fround(b.rows[6][4]),
    difference: Math.fround(b.rows[6][4]) - Math.fround(a.rows[5][2]),
  });
});

/** The weights of a head, from its rows. */
function weights(...rows) {
  const all = new HeadWeights();
  all.append(Float32Array.from(rows.flat()));
  return all;
}

test("a difference is B minus A, exactly, and nothing where the key is another token", () => {
  const a = weights([1], [0.3, 0.7], [0.2, 0.3, 0.5]);
  const b = weights([1], [0.6, 0.4], [0.1, 0.1, 0.8]);
  const difference = new Difference(inOrder("110", 2), { a, b });
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
  const growing = new Difference(inOrder("111"), { a, b: weights([1], [0.6, 0.4]) });
  assert.equal(growing.rows, 2); // what both have read
});

test("the weights on a piece are summed", () => {
  const a = weights([1], [0.5, 0.5], [0.25, 0.25, 0.5]);
  const b = weights([1], [0.125, 0.875]);
  const difference = new Difference(aligned("0 2 0 1 1|2 3 1 2 1"), { a, b });
  assert.equal(difference.rows, 2);
  assert.deepEqual(difference.at(0, 0), { a: 1, b: 1, difference: 0 });
  assert.deepEqual(difference.at(1, 0), { a: 0.5, b: 0.125, difference: -0.375 });
  assert.equal(difference.at(1, 1).difference, 0.375);
});

test("one reader differs from itself only after the texts diverge", () => {
  const diverging = inOrder("110", 2);
  const same = { sha256: "1", head_mask: null };
  assert.equal(firstDifferingRow(diverging, same, same), 2);
  assert.equal(firstDifferingRow(diverging, same, { ...same, sha256: "2" }), 0);
  assert.equal(firstDifferingRow(diverging, same, { ...same, head_mask: [[0]] }), 0);
});

test("a picture of another model in the same place", () => {
  const [small, large] = [
    { n_layer: 2, n_head: 3 },
    { n_layer: 4, n_head: 8 },
  ];
  assert.deepEqual(matchingPicture([1, 2], small, large), [1, 2]);
  assert.deepEqual(matchingPicture([3, 7], large, small), [1, 2]);
  assert.deepEqual(matchingPicture([1, 4], small, large), [1, 9]); // a rollout for a rollout
  assert.deepEqual(matchingPicture([2, 3], small, large), [4, 8]); // the mean of all heads
  for (const [place, has] of [
    [[1, 2], true],
    [[2, 2], false],
    [[1, 5], false],
    [[1, 9], true], // a rollout
    [[3, 8], false],
    [[4, 8], true],
  ]) {
    assert.equal(hasPicture(place, large, small), has, place.join());
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

test("tokens that read the same are different rows, and only the last is in both vocabularies", () => {
  /** @param {string[]} texts @param {number[]} logits */
  const side = (texts, logits) => {
    const logprobs = logSoftmax(Float32Array.from(logits));
    return { logprobs, most: texts.map((_, id) => id), texts };
  };
  const byteFirst = side(["A", "b", "A"], [3, 1, 2]); // as in Llama 2's vocabulary, where the byte of A comes first
  const other = side(["b", "A"], [1, 2]);
  const rows = nextRows(byteFirst, other, [0, 1], 9);
  const found = Object.fromEntries(rows.map(({ ids, a, b }) => [ids.join(), [a, b]]));
  const [p, q] = [byteFirst, other].map(({ logprobs }) => [...logprobs].map(Math.exp));
  assert.deepEqual(found, { "0,": [p[0], null], "2,1": [p[2], q[1]], "1,0": [p[1], q[0]] });
  // Two training steps have one vocabulary, sent twice.
  const step = side([...byteFirst.texts], [1, 1, 4]);
  const steps = nextRows(byteFirst, step, [null, null], 9).map(({ ids }) => ids.join());
  assert.deepEqual(new Set(steps), new Set(["0,0", "1,1", "2,2"]));
});

test("a side is named after what differs in it", () => {
  const side = (line, more = {}) => ({
    tokens: tokens(line),
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
  const titles = (a, b, alignment = inOrder("1")) => sideTitles(a, b, alignment);
  assert.deepEqual(titles(side("a|b"), side("a| "), inOrder("10", 1)), [
    "First text",
    "Branch at token 1: a space instead of “b”",
  ]);
  assert.deepEqual(titles(side("a|b"), side("a|c", { settings: { seed: 7 } }))[1], "Another text, seed 7");
  assert.deepEqual(titles(side("a"), side("a", { model: "tiny@16" })), ["tiny", "tiny, training step 16"]);
  assert.deepEqual(titles(side("a"), side("a", { head_mask: [[0, 1, 0.5]] })), [
    "All heads",
    "Without head 0 of layer 0, 0·2 × 0.5",
  ]);
  assert.deepEqual(titles(side("a"), side("a")), ["First text", "The same text"]);
  assert.equal(titles(side("a|b"), side("a"))[1], "The beginning of the first text");
  assert.equal(titles(side("a"), side("a|b"))[1], "The first text, and more");
  assert.equal(
    titles(side("a|b|c|d"), side("x|b|y|z", { state: "read" }), inOrder("0100", 0))[1],
    "Another text: “x” instead of “a” at token 0, and 1 other change",
  );
  assert.equal(maskWords([[1, 2]]), "0·1 × 2");
});

test("a head that is removed or scaled says so, and a mean of heads does not", () => {
  const pointer = { head_mask: [[0, 1, 0.5]] };
  assert.match(scaledWords(pointer, [0, 0]), /^Removed/);
  assert.match(scaledWords(pointer, [0, 2]), /multiplied by 0.5/);
  for (const place of [[0, 1], [0, 3], [1, 3]]) assert.equal(scaledWords(pointer, place), ""); // prettier-ignore
  assert.equal(scaledWords({ head_mask: null }, [0, 0]), "");
});

test("how much the tokens that both texts have change", () => {
  const alignment = inOrder("11100", 3);
  const withLogprobs = (...logprobs) => logprobs.map((logprob) => ({ logprob }));
  const [left, right] = [withLogprobs(null, -1, -2, -3, -4), withLogprobs(null, -1.5, -1, -1, -1)];
  const changes = tokenChanges(alignment, left, right);
  assert.deepEqual(
    changes.map((each) => each?.change ?? null),
    [null, -0.5, 1],
  );
  assert.equal(
    changeSentence(changes, 3),
    "The texts diverge at token 3. The 2 tokens that both predict before that are on average 28% more probable in B: " +
      "+0.500 nats in all, +0.250 a token.",
  );
  assert.equal(changeSentence([null], null), "");
});

/** A server that answers when a test says so, and keeps the bodies it was sent. */
function server() {
  const asked = [];
  globalThis.document = { baseURI: "http://x/" };
  globalThis.fetch = (_, { body }) =>
    new Promise((resolve) => {
      const answer = (content, status = 200) => resolve(new Response(JSON.stringify(content), { status }));
      asked.push({ body: JSON.parse(body), answer });
    });
  return asked;
}

const soon = () => new Promise((resolve) => setImmediate(resolve));
const texts = (n_tokens, more = {}) => {
  const side = (run) => ({ run, sha256: "1", ids: [5, 6, 7], n_tokens, n_prompt: 1 });
  return { key: `${n_tokens}`, a: side("one"), b: side("other"), isGiven: false, isGrowing: false, ...more };
};

test("one request at a time, and another one for texts that have grown", async () => {
  const asked = server();
  const shown = [];
  const requests = new AlignmentRequests((alignment) => shown.push(alignment.pieces.length), assert.fail);
  requests.want(texts(1));
  requests.want(texts(2));
  requests.want(texts(3));
  assert.equal(asked.length, 1);
  asked[0].answer({ pieces: [[0, 0, 1, 1, 1, 1]], divergence: null });
  while (asked.length < 2) await soon();
  assert.deepEqual([shown, requests.isCurrent], [[1], false]); // of what the texts were before
  assert.deepEqual([asked[1].body.a.n_tokens, asked[1].body.a.ids], [3, []]); // the server knows its own runs
  asked[1].answer({ pieces: [[0, 0, 1, 1, 1, 3]], divergence: null });
  while (!requests.isCurrent) await soon();
  assert.deepEqual([shown, asked.length], [[1, 3], 2]);
});

test("the answer about a text that is no longer shown is dropped, and a lost run is sent", async () => {
  const asked = server();
  const shown = [];
  const problems = [];
  const requests = new AlignmentRequests(
    (alignment) => shown.push(alignment.pieces.length),
    (error) => problems.push(error.message),
  );
  requests.want(texts(2));
  const another = texts(2, { key: "another" });
  another.b = { ...another.b, run: "third" };
  requests.want(another);
  asked[0].answer({ pieces: [[0, 0, 1, 1, 1, 2]], divergence: null });
  while (asked.length < 2) await soon();
  assert.deepEqual(shown, []);
  asked[1].answer({ detail: "no longer kept" }, 404);
  while (asked.length < 3) await soon();
  assert.deepEqual([asked[2].body.a.ids, asked[2].body.b.run], [[5, 6], "third"]);
  asked[2].answer({ pieces: [], divergence: null });
  while (!requests.isCurrent) await soon();
  requests.want({ ...another, key: "grown" });
  asked[3].answer({ detail: "The model is gone." }, 410);
  while (!problems.length) await soon();
  assert.deepEqual(problems, ["The model is gone."]);
  requests.want(null);
  assert.ok(!requests.isCurrent);
});
