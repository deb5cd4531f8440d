// What the page for teachers says of the rungs.

import assert from "node:assert/strict";
import test from "node:test";

import { make } from "../../../web/js/lib/dom.mjs";
import { openWindow } from "../widgets/small_dom.mjs";
import { RUNGS } from "../../../web/js/learn/main.mjs";
import { PLANS } from "../../../web/js/learn/content/plans.mjs";
import { teachersPage } from "../../../web/js/learn/teach/teachers_page.mjs";

openWindow("");

test("the stops of a plan, with its end, take as long as the plan says", () => {
  assert.deepEqual(
    PLANS.map(({ minutes }) => minutes),
    [50, 90],
  );
  for (const { minutes, stops, end } of PLANS) {
    assert.equal(
      stops.reduce((sum, stop) => sum + stop.minutes, end.minutes),
      minutes,
    );
    assert.ok(stops.every((stop) => stop.minutes >= 3));
  }
});

test("a plan contains what its later rungs need, and the long one every rung", () => {
  const [short, long] = PLANS.map(({ stops }) => stops.map(({ rung }) => rung));
  assert.deepEqual(
    long,
    RUNGS.map((_, i) => i + 1),
  );
  // Training lowers a loss (3) by changing vectors (2); induction is of many heads (8) that read what others add (9).
  assert.deepEqual(short, [1, 2, 3, 4, 5, 6, 7, 8, 9, 11]);
});

test("the long plan leaves time to discuss the core", () => {
  const [, { stops }] = PLANS;
  for (const { rung, minutes } of stops)
    assert.ok(!RUNGS[rung - 1].core || minutes > RUNGS[rung - 1].minutes, `${rung}`);
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
