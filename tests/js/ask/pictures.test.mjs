// The pictures of Ask's answers, in a small DOM.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openWindow, press, texts } from "../widgets/small_dom.mjs";

openWindow("");
const { decidedPlain, LayerStrip } = await import("../../../web/js/look/ask/questions/logit_lens.mjs");
const { fourBars, mainWords } = await import("../../../web/js/look/ask/questions/four_bars.mjs");
const { sumAsWritten } = await import("../../../web/js/look/ask/questions/ledger.mjs");
const { ringWidth } = await import("../../../web/js/look/panels/overlay.mjs");
const { errorWords } = await import("../../../web/js/look/ask/questions/many.mjs");
const { HeadList } = await import("../../../web/js/look/ask/head_list.mjs");
const { percent, signed } = await import("../../../web/js/lib/numbers.mjs");
const { residualMap } = await import("../../../web/js/look/ask/questions/residual_map.mjs");
const { atPosition, chosenPosition, positionMap } = await import("../../../web/js/look/ask/prompts/position_map.mjs");
const { windowStart } = await import("../../../web/js/look/ask/token_grid.mjs");

/** Predictions after each layer of a text of two tokens. */
const reading = (/** @type {[string, number][]} */ ...found) =>
  found.map(([text, probability]) => ({
    id: ["my", " kite"].indexOf(text),
    text,
    probability,
    top: [{ text, probability }],
    kl: 0.5,
    answer: 0.1,
  }));
const lens = /** @type {any} */ ({
  tokens: [
    { id: 0, text: "my" },
    { id: 1, text: " kite" },
  ],
  layers: [
    reading(["my", 0.9], [" kite", 0.8]),
    reading([" big", 0.3], [".", 0.4]),
    reading([" kite", 0.94], [".", 0.7]),
  ],
  decided: [2, 1],
});

test("the layer at which a prediction settles, in one sentence", () => {
  assert.equal(
    decidedPlain(lens, 0),
    "Only the last layer decides on “kite”, with 94%; before it, “big” leads with 30%.",
  );
  assert.equal(
    decidedPlain(lens, 1),
    "From layer 0 on, “.” leads: with 40% there and 70% at the end; before it, “kite” leads with 80%.",
  );
  assert.match(decidedPlain({ ...lens, decided: [0, 0] }, 1), /^“\.” leads from the start, and no layer changes that/);
  const alike = { ...lens, layers: [lens.layers[0], reading(["kite", 0.3], [".", 1]), lens.layers[2]] };
  assert.match(decidedPlain(alike, 0), /decides on “·kite”, .* before it, “kite” leads/); // two tokens that read alike
});

test("the strip has a column for each token and a row for each layer, and marks where it settles", () => {
  /** @type {number[]} */
  const looked = [];
  const strip = new LayerStrip(
    /** @type {any} */ ({
      tokens: lens.tokens,
      view: { options: { details: true } },
      selection: { look: (/** @type {number} */ at) => looked.push(at) },
    }),
  );
  strip.show(lens, 0);
  const column = [...strip.column.querySelectorAll("tr")].map((row) => texts(row, "th, span, td:last-child"));
  assert.deepEqual(column, [
    ["Start", "my", "90%"],
    ["Layer 0", "big", "30%"],
    ["Layer 1", "kite", "94%"],
  ]);
  assert.deepEqual(texts(strip.column, ".hs-repeats"), ["my"]);
  assert.deepEqual(texts(strip.grid.table, ".hs-repeats"), ["my", "kite"]);
  const rows = [...strip.grid.table.querySelectorAll("tbody tr")].map((row) => texts(row, "th, td"));
  assert.deepEqual(rows, [
    ["start", "my", "kite"],
    ["L0", "big", "."],
    ["L1", "kite", "."],
    ["settles", "L1", "L0"],
  ]);
  assert.deepEqual(texts(strip.grid.table, ".hs-settles"), [".", "kite"]);
  assert.match(String(strip.chosen.textContent), /^After layer 1, following “my”: kite 94%\. More ink is likelier\.$/);
  const [button] = strip.grid.table.querySelectorAll('[aria-pressed="true"]');
  globalThis.document.body.append(strip.element);
  /** @type {HTMLButtonElement} */ (button).focus();
  press(button, "ArrowRight");
  assert.deepEqual(looked, [1]);
  assert.match(String(strip.chosen.textContent), /^After layer 1, following “kite”: \. 70%/);
});

