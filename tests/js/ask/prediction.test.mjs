import assert from "node:assert/strict";
import test from "node:test";

import { agreement, correlation } from "../../../web/js/look/ask/questions/one_head.mjs";
import { axisOf, headsBySize, partsInOrder, whyPlain } from "../../../web/js/look/ask/questions/attribution.mjs";
import { shortName } from "../../../web/js/look/ask/token_grid.mjs";
import { signed } from "../../../web/js/lib/numbers.mjs";

const heads = [
  [0.5, -2],
  [1, 0.25],
];

test("the parts of a logit in the order of the model, with their sum so far", () => {
  const parts = partsInOrder({ embedding: 1, heads, mlps: [3, -1], biases: 0.5 });
  assert.deepEqual(
    parts.map(({ name, value, sum }) => [name, value, sum]),
    [
      ["embedding", 1, 1],
      ["Layer 0, heads", -1.5, -0.5],
      ["Layer 0, MLP", 3, 2.5],
      ["Layer 1, heads", 1.25, 3.75],
      ["Layer 1, MLP", -1, 2.75],
      ["biases", 0.5, 3.25],
    ],
  );
  const place = axisOf(parts);
  assert.deepEqual([-0.5, 0, 1.625, 3.75].map(place), [0, 0.5 / 4.25, 0.5, 1]);
});

test("the heads with the largest parts, whatever their sign", () => {
  assert.deepEqual(headsBySize(heads).slice(0, 2), [
    { picture: [0, 1], value: -2 },
    { picture: [1, 0], value: 1 },
  ]);
});

/** @param {[weight: number, loss_change: number][]} values */
const answer = (values, rho = 0.9) => ({
  keys: values.map(([weight, loss_change], position) => ({
    ...{ id: position, text: "abc"[position], position, weight, loss_change },
    ...{ norm: 1, attribution: 0 },
  })),
  correlations: [{ measures: ["weight", "loss_change"], spearman: rho }],
});

test("whether the measures of a head agree, in a sentence", () => {
  assert.match(agreement(answer([[1, 2]])), /only one token/);
  assert.match(
    agreement(
      answer([
        [0.9, 0.001],
        [0.1, -0.002],
      ]),
    ),
    /at most 0\.0020 nats: where this head looks hardly/,
  );
  const other = agreement(
    answer([
      [0.9, 0.02],
      [0.1, -0.5],
    ]),
  );
  assert.match(
    other,
    /^The measures disagree: it looks most at “a” \(position 0\), but “b” \(position 1\) matters most/,
  );
  assert.match(other, /by −0\.500 nats\.$/);
  const same = answer([
    [0.9, 0.5],
    [0.1, 0.1],
  ]);
  assert.equal(
    agreement(same),
    "It looks most at “a” (position 0), which also matters most: cutting that edge changes the loss by +0.500 nats.",
  );
  assert.match(
    agreement({
      ...same,
      ...answer(
        [
          [0.9, 0.5],
          [0.1, 0.1],
        ],
        0.2,
      ),
    }),
    /rank correlation .* is \+0\.20\.$/,
  );
  assert.equal(correlation(same, "loss_change", "weight"), 0.9);
  assert.equal(correlation(same, "norm", "weight"), null);
});

test("numbers with their sign", () => {
  assert.deepEqual(
    [1, -1, 0.001, -0.001].map((value) => signed(value)),
    ["+1.00", "−1.00", "0.00", "0.00"],
  );
});

test("where a token settles, by the name of the layer", () => {
  assert.deepEqual([0, 1, 6].map(shortName), ["start", "L0", "L5"]);
});

test("what favours a token, in two sentences", () => {
  const [token, against] = [{ text: "\n" }, { text: " " }];
  const asked = { token, against, logit: 1.75, probability: 0.9, embedding: 1, heads, mlps: [3, -1], biases: -2.5 };
  assert.deepEqual(whyPlain(asked), [
    "A line break is 5.8 times as likely as a space, since its logit is 1.8 higher. The largest contribution in " +
      "favour of a line break comes from the MLP of layer 0 (+3.0).",
    "Second is head 0 of layer 1 (+1.0); the largest contribution against it comes from the biases (−2.5).",
  ]);
  const alike = whyPlain({ ...asked, token: { text: " kite" }, against: { text: "kite" } })[0];
  assert.match(alike, /^“·kite” is 5\.8 times as likely as “kite”/);
  assert.match(whyPlain({ ...asked, token: { text: " kite" } })[0], /in favour of “kite” /);
});
