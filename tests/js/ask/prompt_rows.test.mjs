import assert from "node:assert/strict";
import { test } from "node:test";

import { parseRows } from "../../../web/js/look/ask/prompts/prompt_rows.mjs";

const PAIR = { prompt: "so it is", corrupted: "so he is", answer: " a", wrong: " b" };

test("rows are read from lines, CSV, JSON lines and JSON", () => {
  assert.deepEqual(parseRows("one, two\n\nthree\r\n"), {
    rows: [{ prompt: "one, two" }, { prompt: "three" }],
    lines: [1, 3],
  });
  const csv = 'prompt,corrupted,answer,wrong\nso it is,so he is," a"," b"\n\n"a ""b"",\nc",,,\n';
  assert.deepEqual(parseRows(csv), { rows: [PAIR, { prompt: 'a "b",\nc' }], lines: [2, 4] });
  assert.deepEqual(parseRows(`${JSON.stringify(PAIR)}\n\n"alone"\n`), {
    rows: [PAIR, { prompt: "alone" }],
    lines: [1, 3],
  });
  assert.deepEqual(parseRows(JSON.stringify([PAIR, "alone"])).rows, [PAIR, { prompt: "alone" }]);
});

test("a bad row is named by its line", () => {
  /** @type {[string, RegExp][]} */
  const cases = [
    ["", /no prompts yet/],
    ["prompt,corrupted\na,b\n\na,b,c\n", /^Error: Line 4: there are 3 fields, but 2 columns/],
    ['prompt,answer\n"a,b\n', /^Error: Line 2: a quotation mark is not closed/],
    ["prompt,colour\na,red\n", /^Error: Line 2: there is no column “colour”/],
    ['"a"\n{"prompt": 5}\n', /^Error: Line 2: a row must be a text or an object with a prompt/],
    ['"a"\n{"prompt": "a",}\n', /^Error: Line 2: this is not valid JSON/],
    ['[{"prompt": "a", "answer": 1.5}]', /^Error: Row 1: answer must be text/],
    ["[1, 2", /not valid JSON/],
    ["a\n".repeat(1001), /1,001 rows were given; at most 1,000/],
    ["a".repeat(2_000_001), /larger than 2 MB/],
  ];
  for (const [text, message] of cases) assert.throws(() => parseRows(text), message);
});
