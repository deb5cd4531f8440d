import assert from "node:assert/strict";
import { test } from "node:test";

import { stepsOf } from "../../../web/js/look/ask/questions/feeding_steps.mjs";

test("training steps are asked for again after a failed request, and once after a successful one", async (t) => {
  t.after(() => Reflect.deleteProperty(globalThis, "document"));
  Object.assign(globalThis, { document: { baseURI: "http://localhost/" } });
  const answers = [new Response("", { status: 503 }), Response.json({ steps: [10, 20] })];
  const asked = t.mock.method(globalThis, "fetch", () => Promise.resolve(answers.shift()));
  await assert.rejects(stepsOf("a model"), /503/);
  assert.deepEqual(await stepsOf("a model"), [10, 20]);
  assert.deepEqual(await stepsOf("a model"), [10, 20]);
  assert.equal(asked.mock.callCount(), 2);
  assert.equal(String(asked.mock.calls[0].arguments[0]), "http://localhost/look/steps/a%20model");
});
