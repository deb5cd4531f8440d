// A kept run is fetched by its id; one that the server no longer keeps is recomputed from the text that is known.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { RunFetcher } from "../../../web/js/look/state/run_fetcher.mjs";

const text = { sha256: "0", ids: [1, 2], n_prompt: 1, head_mask: null };
/** @type {string[]} */
let paths;
/** @type {(path: string) => Response} */
let answer;

beforeEach(() => {
  paths = [];
  Object.assign(globalThis, { document: { baseURI: "http://here/" } });
  globalThis.fetch = async (url) => {
    paths.push(String(url).replace("http://here/look/", ""));
    return answer(/** @type {string} */ (paths.at(-1)));
  };
});

const numbers = () => new Response(new Float32Array([1]));
/** @param {number} status */
const refusal = (status) => Response.json({ detail: "There is no token 9; the text has 2." }, { status });

test("a run that is no longer kept is recomputed, from then on without asking for it", async () => {
  answer = (path) => (path.startsWith("again/") ? numbers() : refusal(404));
  const fetcher = new RunFetcher("run", () => text);
  assert.deepEqual(await fetcher.query(0), new Float32Array([1]));
  await fetcher.query(1);
  assert.deepEqual(paths, ["run/queries/0", "again/queries/0", "again/queries/1"]);
});

test("a position that the text does not have is an error, and the run is still fetched by its id", async () => {
  answer = (path) => (path === "run/queries/9" ? refusal(400) : numbers());
  const fetcher = new RunFetcher("run", () => text);
  await assert.rejects(fetcher.query(9), { status: 400, message: "There is no token 9; the text has 2." });
  await fetcher.query(0);
  assert.deepEqual(paths, ["run/queries/9", "run/queries/0"]);
});
