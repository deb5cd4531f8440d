// What the page for teachers says of the rungs.

import assert from "node:assert/strict";
import test from "node:test";

import { make } from "../../../web/js/lib/dom.mjs";
import { openWindow } from "../widgets/small_dom.mjs";
import { RUNGS } from "../../../web/js/learn/main.mjs";
import { minutesLeft, PLANS, teachersPage } from "../../../web/js/learn/teach/teachers_page.mjs";

openWindow("");

test("a plan's rungs leave a few minutes for its end", () => {
  for (const minutes of PLANS) {
    const left = minutesLeft(RUNGS, minutes);
    assert.ok(left >= 4 && left <= 8, `${left} of ${minutes} minutes`);
  }
});

test("the long plan has the whole core, in 75 to 90 minutes; the rung of trainable weights takes 12 to 15", () => {
  const core = RUNGS.filter((rung) => rung.core).map(({ teacher }) => teacher.plans[90]?.minutes ?? 0);
  assert.ok(core.every(Boolean));
  const sum = core.reduce((all, minutes) => all + minutes, 0);
  assert.ok(sum >= 75 && sum <= 90, `${sum} minutes`);
  const weights = RUNGS[5];
  for (const minutes of [weights.minutes, weights.teacher.plans[90]?.minutes ?? 0])
    assert.ok(minutes >= 12 && minutes <= 15);
});

test("whoever has little time needs 51 minutes", () => {
  const core = RUNGS.filter((rung) => rung.core);
  assert.deepEqual(
    core.map((rung) => RUNGS.indexOf(rung) + 1),
    [4, 5, 6, 7, 8, 10, 11],
  );
  assert.equal(
    core.reduce((sum, { minutes }) => sum + minutes, 0),
    51,
  );
});

test("the page has goals, a discussion, misconceptions and every answer of every rung", () => {
  const link = (/** @type {number} */ _, /** @type {string} */ text) => make("a", {}, text);
  const element = globalThis.document.createElement("div");
  element.append(...teachersPage(/** @type {any} */ ({ link }), RUNGS));
  const said = element.textContent;
  for (const { name, teacher, exercises } of RUNGS) {
    assert.ok(teacher.goals.length && teacher.misconceptions.length, name);
    const all = [name, ...teacher.goals, teacher.discuss.answer, ...teacher.misconceptions.map((each) => each.instead)];
    for (const text of [...all, ...exercises.map(({ why }) => why)]) assert.ok(said?.includes(text), text);
  }
});
