// A link for a class: what it fixes, for every rung, and what it leaves out.

import assert from "node:assert/strict";
import test from "node:test";

import { RUNGS } from "../../../web/js/learn/main.mjs";
import { VisitorSettings } from "../../../web/js/learn/settings.mjs";
import { makeClassLink, readClassLink } from "../../../web/js/learn/widgets/class_link.mjs";

/** Another value of the same kind. @param {any} value @returns {any} */
function another(value) {
  if (Array.isArray(value)) return [[1, 0]];
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, another(each)]));
  }
  return { string: `${value} more`, number: value + 1, boolean: !value }[typeof value] ?? 1;
}

/** @param {VisitorSettings} settings @param {number} rung */
function follow(settings, rung, sentence = "To be & not?", model = "tiny") {
  const { isCut, ...linked } = settings.link(rung, settings.options(rung));
  const link = new URL(makeClassLink({ rung, sentence, ...linked, model }, "https://example.org/space/?ids=a#learn/3"));
  const read = readClassLink(link.hash);
  assert.ok(read);
  const followed = new VisitorSettings(RUNGS);
  followed.follow(rung, read);
  return { link, read, followed, isCut };
}

RUNGS.forEach(({ name, options, choices }, i) => {
  test(`a link fixes sentence, model, rung and settings: ${name}`, () => {
    const rung = i + 1;
    const settings = new VisitorSettings(RUNGS);
    settings.remember(rung, another(options()));
    Object.assign(settings.kept(rung), another(choices?.() ?? {}), { deeper: true });
    settings.shared = { vectors: "random", x: [[1, 2, 3]] };
    const { link, read, followed } = follow(settings, rung);
    assert.equal(link.pathname + link.search, "/space/?model=tiny");
    assert.deepEqual([read.rung, read.sentence], [rung, "To be & not?"]);
    assert.deepEqual(followed.options(rung), settings.options(rung));
    assert.deepEqual({ ...followed.kept(rung), deeper: true }, settings.kept(rung)); // what is unfolded is not fixed
    assert.deepEqual(followed.shared, settings.shared);
  });
});

test("a link replaces what the visitor had set before", () => {
  const settings = new VisitorSettings(RUNGS);
  settings.remember(7, { dropout: 0.1, seed: 9 });
  settings.kept(4).way = "by_loop";
  settings.follow(7, { options: { dropout: 0.3 } });
  settings.follow(4, {});
  assert.deepEqual(settings.options(7), { ...RUNGS[6].options(), dropout: 0.3 });
  assert.equal(settings.kept(4).way, "by_softmax");
});

test("a text that is too long for a link is left out, and that is said", () => {
  const settings = new VisitorSettings(RUNGS);
  settings.kept(3).text = "a".repeat(3000);
  settings.kept(3).settings.steps = 500;
  assert.equal(follow(settings, 3).isCut, false);
  settings.kept(3).text += "b";
  const { followed, isCut } = follow(settings, 3);
  assert.equal(isCut, true);
  assert.deepEqual(followed.kept(3), { settings: { steps: 500, learning_rate: 0.001 }, text: "" });
  settings.remember(1, { training_text: "b".repeat(3001) });
  assert.equal(follow(settings, 1).isCut, true);
});

test("an address that was typed by hand does no harm", () => {
  assert.deepEqual(readClassLink("#learn/4"), { rung: 4 });
  assert.equal(readClassLink("#learn/four"), null);
  for (const odd of ["{", "[]", "3", '{"options": 3}']) {
    const { options = {}, sentence } = readClassLink(`#learn/4?sentence=a&settings=${encodeURIComponent(odd)}`) ?? {};
    assert.deepEqual([options, sentence], [{}, "a"]);
  }
  const settings = new VisitorSettings(RUNGS);
  settings.follow(6, { choices: { transfer: 3, scaling: { head_dim: "2", sharpness: null }, heads: {}, other: 1 } });
  assert.deepEqual(settings.kept(6), RUNGS[5].choices?.());
});

test("another sentence or model resets what means nothing for it", () => {
  const settings = new VisitorSettings(RUNGS);
  const ofSentence = /** @type {[number, string][]} */ ([
    [4, "scores"],
    [5, "swapped"],
    [7, "flipped"],
    [10, "query"],
  ]);
  for (const [rung, name] of ofSentence) settings.remember(rung, { [name]: 1, other: 2 });
  settings.remember(11, { step: 3 });
  settings.forgetSentence();
  for (const [rung, name] of ofSentence) {
    const first = RUNGS[rung - 1].options()[name];
    assert.deepEqual([settings.options(rung)[name], settings.options(rung).other], [first, 2]);
  }
  settings.forgetModel();
  assert.equal(settings.options(7).other, 2);
  assert.deepEqual(settings.options(10), RUNGS[9].options());
  assert.equal(settings.options(11).step, null);
});
