// Sentences of Learn and Train that have to be true for everyone who reads them.

import assert from "node:assert/strict";
import test from "node:test";

import { RUNGS } from "../../../web/js/learn/main.mjs";
import { aboutLosses, aboutRise, aboutRoles } from "../../../web/js/train/words.mjs";

/** All words of a rung's questions, hints and answers. @param {string} key */
const questionsOf = (key) => {
  const rung = RUNGS.find((each) => each.key === key);
  return JSON.stringify([rung?.prediction, rung?.exercises]);
};

test("a mask may be added to the scores; only 0 times infinity fails", () => {
  const words = questionsOf("causal-masking");
  assert.doesNotMatch(words, /don’t add/);
  assert.match(words, /Adding is fine if the mask is filled/);
});

test("muting tells which head feeds the induction head, not K-composition", () => {
  assert.doesNotMatch(questionsOf("induction"), /K-composition/);
});

test("the caption of the losses says which text each curve is measured on", () => {
  for (const [watched_tokens, part] of /** @type {const} */ ([
    [4096, "4,096 characters, spread evenly over the held-out tenth"],
    [9000, "all 9,000 held-out characters"],
  ])) {
    const words = aboutLosses({ watched_tokens, validation_tokens: 9000 });
    assert.match(words, new RegExp(`The held-out loss and that of the bigram model are measured on ${part};`));
    assert.match(words, /the dashed curve is that of the batches that the model has just learned from/);
    assert.doesNotMatch(words, /all losses/i);
  }
});

test("nothing is promised about the roles of heads after so short a training", () => {
  assert.match(aboutRoles(0.3), /at least 0\.3, and three times .* may end before any head has a clear role/);
});

test("a model is said to overfit only if its training loss falls while the held-out loss rises", () => {
  const at = (/** @type {number} */ step, /** @type {number} */ held, /** @type {number | null} */ trained) => {
    return /** @type {const} */ ({ kind: "loss", step, seconds: step, validation_loss: held, train_loss: trained });
  };
  assert.match(aboutRise(at(10, 2, 1.9), at(20, 2.1, 1.5)), /overfits.* The weights of step 10 are/);
  const noise = aboutRise(at(10, 2, 1.9), at(20, 2.1, 2));
  assert.equal(
    noise,
    "The held-out loss has risen since step 10 (2.000). The weights of step 10 are the ones that are kept.",
  );
  assert.doesNotMatch(aboutRise(at(0, 4.2, null), at(20, 4.3, 4.1)), /overfits/);
});
