// How a text goes on with its heads as they are and with some of them off.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openWindow } from "../widgets/small_dom.mjs";

openWindow("");
const { Endings, sharedTokens } = await import("../../../web/js/look/ask/endings.mjs");

const OFF = [[0, 1]];
const written = { plain: [" new", " kite", "."], off: [" new", " toy"] };
const asked = [];
globalThis.fetch = async (_, { body }) => {
  asked.push(JSON.parse(body));
  const tokens = asked.at(-1).head_mask ? written.off : written.plain;
  return {
    ok: true,
    json: async () => ({ choices: [{ logprobs: { tokens, token_logprobs: tokens.map(() => -0.5) } }] }),
  };
};

const store = {
  pointer: { model: "m", run: "r", context_length: 8, head_mask: null, n_layer: 1, n_head: 2 },
  ids: [4, 5, 6],
  tokens: [" a", " b", " c"].map((text) => ({ text })),
};
const words = (element) => [...element.querySelectorAll(".hs-fork-word b")].map(({ textContent }) => textContent);

test("two endings fork where their tokens differ first", () => {
  const of = (...tokens) => ({ tokens, token_logprobs: [] });
  assert.equal(sharedTokens(of("a", "b"), of("a", "c")), 1);
  assert.equal(sharedTokens(of("a"), of("a", "c")), 1);
  assert.equal(sharedTokens(of("a", "b"), of("a")), 1);
  assert.equal(sharedTokens(of(), of()), 0);
});

test("both sides take the likeliest tokens after the same words, within the context", async () => {
  const endings = new Endings(store);
  await endings.show(OFF, 1);
  assert.deepEqual(
    asked.map(({ prompt, max_tokens, temperature, head_mask }) => ({ prompt, max_tokens, temperature, head_mask })),
    [null, OFF].map((head_mask) => ({ prompt: [4, 5], max_tokens: 6, temperature: 0, head_mask })),
  );
  assert.equal(endings.drawing.shared.textContent, " a b new");
  assert.deepEqual(words(endings.drawing.branches.a), ["kite", "."]);
  assert.deepEqual(words(endings.drawing.branches.b), ["toy"]);
  assert.match(endings.rule.textContent, /likeliest token at every step/);
  await endings.show(OFF, 1);
  assert.equal(asked.length, 2, "what is shown is not asked for again");
});

test("endings that are the same do not fork", async () => {
  const endings = new Endings(store);
  const kept = written.off;
  written.off = written.plain;
  await endings.show(OFF, 1);
  written.off = kept;
  assert.ok(endings.drawing.both.hidden);
  assert.match(endings.rule.textContent, /the same 3 tokens follow/);
});

test("only the newest change is asked for, and an error leaves no endings", async () => {
  const endings = new Endings(store);
  assert.ok(endings.element.hidden, "before anything is changed");
  const before = asked.length;
  await Promise.all([endings.show(OFF, 0), endings.show(OFF, 1)]);
  assert.deepEqual(
    asked.slice(before).map(({ prompt }) => prompt),
    [
      [4, 5],
      [4, 5],
    ],
  );
  const { fetch } = globalThis;
  globalThis.fetch = async () => {
    throw new Error("no connection");
  };
  await endings.show(OFF, 0);
  globalThis.fetch = fetch;
  assert.equal(endings.rule.textContent, "Could not write on: no connection");
  assert.ok(endings.drawing.both.hidden);
  assert.equal(endings.element.getAttribute("aria-busy"), "false");
});

test("a text that fills the context has no endings", async () => {
  const endings = new Endings(store);
  const before = asked.length;
  await endings.show(OFF, 7);
  assert.ok(endings.element.hidden);
  assert.equal(asked.length, before);
});
