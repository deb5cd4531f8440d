// What is said about the next word without some heads, over many predictions, texts and settings.

import assert from "node:assert/strict";
import { test } from "node:test";
import { changedHeads } from "../../../web/js/lib/head_masks.mjs";
import { allHeads } from "../../../web/js/lib/heads.mjs";
import { share } from "../../../web/js/lib/numbers.mjs";
import { softmax } from "../../../web/js/lib/sampling.mjs";
import {
  comparedIds,
  effectOn,
  changeWords,
  likeliestWords,
  originOf,
  restWords,
  someHeads,
  strongestFor,
  theseHeads,
} from "../../../web/js/lib/without_heads.mjs";
import { withoutAlike } from "../../../web/js/look/roles/heads_alike.mjs";

/** Numbers from 0 to 1, the same in every run. @param {number} seed */
function randomNumbers(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

const TEXTS = Array.from({ length: 40 }, (_, id) => [` word${id}`, "\n", " ", "<|endoftext|>"][id < 37 ? 0 : id - 36]);

/** Predictions with and without heads: sharp and flat ones, little and much changed, and ones that stay the same. */
function* predictions() {
  for (let seed = 0; seed < 400; seed++) {
    const random = randomNumbers(seed);
    const [sharpness, change] = [[0.01, 1, 5, 30][seed % 4], [0, 0.001, 1, 20][Math.floor(seed / 4) % 4]];
    const before = Float32Array.from(TEXTS, () => sharpness * random());
    const after = before.map((logit) => logit + change * (random() - 0.5));
    const [from, to] = [before, after].map(softmax);
    const top = from.indexOf(Math.max(...from));
    for (const written of [null, top, to.indexOf(Math.max(...to)), Math.floor(40 * random())]) {
      yield { before, after, from, to, written, seed };
    }
  }
}

/** @param {import("../../../web/js/lib/without_heads.mjs").Part[]} parts */
const read = (parts) => parts.map((part) => (typeof part === "string" ? part : part.strong)).join("");
const NAMES = new Map([
  ["\n", "a line break"],
  [" ", "a space"],
  ["<|endoftext|>", "the end of the text"],
]);
/** @param {number} id */
const named = (id) => NAMES.get(TEXTS[id]) ?? `“${TEXTS[id].trim()}”`;

test("the words of both sides are sorted, with the likeliest of each and the written one", () => {
  for (const { from, to, written } of predictions()) {
    for (const count of [2, 5, 20]) {
      for (const by of [from, to]) {
        const ids = comparedIds(from, to, { count, written, by });
        assert.equal(new Set(ids).size, ids.length);
        assert.deepEqual(
          ids.map((id) => by[id]),
          ids.map((id) => by[id]).sort((a, b) => b - a),
        );
        for (const side of [from, to]) assert.ok(ids.some((id) => side[id] === Math.max(...side)));
        if (written !== null) assert.ok(ids.includes(written));
        assert.ok(ids.length >= count && ids.length <= count + 1);
      }
    }
  }
});

test("both probabilities are the model's own, and every word is said to be drawn or the likeliest", () => {
  const seen = new Set();
  for (const { before, after, from, to, written, seed } of predictions()) {
    const origin = /** @type {const} */ (["drawn", "given", "written"])[seed % 3];
    const effect = effectOn(before, after, TEXTS, written, origin);
    const { id } = effect;
    assert.deepEqual([effect.from, effect.to], [from[id], to[id]]);
    const [first, then] = [from, to].map((side) => side.indexOf(Math.max(...side)));
    assert.equal(id, written ?? first);
    assert.deepEqual([effect.likeliest.id, effect.without.id], [first, then]);

    const n = 1 + (seed % 9);
    const said = `${read(changeWords(effect, n, "word"))} ${read(likeliestWords(effect, n, "word"))}`;
    const found = /^Without (this head|these \d heads), (“.+?”|a .+?|the .+?)(, .+?,)? (falls|rises|stays)/.exec(said);
    assert.ok(found, said);
    assert.equal(found[1], theseHeads(n));
    assert.equal(found[2], named(id));
    // Where the word came from.
    const came = { drawn: ", drawn by chance,", given: ", which was given,", written: undefined }[origin];
    assert.equal(found[3], id === first ? ", the likeliest word," : came, said);
    // What becomes of it.
    const shown = [share(from[id]), share(to[id])];
    if (found[4] === "stays") assert.ok(shown[0] === shown[1] && said.includes(` stays at ${shown[0]}. `), said);
    else {
      assert.equal(found[4], to[id] < from[id] ? "falls" : "rises");
      assert.ok(said.includes(` ${found[4]} from ${shown[0]} to ${shown[1]}. `), said);
    }
    // Which words are the likeliest.
    const rest = said.slice(said.indexOf(". ") + 2);
    const [a, b] = [named(first), named(then)];
    const them = n === 1 ? "it" : "them";
    const [was, is] = [share(from[first]), share(to[then])];
    const right =
      id === first && id === then
        ? "It stays the likeliest word."
        : id === first
          ? `Then ${b} is the likeliest (${is}).`
          : first === then
            ? `The likeliest word is ${a} with ${them} (${was}) and without ${them} (${is}).`
            : id === then
              ? `The likeliest word is ${a} with ${them} (${was}), and without ${them} ${b} is.`
              : `The likeliest word is ${a} with ${them} (${was}), and without ${them} ${b} (${is}).`;
    assert.equal(rest, right);
    seen.add(`${found[3]} ${found[4]} ${right.slice(0, 6)}`);
  }
  assert.ok(seen.size >= 15, [...seen].join("\n"));
});

test("where the text ends, the word is the likeliest, and came from nowhere", () => {
  const effect = effectOn(new Float32Array([0, 3, 1]), new Float32Array([2, 0, 0]), [" a", " b", " c"], null, "drawn");
  assert.equal(effect.origin, "");
  assert.equal(
    `${read(changeWords(effect, 7, "letter"))} ${read(likeliestWords(effect, 7, "letter"))}`,
    "Without these 7 heads, “b”, the likeliest letter, falls from 84% to 11%. Then “a” is the likeliest (79%).",
  );
});

test("a word of the prompt was given, a branch's was chosen, and others were drawn unless the temperature is 0", () => {
  const text = { state: "done", n_prompt: 4, settings: { temperature: 0.8 }, branch: null };
  assert.deepEqual(
    [0, 3, 4, 9].map((position) => originOf(text, position)),
    ["given", "given", "drawn", "drawn"],
  );
  const branched = { ...text, branch: { at: 6 } };
  assert.deepEqual(
    [5, 6, 7].map((position) => originOf(branched, position)),
    ["drawn", "given", "drawn"],
  );
  assert.equal(originOf({ ...text, settings: { temperature: 0 } }, 5), "written");
  assert.equal(originOf({ ...text, settings: {} }, 5), "", "not known");
  for (const position of [3, 4]) assert.equal(originOf({ ...text, state: "snapshot" }, position), "");
});

test("the heads that are counted are those that are switched off, and do what is said of them", async () => {
  const tokens = ["A", " new", " kite", ",", " my", " new", " kite"].map((text, id) => ({ id, text }));
  const shape = { n_layer: 4, n_head: 4 };
  const heads = allHeads(shape);
  const query = 4;
  for (let seed = 0; seed < 200; seed++) {
    const random = randomNumbers(seed);
    const rows = heads.flatMap(() => {
      const row = Array.from({ length: query + 1 }, () => random() ** 6);
      const sum = row.reduce((total, weight) => total + weight, 0);
      return row.map((weight) => weight / sum);
    });
    const all = Float32Array.from(rows);
    const weightOf = (/** @type {number[]} */ [layer, head], /** @type {number} */ key) =>
      all[(layer * 4 + head) * (query + 1) + key];
    const open = heads.find((head) => weightOf(head, 2) >= 0.3);
    if (!open) continue;
    const roles = Array.from({ length: 4 }, () =>
      Array.from({ length: 4 }, () => ({ scores: { copying: random() + 0.4 } })),
    );
    const store = /** @type {any} */ ({
      tokens,
      open,
      roles,
      pointer: { ...shape, head_mask: null },
      data: { heads, index: (/** @type {number[]} */ [layer, head]) => layer * 4 + head },
      weights: { at: (/** @type {number} */ _query, /** @type {number} */ key) => weightOf(open, key) },
      selection: { focus: { query, key: 2 } },
      selectedHeads: { chosen: [open] },
      fetcher: { query: async () => all },
    });
    const removal = await withoutAlike(store);
    assert.ok(removal);
    assert.deepEqual(removal.heads, changedHeads(removal.mask));
    const isCopying = roles[open[0]][open[1]].scores.copying >= 0.9;
    for (const head of removal.heads) {
      assert.ok(weightOf(head, 2) >= (isCopying ? 0.1 : 0.3));
      if (isCopying) assert.ok(roles[head[0]][head[1]].scores.copying >= 0.9);
    }
    store.selectedHeads.chosen = heads.slice(0, 3);
    const chosen = await withoutAlike(store);
    assert.equal(chosen?.heads.length, 3);
  }
});

test("how much some heads add is a share only where it is one", () => {
  const kinds = new Set();
  for (let seed = 0; seed < 500; seed++) {
    const random = randomNumbers(seed);
    const shift = [-1, -0.6, -0.5, -0.2, 0][seed % 5];
    const values = Array.from({ length: 4 }, () => Array.from({ length: 3 }, () => random() + shift));
    const all = values.flat();
    const some = strongestFor(values);
    const adds = some.map(({ value }) => value);
    const spoken = said(restWords({ n: some.length, copied: null, adds, all }, " kite", "word"));
    const total = all.reduce((sum, value) => sum + value, 0);
    const part = adds.reduce((sum, value) => sum + value, 0);
    // The strongest heads are those that add most, in order, and none of them counts against the word.
    const rest = all.filter((value) => !adds.includes(value));
    assert.deepEqual(
      adds,
      [...adds].sort((a, b) => b - a),
    );
    assert.ok(adds.length <= 6 && adds.every((value) => value > 0 && value >= Math.max(...all) / 3));
    assert.ok(!adds.length || rest.every((value) => value <= /** @type {number} */ (adds.at(-1))));
    if (!some.length) assert.equal(spoken, "No head adds to “kite”: the rest of the model chooses it.");
    else if (part > total) {
      // What the others take away is what is missing.
      const taken = -rest.reduce((sum, value) => sum + value, 0) / part;
      const much = taken > 1 ? "more than that" : `${share(taken)} of that`;
      assert.ok(spoken.endsWith(` most to “kite”. The other ${rest.length} together take away ${much}.`), spoken);
    } else assert.ok(spoken.endsWith(`: ${share(part / total)} of what all heads add.`), spoken);
    kinds.add(spoken.replace(/[\d.]+/g, "N"));
  }
  assert.ok(kinds.size >= 5, [...kinds].join("\n"));
});

/** @param {import("../../../web/js/lib/without_heads.mjs").Part[]} parts */
const said = (parts) => parts.map((part) => (typeof part === "string" ? part : part.strong)).join("");

test("the sentence at rest is true in every case", () => {
  const rest = (/** @type {any} */ group) => said(restWords(group, " kite", "word"));
  const heads = [3, 2, 1, -1];
  assert.equal(
    rest({ n: 2, copied: " kite", adds: [3, 1], all: heads }),
    "Two of 4 heads look back at “kite” and copy it. They add 80% of what all heads add to the next word.",
  );
  assert.equal(
    rest({ n: 1, copied: " kite", adds: [3], all: heads }),
    "One of 4 heads looks back at “kite” and copies it. It adds 60% of what all heads add to the next word.",
  );
  assert.equal(
    rest({ n: 2, copied: null, adds: [3, 2], all: [3, 2, 3] }),
    "Two of 3 heads add most to “kite”: 63% of what all heads add.",
  );
  assert.equal(
    rest({ n: 2, copied: null, adds: [3, 2], all: heads.concat(-4) }),
    "Two of 5 heads add most to “kite”. The other 3 together take away 80% of that.",
  );
  assert.equal(
    rest({ n: 1, copied: " kite", adds: [3], all: [3, -4] }),
    "One of 2 heads looks back at “kite” and copies it. " +
      "It adds to the next word. The other one takes away more than that.",
  );
  assert.equal(rest({ n: 2, copied: " kite", adds: null, all: null }), "Two heads look back at “kite” and copy it.");
  assert.equal(
    rest({ n: 2, copied: " kite", adds: [-1, -2], all: heads }),
    "Two of 4 heads look back at “kite” and copy it.",
  );
  assert.equal(
    rest({ n: 0, copied: null, adds: [], all: heads }),
    "No head adds to “kite”: the rest of the model chooses it.",
  );
  assert.equal(rest({ n: 0, copied: null, adds: null, all: null }), "");
  assert.equal(someHeads(11), "11 heads");
});
