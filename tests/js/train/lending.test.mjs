import assert from "node:assert/strict";
import { test } from "node:test";

import { loanIn } from "../../../web/js/look/borrow.mjs";
import { loanLink } from "../../../web/js/train/lend.mjs";

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
