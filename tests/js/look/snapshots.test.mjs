import assert from "node:assert/strict";
import { test } from "node:test";

import { trainingOf } from "../../../web/js/look/state/snapshots.mjs";

test("what was kept of a training is asked for once, unless the request fails or it is wanted again", async (t) => {
  t.after(() => Reflect.deleteProperty(globalThis, "document"));
  Object.assign(globalThis, { document: { baseURI: "http://localhost/" } });
  const answers = [
    new Response("", { status: 503 }),
    Response.json({ steps: [10] }),
    Response.json({ steps: [10, 20] }),
  ];
  const asked = t.mock.method(globalThis, "fetch", () => Promise.resolve(answers.shift()));
  await assert.rejects(trainingOf("a model"), /503/);
  const [one, other] = await Promise.all([trainingOf("a model"), trainingOf("a model")]);
  assert.deepEqual([one, other], [{ steps: [10] }, { steps: [10] }]);
  assert.equal(asked.mock.callCount(), 2);
  assert.deepEqual(await trainingOf("a model", true), { steps: [10, 20] });
  assert.deepEqual(await trainingOf("a model"), { steps: [10, 20] });
  assert.equal(asked.mock.callCount(), 3);
  assert.equal(String(asked.mock.calls[0].arguments[0]), "http://localhost/look/steps/a%20model");
});
