// What the Train tab says of a training, in a small DOM.

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { openWindow } from "../widgets/small_dom.mjs";

let window, Watch, words;
let watch;

before(async () => {
  window = openWindow("");
  ({ Watch } = await import("../../../web/js/train/watch.mjs"));
  words = await import("../../../web/js/train/words.mjs");
});
after(() => window.close());
beforeEach(() => {
  watch = new Watch({ stop() {}, open() {}, again() {}, report() {} });
  window.document.body.replaceChildren(watch.element);
});

const START = {
  kind: "start",
  n_parameters: 110_000,
  n_layer: 1,
  n_head: 2,
  vocab_size: 50,
  seconds: 20,
  train_tokens: 9_000,
  validation_tokens: 1_000,
  watched_tokens: 500,
  uniform: Math.log(50),
  bigram: 2.31,
  tokens: ["a", "b"],
};
const loss = (step, validation_loss) => ({ kind: "loss", step, seconds: step, validation_loss, train_loss: 1 });
const end = (given) => ({ kind: "end", step: 20, seconds: 20, loss: 1.3, bigram: 2.2, kept: 20, text: "", ...given });
const receive = (...events) => events.forEach((event) => watch.receive(event));
const said = (selector) => watch.element.querySelector(selector).textContent;

test("whoever waits for a training is told their place, how long the others take, and what to do", () => {
  watch.each = words.durations([{ seconds: 20 }, { seconds: 60 }]);
  receive({ kind: "state", state: "waiting", name: "your-gpt-ab12", place: 2 });
  assert.equal(said("h2"), "Waiting in the queue");
  assert.equal(said("[role=status]"), "You are number 2 in the queue.");
  assert.equal(
    said(".ht-result"),
    "Other visitors are training, for 20 seconds to a minute each. " +
      "Yours starts when its turn comes: keep this page open.",
  );
  assert.equal(watch.again.textContent, "Cancel");
  assert.ok(watch.bar.hidden && watch.stop.hidden && watch.panels.hidden);
});

test("the result and the chart give one number, that of the weights that are kept", () => {
  receive(START, loss(0, 3.9), loss(10, 1.32), loss(20, 1.27), end());
  assert.match(said(".ht-result"), /a chance of 28%: letter pairs alone give it 9\.9%\.$/);
  assert.match(said(".ht-loss .ht-now"), /^28% on held-out text/);
  assert.match(said(".ht-loss svg"), /letter pairs 9\.9%/);
  watch.reset();
  receive(START, loss(0, 3.9), loss(10, 1.27), loss(20, 1.6), end({ kept: 10 }));
  assert.match(said(".ht-result"), /a chance of 28%.* The weights of step 10, which did best, are kept\.$/);
  assert.match(said(".ht-loss .ht-now"), /^28% on held-out text .* step 10$/);
});

test("a head has one role, the one that Look gives it, and the best head for a role is one that has it", () => {
  const heads = {
    previous_token: [[0.4, 0.35]],
    duplicate_token: [[0.1, 0.1]],
    induction: [[0.2, 0.1]],
    uniform: 0.02,
    roles: [
      [
        ["first_token", 0.5],
        ["previous_token", 0.35],
      ],
    ],
  };
  const { bestFor, roleWords } = words;
  assert.deepEqual(bestFor("previous_token", heads), { picture: [0, 1], value: 0.35, isClear: true });
  assert.deepEqual(bestFor("induction", heads), { picture: [0, 0], value: 0.2, isClear: false });
  assert.equal(roleWords(heads.roles[0][0]), "first token, 0.50 on random characters");
  assert.equal(roleWords(null), "no clear role");
  for (const event of [START, { kind: "snapshot", step: 0, seconds: 0, heads }]) watch.scores.receive(event);
  assert.match(said(".ht-best"), /previous token .*: 0·1, 0\.35.*induction .*: none yet; 0·0 scores 0\.20/);
  assert.ok(watch.scores.none.hidden);
  watch.scores.receive(end());
  assert.ok(!watch.scores.none.hidden && watch.scores.none.querySelector("a").hash === "#learn/11");
});

test("what is to beat is known before a training: guessing, and the pairs of the first nine tenths", async () => {
  const { chances } = await import("../../../web/js/train/outlook.mjs");
  // After each of 45 counted pairs "ab" comes b: (45 + 0.1) / (45 + 0.2). For "ba" it is 44 of 44.
  const { guessing, pairs } = chances("ab".repeat(50));
  assert.equal(guessing, 0.5);
  const [ab, ba] = [45.1 / 45.2, 44.1 / 44.2];
  assert.ok(Math.abs(pairs - Math.exp((5 * Math.log(ab) + 4 * Math.log(ba)) / 9)) < 1e-12);
});
