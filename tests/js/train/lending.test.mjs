import assert from "node:assert/strict";
import { test } from "node:test";

import { LentNote, loanIn } from "../../../web/js/look/borrow.mjs";
import { timeOf } from "../../../web/js/lib/numbers.mjs";
import { loanLink } from "../../../web/js/train/lend.mjs";

import { openWindow } from "../widgets/small_dom.mjs";

const LOAN = "Ab-_".repeat(8);

test("a link has the secret of a loan in its fragment only, whatever the page shows", () => {
  for (const page of ["https://a.example/heads/", "https://a.example/heads/?model=tiny&ids=AQI&__theme=dark#train"]) {
    const link = new URL(loanLink(page, "your-gpt-ab12", LOAN));
    assert.equal(link.origin + link.pathname, "https://a.example/heads/");
    assert.equal(link.search, "?model=your-gpt-ab12");
    assert.equal(loanIn(link.hash), LOAN);
  }
});

test("an address without a loan has none, and an incomplete one is sent to the server, which refuses it", () => {
  assert.deepEqual(["", "#learn/3", "#train", "#x#lent=a"].map(loanIn), [undefined, undefined, undefined, undefined]);
  assert.deepEqual(["#lent=", "#lent=abc"].map(loanIn), ["", "abc"]);
});

test("only a lent model is introduced: whose it is, until when, what it opens, and what it may repeat", () => {
  openWindow("");
  let written = 0;
  const note = new LentNote(() => (written += 1));
  note.show({ name: "tiny", until: 0 });
  assert.ok(note.element.hidden);
  note.show({ name: "your-gpt-ab12", until: 1_800_000_000 });
  assert.ok(!note.element.hidden);
  const { textContent } = note.element;
  assert.ok(textContent.startsWith(`your-gpt-ab12 is lent to you until ${timeOf(1_800_000_000)}Someone in your class`));
  assert.match(textContent, /may repeat passages of its text, word for word/);
  note.element.querySelector("button").click();
  assert.equal(written, 1);
  note.show(undefined);
  assert.ok(note.element.hidden);
});

test("a refused text shows that the loan has ended, and one refused for another reason does not", async () => {
  openWindow("");
  const note = new LentNote(() => {});
  const lent = { name: "your-gpt-ab12", until: 1_800_000_000 };
  note.show(lent);
  let models = [{ name: "tiny" }, lent];
  Object.assign(globalThis, { fetch: async () => new Response(JSON.stringify({ models })) });
  await note.check();
  assert.match(note.element.textContent, /is lent to you until/);
  models = [{ name: "tiny" }];
  await note.check();
  assert.match(note.element.textContent, /^your-gpt-ab12 is no longer lent to you.*or its hour is over/);
  assert.ok(!note.element.hidden && note.element.querySelector("button").hidden);
  note.show({ name: "tiny", until: 0 });
  assert.ok(note.element.hidden);
});
