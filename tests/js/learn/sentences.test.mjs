// Sentences of Learn and Train that have to be true for everyone who reads them.

import assert from "node:assert/strict";
import test from "node:test";

import { RUNGS } from "../../../web/js/learn/main.mjs";
import { aboutLosses, aboutResult, aboutRise, aboutRoles, resultInNats } from "../../../web/js/train/words.mjs";

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

test("the result of a training is told in chances, and in nats only beside the numbers", () => {
  const end = /** @type {const} */ ({ kind: "end", loss: 0.6, bigram: 1.9, step: 300, seconds: 19, text: "" });
  assert.equal(
    aboutResult({ ...end, kept: 300, stopped: false }, 0.6, 1.9),
    "In text that is new to it, the right character gets a chance of 55%: letter pairs alone give it 15%.",
  );
  assert.match(
    aboutResult({ ...end, kept: 200, stopped: true }, 2.3, 1.9),
    /^Stopped early\. .* 10%: letter pairs alone do better, with 15%\. The weights of step 200, .* are kept\.$/,
  );
  const all = { watched_tokens: 900, validation_tokens: 900 };
  assert.match(resultInNats(end, all), /0\.600 nats per character, and the bigram model of 1\.900\.$/);
  const part = resultInNats(end, { ...all, watched_tokens: 500 });
  assert.match(
    part,
    /of 1\.900: chances of 55% and 15%\. Those of the chart may differ .* measured on a part of this text\.$/,
  );
});

test("nothing is promised about the roles of heads after so short a training", () => {
  assert.match(aboutRoles(0.3), /at least 0\.3, and three times .* A training on a busy server may end before/);
});

test("a model is said to overfit only if its training loss falls while the held-out loss rises", () => {
  const at = (/** @type {number} */ step, /** @type {number} */ held, /** @type {number | null} */ trained) => {
    return /** @type {const} */ ({ kind: "loss", step, seconds: step, validation_loss: held, train_loss: trained });
  };
  assert.match(aboutRise(at(10, 2, 1.9), at(20, 2.1, 1.5)), /overfits.* The weights of step 10 are/);
  const noise = aboutRise(at(10, 2, 1.9), at(20, 2.1, 2));
  assert.equal(
    noise,
    "The chance on held-out text has fallen since step 10 (14%). The weights of step 10 are the ones that are kept.",
  );
  assert.doesNotMatch(aboutRise(at(0, 4.2, null), at(20, 4.3, 4.1)), /overfits/);
});
