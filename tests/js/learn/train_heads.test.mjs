// The heads that rungs 6 and 8 train: torch's numbers (tests/unit/ladder/test_train_heads.py), and what they learn.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import {
  Heads,
  subjectTask,
  twoJobsTask,
  weightOnOneWord,
  weightOnSubject,
  WORDS,
} from "../../../web/js/learn/train_heads.mjs";

const STEPS = 150; // as on the page

/** @param {ArrayLike<number>} found @param {number[]} expected */
function assertClose(found, expected) {
  assert.equal(found.length, expected.length);
  expected.forEach((value, i) => assert.ok(Math.abs(found[i] - value) < 1e-12, `${found[i]} is not ${value}`));
}

/** @param {Heads} heads */
function train(heads) {
  let last = heads.step();
  for (let step = 1; step < STEPS; step += 1) last = heads.step();
  return last;
}

test("loss, gradients and weights are those of torch", () => {
  const expected = JSON.parse(readFileSync(new URL("../../fixtures/trained_heads.json", import.meta.url), "utf8"));
  const examples = [
    { query: 2, keys: [0, 1, 2], answers: [0, 2] },
    { query: 1, keys: [3, 0, 0, 4], answers: [2, 1] },
    { query: 4, keys: [2, 2, 1], answers: [1, 0] },
  ];
  const heads = new Heads(
    { tokens: expected.tokens, examples, jobs: 2, answers: 3 },
    { n_head: 2, head_dim: 4, seed: 1 },
  );
  heads.heads = expected.heads.map((/** @type {Record<string, number[]>} */ head) =>
    Object.fromEntries(Object.entries(head).map(([role, numbers]) => [role, Float64Array.from(numbers)])),
  );
  const { losses, heads: gradients } = heads.gradient();
  assertClose([(losses[0] + losses[1]) / 2], [expected.loss]);
  gradients.forEach((gradient, h) => {
    assertClose(gradient.query, expected.gradients[h].query);
    assertClose(gradient.key, expected.gradients[h].key);
    assertClose(gradient.value, expected.gradients[h].value);
  });
  heads.weights(examples[0]).forEach((weights, h) => assertClose(weights, expected.weights[h]));
});

const SEEDS = Array.from({ length: 24 }, (_, i) => i + 1);

test("the subject comes first, agrees with the verb, and differs in number from the other noun", () => {
  const isPlural = (/** @type {string} */ noun) => /s$/.test(noun);
  const sentences = subjectTask().examples.map(({ query, keys, answers: [answer] }) => {
    const [the, first, near, again, second] = keys.map((id) => WORDS[id]);
    assert.deepEqual([the, near, again], ["the", "near", "the"]);
    assert.equal(WORDS[answer], first);
    assert.notEqual(isPlural(first), isPlural(second));
    assert.equal(/s$/.test(WORDS[query]), !isPlural(first), `${first} … ${WORDS[query]}`); // “sleeps” is singular
    return [...keys, query].map((id) => WORDS[id]).join(" ");
  });
  assert.equal(new Set(sentences).size, 2 * 4 * 4 * 2); // all pairs, in both orders, with two verbs each
  assert.equal(sentences.length, 64);
  assert.ok(sentences.includes("the dogs near the cat sleep"));
  assert.ok(!sentences.includes("the cat near the dogs sleep"));
});

test("the verb finds its subject from every start", () => {
  for (const seed of SEEDS) {
    const heads = new Heads(subjectTask(), { head_dim: 2, seed }); // as on the page
    train(heads);
    assert.ok(weightOnSubject(heads) > 0.8, `seed ${seed}: ${weightOnSubject(heads)}`);
  }
});

test("the verb finds its subject, and the same seed learns the same", () => {
  const [one, two] = [1, 1].map((seed) => new Heads(subjectTask(), { head_dim: 2, seed }));
  assert.ok(weightOnSubject(one) < 0.3);
  assert.deepEqual(train(one), train(two));
  assert.ok(weightOnSubject(one) > 0.8);
});

test("with 256 numbers and no division the gradient starts larger, vanishes, and the subject is rarely found", () => {
  const runs = SEEDS.slice(0, 8).map((seed) =>
    [true, false].map((isScaled) => {
      const heads = new Heads(subjectTask(), { head_dim: 256, isScaled, seed });
      const gradients = Array.from({ length: STEPS }, () => heads.step().gradient);
      return { gradients, last: gradients[STEPS - 1], weight: weightOnSubject(heads) };
    }),
  );
  for (const [divided, plain] of runs) {
    assert.ok(divided.weight > 0.95 && plain.weight < 0.8, `${divided.weight}, ${plain.weight}`);
    assert.ok(plain.gradients[0] > divided.gradients[0]);
    const below = plain.gradients.findIndex((gradient, i) => gradient < divided.gradients[i]);
    assert.ok(below > 0 && below <= 10, String(below));
    assert.ok(plain.last < divided.last / 10, `${plain.last}, ${divided.last}`);
  }
});

test("without the division one word gets most of the weight before anything is learned", () => {
  for (const seed of SEEDS) {
    const [divided, plain] = [true, false].map((isScaled) =>
      weightOnOneWord(new Heads(subjectTask(), { head_dim: 256, isScaled, seed })),
    );
    assert.ok(divided < 0.5 && plain > 0.6, `seed ${seed}: ${divided}, ${plain}`);
  }
});

test("two heads learn two jobs, one head cannot, and no loss ever rises", () => {
  for (const seed of SEEDS.slice(0, 8)) {
    const [one, two] = [1, 2].map((n_head) => {
      const heads = new Heads(twoJobsTask(4, seed), { n_head, head_dim: 8 / n_head, rate: 3, seed }); // as on the page
      const losses = Array.from({ length: STEPS }, () => heads.step().losses);
      const means = losses.map(([a, b]) => (a + b) / 2);
      means.slice(1).forEach((loss, i) => assert.ok(loss < means[i] + 1e-3, `seed ${seed}, step ${i + 1}`));
      return losses[STEPS - 1];
    });
    assert.ok(Math.max(...two) < 0.25, String(two));
    assert.ok(Math.max(...one) > 0.7, String(one));
  }
});