test("what carries the answer is drawn below both texts, from the first changed word on", () => {
  const tokens = [" a", " red", " kite"].map((text, id) => ({ id, text }));
  const changed = [tokens[0], { id: 9, text: " blue" }, tokens[2]];
  const residual = [
    [0, 1, 0],
    [0, 0.04, -0.5],
  ];
  const locked = /** @type {any[]} */ ([]);
  const store = /** @type {any} */ ({ selection: { lock: (/** @type {any} */ cell) => locked.push(cell) } });
  const map = residualMap(store);
  map.show({ residual, tokens, corrupted_tokens: changed }, "restored");
  assert.deepEqual(texts(map.element, "thead th"), ["after", "redblue", "kitekite"]);
  assert.deepEqual(texts(map.element, ".hs-changed"), ["blue"]);
  assert.deepEqual(texts(map.element, "tbody tr"), ["start100", "L0−50"]);
  const [cell] = map.element.querySelectorAll("tbody tr:last-child td button");
  assert.equal(cell.getAttribute("aria-label"), "“·red” at position 1, after layer 0: 4% restored");
  /** @type {HTMLElement} */ (cell).click();
  assert.deepEqual(locked, [{ query: 1 }]);
});

test("the means of a template have a column for each position, and a cell chooses one", () => {
  const tokens = ["So", " Anna"].map((text) => ({ text }));
  // [layer][head][position]
  const means = [
    [
      [0, 0.1],
      [0.02, -0.4],
    ],
    [
      [0.01, 0.2],
      [0, 0.8],
    ],
  ];
  const errors = means.map((layer) => layer.map((head) => head.map(() => 0.03)));
  const chosen = /** @type {number[]} */ ([]);
  const map = positionMap((at) => chosen.push(at));
  const words = (/** @type {number} */ mean, /** @type {number} */ error) => `${mean} ± ${error}`;
  const found = { tokens, means, errors, words, short: String };
  map.show(found, 1);
  assert.deepEqual(texts(map.element, "thead th"), ["layer", "So", "Anna"]);
  assert.deepEqual(texts(map.element, "tbody tr"), ["L0-0.4", "L10.8"]);
  assert.deepEqual(texts(map.element, '[aria-pressed="true"]'), ["0.8"]); // of the layer furthest from zero
  const cells = /** @type {HTMLElement[]} */ ([...map.element.querySelectorAll("td button")]);
  assert.equal(cells[1].getAttribute("aria-label"), "“Anna” (token 1), head 1 of layer 0: -0.4 ± 0.03");
  cells[0].click();
  assert.deepEqual(chosen, [0]);
  map.show(found, 0);
  assert.equal(map.element.querySelector('[aria-pressed="true"]'), cells[0]); // the cell itself, which keeps its focus
  assert.deepEqual(atPosition(means, 1), [
    [0.1, -0.4],
    [0.2, 0.8],
  ]);
  assert.deepEqual(
    ["largest", "0", "2"].map((named) => chosenPosition(named, means)),
    [1, 0, 1],
  );
});

test("of a long text a part is shown at once, around a token", () => {
  const range = { first: 0, end: 200 };
  assert.deepEqual(
    [0, 40, 100, 199].map((position) => windowStart(position, range)),
    [0, 8, 68, 136],
  );
  assert.equal(windowStart(5, { first: 3, end: 10 }), 3);
});

test("four bars for each of the words that matter by any measure, in the order of the text", () => {
  const key = (/** @type {number} */ position, values = {}) => ({
    ...{ id: position, text: ` w${position}`, position, weight: 0.01, norm: 0.01, attribution: 0, loss_change: 0 },
    ...values,
  });
  const keys = Array.from({ length: 12 }, (_, at) => key(at));
  keys[9] = key(9, { loss_change: -0.5 });
  keys[3] = key(3, { weight: 0.9, norm: 4, attribution: 3 });
  const main = mainWords(keys).map(({ position }) => position);
  assert.deepEqual(main, [3, 9]);
  assert.equal(mainWords(keys.map((each) => ({ ...each, norm: 4 }))).length, 8); // there is no room for more
  const pinned = /** @type {any[]} */ ([]);
  const store = /** @type {any} */ ({ selection: { lock: (/** @type {any} */ cell) => pinned.push(cell) } });
  const answer = /** @type {any} */ ({ keys, layer: 7, head: 6, position: 11, token: { id: 1, text: " kite" } });
  const [table, words] = fourBars(store, answer);
  const row = /** @type {HTMLElement} */ (table.querySelector('[data-key="9"]'));
  assert.deepEqual(texts(row, "th, td"), ["w99", "1.0%", "0.0", "0.0", "−0.50"]);
  assert.deepEqual(
    [...row.querySelectorAll(".hs-measure > span")].map((bar) => /** @type {HTMLElement} */ (bar).className),
    ["", "", "hs-signed", "hs-signed hs-less"],
  );
  /** @type {HTMLElement} */ (row.querySelector("button")).click();
  assert.deepEqual(pinned, [{ query: 11, key: 9 }]);
  const others = /** @type {HTMLElement} */ (table.querySelector(".hs-other-words"));
  assert.deepEqual(texts(others, "th, td"), ["the other 10 words: together", "10%", "", "0.0", ""]);
  assert.match(String(words.textContent), /“kite” becomes less likely\.$/);
});

