import assert from "node:assert/strict";
import { test } from "node:test";

import { readComposition, readRole } from "../../../web/js/look/ask/questions/feeding.mjs";
import { agreementPlain } from "../../../web/js/look/ask/questions/one_head.mjs";
import { comparison, knockoutPlain, slightPlain } from "../../../web/js/look/ask/questions/knockout.mjs";
import { sharedPlain } from "../../../web/js/look/ask/questions/passages.mjs";
import { headlineRole } from "../../../web/js/look/roles/head_roles.mjs";
import { rolePlain } from "../../../web/js/look/roles/role_words.mjs";

const UNIFORM = { previous_token: 0.011, first_token: 0.011, self: 0.011, duplicate_token: 0.011, induction: 0.011 };

/** @param {string} label @param {Partial<Record<keyof typeof UNIFORM | "copying", number>>} scores */
const head = (label, scores) => ({
  label,
  scores: { ...UNIFORM, copying: 0.5, entropy: 5, ...scores },
  errors: UNIFORM,
  baseline: { ...UNIFORM, copying: 0.5, entropy: 6 },
});

test("a head is named after where it clearly looks, else after copying, else not at all", () => {
  const heads = [
    head("induction", { induction: 0.8, copying: 0.95 }),
    head("copying", { previous_token: 0.1, copying: 0.95 }),
    head("no clear role", { first_token: 0.012 }),
    head("no clear role", { first_token: 0.2 }),
  ];
  assert.deepEqual(heads.map(headlineRole), ["induction", "copying", "first_token", "first_token"]);
  const store = {
    roles: [heads],
    pointer: { n_layer: 1, n_head: 4 },
    rows: 9,
    data: { metric: () => 0.25 },
    open: [1, 0],
  };
  const words = heads.map((_, at) => rolePlain(/** @type {any} */ (store), [0, at]));
  assert.match(words[0], /^On random tokens, head 0 of layer 0 looks at what followed .* also copies/);
  assert.match(words[1], /^Head 1 of layer 0 tends to copy what it looks at/);
  assert.match(
    words[2],
    /^On random tokens, head 2 of layer 0 fits none .* is clearly above .* is 1.2%, for first token; .* 1.1%\)\.$/,
  );
  assert.match(
    words[3],
    /^On random tokens, head 3 of layer 0 .* The closest: it rests on the first token, with 20% of its attention\.$/,
  );
});

test("a role on random tokens comes with the share of its attention in this text", () => {
  const heads = [[head("previous token", { previous_token: 0.9 })]];
  const store = {
    roles: heads,
    pointer: { n_layer: 1, n_head: 1 },
    rows: 9,
    data: { metric: () => 0.4 },
    open: [1, 0],
  };
  assert.equal(
    rolePlain(/** @type {any} */ (store), [0, 0]),
    "On random tokens, head 0 of layer 0 looks at the token before, with 90% of its attention " +
      "(uniform attention: 1.1%), and in this text with 40%.",
  );
});

const SCORES = { k: [[], [[[0.135, 0.06]]]], v: [[], [[[0.135, 0.06]]]] };
const DEVIATIONS = { k: [[], [[[3.4, -0.1]]]], v: [[], [[[3.4, -0.1]]]] };
const COMPOSITION = /** @type {any} */ ({ ...SCORES, deviations: DEVIATIONS, chance: 0.063, distance: 3 });

test("the sentence about composition says how far query and key are apart where it matters", () => {
  const sentence = (/** @type {"k" | "v"} */ way, /** @type {boolean} */ isRotary, distance = 3) =>
    readComposition({ ...COMPOSITION, distance }, [1, 0], way, isRotary).sentence;
  assert.match(
    sentence("k", true),
    /^By the weights, .* head 0 of layer 0 most, with the query 3 positions after its key: 0\.135/,
  );
  assert.match(sentence("k", true, 1), /most, with the query 1 position after its key: /);
  assert.match(sentence("k", true, 0), /most, with query and key at the same position: /);
  for (const other of [sentence("k", false), sentence("v", true)])
    assert.match(other, /read head 0 of layer 0 most: 0\.135/);
});

test("the colours of composition are named after the numbers that they show", () => {
  const { title, short, rows, arcs, sentence } = readComposition(COMPOSITION, [1, 0], "k");
  assert.equal(title, "How much of each head its keys can read (by chance: 0.063)");
  assert.deepEqual(arcs, [[0, 0]]);
  assert.match(sentence, /0\.135, .* That is 3\.4 standard deviations above the same two heads rotated at random, /);
  assert.deepEqual(
    rows.map(({ value }) => short(value)),
    [".135", ".060"],
  );
  assert.equal(short(10.2), "10.263"); // only a leading zero is left out
});

