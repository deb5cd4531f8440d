import assert from "node:assert/strict";
import { test } from "node:test";

import { lensCall } from "../../../web/js/calls/python.mjs";

test("the Python call reads every text with the head mask", () => {
  const body = { model: "tiny", tokens: [1, 2], head_mask: [[1, 0]], other_tokens: [1, 3], other_model: "USER/NAME" };
  assert.equal(
    lensCall({ route: "difference", body }),
    `import headscope
import torch

head_mask = torch.tensor([[1, 0]])
loaded = headscope.load("checkpoints/tiny")
answer = loaded.difference(loaded.trace([1, 2], head_mask=head_mask), other_model=headscope.load("USER/NAME"), \
other=loaded.trace([1, 3], head_mask=head_mask)).to_dict()
`,
  );
});

test("what is a number or a truth value in a query is one in the Python call", () => {
  const query = { model: "8", centred: "true", distance: "3" };
  assert.match(lensCall({ route: "composition", query }), /\nloaded = headscope.load\("checkpoints\/8"\)\n/);
  assert.match(lensCall({ route: "composition", query }), /loaded.composition\(centred=True, distance=3\)/);
});