test("the sum is written out, and each number leads to its step", () => {
  const answer = /** @type {any} */ ({
    ...{ tokens: [{ text: " kite" }, { text: " my" }], position: [1, 0], token: { id: 1, text: " kite" } },
    ...{ score: 46.261, scale: 0.1581, scaled: [7.3145, 4], largest: 7.3145, denominator: 1.0897, mask: 1 },
    ...{ weights: [0.9177, 0.0823], part: 3.061, head_part: 3.232, rest: 12.8283, logit: 16.0603, probability: 0.9433 },
  });
  const steps = /** @type {string[]} */ ([]);
  const lines = sumAsWritten(answer, (name) => steps.push(name));
  assert.deepEqual(
    lines.map(({ textContent }) => textContent),
    [
      "“my” looks at “kite”46.26 × 0.158 = 7.31",
      "of all it looks ate7.31 − 7.31 / 1.09 = 92%",
      "what it takes there adds to “kite”92% × value → +3.06",
      "with the head’s other words, and the rest of the model+3.06 + 0.17 + 12.83 = 16.06",
      "which makes “kite” the next token with94%",
    ],
  );
  for (const button of lines[0].querySelectorAll("button")) /** @type {HTMLElement} */ (button).click();
  assert.deepEqual(steps, Array(2).fill("Score: query times key, scaled"));
  const scaled = sumAsWritten({ ...answer, mask: 0.5, largest: -1, rest: -2 }, () => {});
  assert.match(String(scaled[1].textContent), /e7\.31 \+ 1\.00 /);
  assert.match(String(scaled[2].textContent), /92% × 0\.5000 × value/);
  assert.match(String(scaled[3].textContent), / − 2\.00 = /);
});

test("the ring of a head is its standard error, on the scale of the ink", () => {
  const overlay = /** @type {any} */ ({ errors: [[0, 0.05, 0.4]], most: 0.2 });
  assert.deepEqual(
    [0, 1, 2].map((head) => ringWidth(overlay, [0, head])),
    [0, 2, 8],
  );
  assert.equal(ringWidth({ ...overlay, errors: undefined }, [0, 1]), 0);
});

test("a standard error is never printed as zero unless it is", () => {
  const nats = (/** @type {number} */ value) => `${signed(value, 3)} nats`;
  assert.deepEqual(
    [0.0004, 0.012, 0].map((error) => errorWords(error, nats)),
    ["under 0.001 nats", "0.012 nats", "0.000 nats"],
  );
  assert.equal(errorWords(0.002, percent), "under 1%");
});

test("of many heads the list shows those at both ends, if they work against each other", () => {
  const store = /** @type {any} */ ({ open: [0, 0], pointer: { n_layer: 1, n_head: 20 }, view: {} });
  const heads = (/** @type {number[]} */ values) =>
    values.map((value, head) => ({ picture: /** @type {[number, number]} */ ([0, head]), value, text: `${value}` }));
  const list = new HeadList(store, "Heads");
  const shown = () => texts(list.element, ".hs-number-cell").map(Number);
  list.show("change", heads([9, 8, 7, 6, 5, 4, 3, 2, 1, 0, -1, -2]), true);
  assert.deepEqual(shown(), [9, 8, 7, 6, 5, 4, -1, -2]);
  list.show("change", heads([9, 8, 7, 6, 5, 4, 3, 2, 1]), true);
  assert.deepEqual(shown(), [9, 8, 7, 6, 5, 4, 3, 2]);
  list.show("change", heads([3, -1, -2, -3, -4, -5, -6, -7, -8]), true);
  assert.deepEqual(shown(), [3, -1, -2, -3, -4, -6, -7, -8]);
  list.show("change", heads([3, -1]));
  const bars = [...list.element.querySelectorAll(".hs-amount")].map((each) => /** @type {HTMLElement} */ (each).style);
  assert.deepEqual(
    bars.map((style) => ["--from", "--part"].map((name) => Number(style.getPropertyValue(name)))),
    [
      [0.25, 0.75],
      [0, 0.25],
    ],
  );
  list.show("size", heads([9, -8, 7, -6, 5, 4, 3, 2, -1]));
  assert.deepEqual(shown(), [9, -8, 7, -6, 5, 4, 3, 2]);
});
