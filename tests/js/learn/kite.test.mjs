// The story about the kite on rungs 10 and 11: what is computed, and what is shown where the model is not offered.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { openWindow, texts } from "../widgets/small_dom.mjs";
import { KITE, textToTokens } from "../../../web/js/learn/rungs/01_text_to_tokens.mjs";
import { normOf } from "../../../web/js/learn/widgets/story_block.mjs";
import { STORY_BLOCK } from "../../../web/js/learn/widgets/story_numbers.mjs";
import { StoryWithoutHeads, storyByTheLessons } from "../../../web/js/learn/widgets/kite.mjs";

openWindow("");
const HEADS = [
  [4, 3],
  [7, 6],
];
const ALL = { kite: 0.943, new: 0.048, string: 0.002 };

/** The server's answer: "kite" is likely until all heads are gone. @param {number[][]} muted */
function told(muted) {
  const kite = muted.length === HEADS.length ? 0.006 : 0.943 - 0.2 * muted.length;
  const isMuted = (/** @type {number[]} */ head) => muted.some((each) => String(each) === String(head));
  return {
    model: "stories-bpe",
    chances: [ALL, { ...ALL, kite }],
    best: { text: kite > 0.5 ? " kite" : " new", p: Math.max(kite, 0.89) },
    heads: HEADS.map((head) => ({ head, weight: 0.5, isMuted: isMuted(head) })),
    error: 1e-7,
    largest_error: 1e-4,
  };
}

/** @param {(muted: number[][]) => object} answer */
const serve = (answer) =>
  (globalThis.fetch = async (_, { body }) => Response.json(answer(JSON.parse(String(body)).muted ?? [])));

/** Until what was asked has been shown. */
const settled = () => new Promise((done) => setTimeout(done));

test("heads are taken away one by one and all together, and the chances follow", async () => {
  serve(told);
  const { element } = new StoryWithoutHeads({});
  await settled();
  await settled();
  const shown = () => texts(element, "figcaption").at(-1);
  const press = async (/** @type {string} */ name) => {
    [...element.querySelectorAll("button")].find(({ textContent }) => textContent === name)?.click();
    await settled();
  };
  assert.equal(shown(), "Without 2 heads: 4·3, 7·6"); // at first all are gone
  assert.match(texts(element, "[role=status]")[0], /“new”, with a chance of 89%/);
  await press("Give all back");
  assert.equal(shown(), "With all heads");
  await press("7·6");
  assert.equal(shown(), "Without 1 head: 7·6");
  assert.match(texts(element, "[role=status]")[0], /“kite”/);
});

test("rung 10 shows what the construction expects, and where its heads look", async () => {
  serve(told);
  const element = storyByTheLessons();
  await settled();
  assert.match(element.textContent, /What your construction expects next/);
  assert.match(texts(element, ".hl-stamp")[0], /recomputed = model/);
});

test("where stories-bpe is not offered, the recorded chances stay and are said to be recorded", async () => {
  serve(() => ({ model: null }));
  const without = new StoryWithoutHeads({}).element;
  const whole = storyByTheLessons();
  await settled();
  for (const element of [without, whole]) assert.match(element.textContent, /As recorded: this server does not offer/);
  assert.match(without.textContent, /Without the seven heads/);
  assert.equal(texts(without, "button").length, 0);
});

test("rung 1 merges “kite” as stories-bpe does, up to the id that the rung ends with", () => {
  const folder = new URL("../../../checkpoints/stories-bpe/tokenizer.json", import.meta.url);
  const { merges, vocab } = JSON.parse(readFileSync(folder, "utf8")).model;
  const ranks = new Map(
    merges.map((/** @type {string | string[]} */ pair, /** @type {number} */ i) => [[pair].flat().join(" "), i]),
  );
  let tokens = KITE.start[0];
  for (const { rank, pair, words } of KITE.steps) {
    const known = tokens.slice(1).map((token, i) => ranks.get(`${tokens[i]} ${token}`) ?? Infinity);
    assert.equal(rank, Math.min(...known));
    assert.equal(ranks.get(pair.join(" ")), rank);
    [tokens] = words;
    assert.equal(tokens.join(""), "Ġkite");
  }
  assert.deepEqual(tokens, ["Ġkite"]);
  assert.match(textToTokens.next, new RegExp(`the number ${vocab["Ġkite"]}\\b`));
});

test("rung 9 shows the copies that the model reads, hardly different if the stream is ten times as large", () => {
  for (const [stage, read, norm] of /** @type {const} */ ([
    ["x", "normed", "norm"],
    ["resid_mid", "mlp_input", "second_norm"],
  ])) {
    STORY_BLOCK[stage].forEach((row, r) =>
      row.forEach((x, c) => {
        const [once, tenfold] = [1, 10].map((scale) => normOf(x, STORY_BLOCK[norm], r, c, scale));
        assert.ok(Math.abs(once - STORY_BLOCK[read][r][c]) < 1e-4);
        assert.ok(Math.abs(once - tenfold) < 1e-4);
      }),
    );
  }
});
