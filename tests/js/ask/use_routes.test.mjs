// The list of all routes on Use, which is made from the server's OpenAPI document.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openWindow } from "../widgets/small_dom.mjs";

openWindow("");
const { RouteList } = await import("../../../web/js/use/routes.mjs");

test("the list of routes says of each field what the server’s document says", async () => {
  const schema = {
    n: { description: "How many `choices`.", minimum: 1, maximum: 1280, default: 1 },
    stop: { anyOf: [{ type: "string", maxLength: 64 }, { type: "null" }] },
  };
  const list = new RouteList(async () => ({
    servers: [{ url: "/v1" }],
    paths: {
      "/completions": {
        post: {
          description: "Continue texts.\n\nMore.",
          requestBody: { content: { "application/json": { schema: { $ref: "#/components/schemas/Body" } } } },
        },
      },
      "/models": { get: { description: "The served models." } },
    },
    components: { schemas: { Body: { properties: schema } } },
  }));
  await list.fill();
  const text = list.list.textContent;
  for (const part of [
    "POST /v1/completions Continue texts.",
    "nHow many choices. at least 1, at most 1,280, 1 by default",
    "stopat most 64 characters",
    "GET /v1/models The served models.",
  ]) {
    assert.ok(text.includes(part), `${part} in ${text}`);
  }
  assert.ok(!text.includes("More."));
});