test("a head has a role to lose only from the mean weight at which the page says that it has one", () => {
  const drops = { previous_token: [[0.01]], duplicate_token: [[0.01]], induction: [[0.05]] };
  const answer = (/** @type {number} */ induction) =>
    /** @type {any} */ ({
      layer: 1,
      head: 0,
      way: "k",
      uniform: 0.02,
      plain: { previous_token: 0.01, duplicate_token: 0.01, induction },
      every: drops,
      direct: drops,
    });
  assert.match(readRole(answer(0.1), "every").plain, /no clear role to lose/); // five times uniform, and yet below 0.3
  assert.match(readRole(answer(0.4), "every").plain, /needs head 0 of layer 0 for its role/);
});

test("passages are compared with what the head looks at over the whole text", () => {
  const row = { name: "begins with a capital letter", count: 11, n: 12, everywhere: 0.59 };
  assert.equal(
    sharedPlain("head 2 of layer 1", [row]),
    "Where head 2 of layer 1 fires most, the token it looks at begins with a capital letter (11 of 12 passages, " +
      "compared with 59% over the whole text).",
  );
});

test("a cause is named for several heads only where each of them helps, and all together most", () => {
  const judged = [comparison(1.0, [0.3, 0.4]), comparison(0.5, [0.4, 0.4]), comparison(0.8, [0.4, 0.4])].map((words) =>
    words.split(/[.,] /).at(-1),
  );
  assert.deepEqual(judged, [
    "others partly compensate.",
    "Together they cost less: their contributions overlap.",
    "about the same: each makes its own contribution.",
  ]);
  for (const [joint, singles] of [
    [-0.192, [-0.2, -0.186]],
    [0.345, [1.282, 0.1]],
    [0.5, [0.9, -0.2]],
  ]) {
    assert.match(comparison(joint, singles), /^[+−][\d.]+ nats; one by one they add up to [+−][\d.]+\.$/);
  }
});

test("heads whose removal helps are not counted among those that change little", () => {
  const answer = {
    delta: [
      [0.3, -0.151],
      [-0.184, 0.01],
    ],
    token_delta: [
      [[0.3], [-0.1]],
      [[0], [0]],
    ],
    token_loss: [Math.log(2)],
  };
  const [whole, rest] = knockoutPlain(answer, 1, "zero", "so");
  assert.match(
    whole,
    /^This text needs head 0 of layer 0 most: with zeros in place of what it writes, .* 26% less probable\.$/,
  );
  assert.equal(
    rest,
    "“so” needs head 0 of layer 0 most: without the whole head, its probability falls from 50% to 37%.",
  );
  assert.match(
    slightPlain(answer.delta),
    /^For 1 of 4 heads, removing it alone changes .* by less than 5% on average\.$/,
  );
  const without = {
    ...answer,
    delta: [
      [-0.3, -0.1],
      [0, 0],
    ],
  };
  assert.equal(
    knockoutPlain(without, 0, "text_mean")[0],
    "No single head is needed: with its mean over this text in place of what any one of them writes, this text is " +
      "predicted about as well, or better.",
  );
});

test("what a head looks at is said with what the cut of that look alone does to the probability", () => {
  const key = (/** @type {number} */ position, /** @type {number} */ weight, /** @type {number} */ loss_change) => ({
    ...{ id: position, text: ` w${position}`, position, norm: 1, attribution: 0 },
    ...{ weight, loss_change },
  });
  const of = { layer: 7, head: 6, token: { id: 1, text: " kite" }, probability: 0.94 };
  const says = (/** @type {any[]} */ ...keys) => agreementPlain(/** @type {any} */ ({ ...of, keys }));
  const start = "Head 6 of layer 7 looks most at “w0” (position 0),";
  assert.equal(
    says(key(0, 0.9, 0.19), key(1, 0.1, 0)),
    `${start} and that matters: with only this look cut, the probability of “kite” falls from 94% to 78%.`,
  );
  assert.equal(
    says(key(0, 0.9, 0), key(1, 0.1, -0.02)),
    `${start} but “w1” (position 1) matters more: with only that look cut, the probability of “kite” rises from 94% ` +
      "to 96%.",
  );
});
