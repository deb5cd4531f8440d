import assert from "node:assert/strict";
import { test } from "node:test";
import { Turns } from "../../../web/js/look/panels/turns.mjs";

const said = (role, start, end) => ({ role, content: "x", start, end });
const seen = (turns, n) => Array.from({ length: n }, (_, i) => turns.roleAt(i) ?? (turns.isMarker(i) ? "-" : "."));

test("tokens belong to a turn or to the template, and the answer has no end", () => {
  const turns = new Turns({ chat: [said("system", 1, 3), said("user", 4, 5)], n_prompt: 6 });
  assert.deepEqual(seen(turns, 8), ["-", "system", ".", "-", "user", "-", "assistant", "."]);
});

test("without a conversation, or with unknown places, nothing is marked", () => {
  for (const chat of [null, [], [said("user", null, null)]]) {
    assert.deepEqual(seen(new Turns({ chat, n_prompt: 2 }), 3), [".", ".", "."]);
  }
});
