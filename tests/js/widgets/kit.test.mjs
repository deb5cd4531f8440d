// The page of the parts (tests/kit) in a small DOM: what each says and does, as far as no browser is needed for it.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openWindow, press, texts } from "./small_dom.mjs";

/** @type {import("happy-dom").Window} */
let window;

before(async () => {
  window = openWindow('<div class="headscope"><main id="kit"></main></div>');
  await import("../../kit/kit.mjs");
});
after(() => window.close());

/** @param {string} name */
const part = (name) => window.document.querySelector(`[aria-label="${name}"]`);

test("sliders are filled up to their values", () => {
  const sliders = [...part("sliders").querySelectorAll("input[type=range]")];
  const filled = () => sliders.map(({ style }) => Number(style.getPropertyValue("--part")));
  assert.deepEqual(filled(), [0, 0.5, 1, 0.75, 0.5]);
  sliders[0].value = sliders[0].max;
  sliders[0].dispatchEvent(new window.Event("input"));
  assert.equal(filled()[0], 1);
});

test("tables name their rows and columns", () => {
  const [table, untitled] = part("tables").querySelectorAll("table");
  assert.equal(table.querySelector("caption").textContent, "A caption");
  assert.deepEqual(texts(table, "thead th, th[scope=col]"), ["title", "sorted", ""]);
  assert.deepEqual(texts(table, "tbody th"), ["a name", "a row with a class"]);
  assert.deepEqual(texts(untitled, "th"), ["name"]);
});

test("a picture’s table is shown and hidden by its button", () => {
  const view = part("a picture’s table");
  const toggle = view.querySelector('[aria-label="Show as a table"]');
  for (const isShown of [true, false]) {
    toggle.click();
    assert.equal(toggle.getAttribute("aria-expanded"), String(isShown));
    assert.equal(view.querySelector("table").closest(".hs-table").hidden, !isShown);
  }
});

test("one tab of a row is pressed", () => {
  const tabs = part("tabs");
  [...tabs.querySelectorAll("button")].find(({ textContent }) => textContent === "Second").click();
  assert.deepEqual(texts(tabs, "[aria-pressed=true]"), ["Second"]);
});

test("a menu is used with the keyboard, and the focus returns", () => {
  const menu = part("a menu");
  const button = menu.querySelector("[aria-haspopup]");
  press(button, "ArrowDown");
  assert.equal(window.document.activeElement.textContent, "PNG");
  press(window.document.activeElement, "ArrowUp");
  window.document.activeElement.click();
  assert.match(menu.textContent, /SVG/);
  assert.equal(window.document.activeElement, button);
  assert.equal(button.getAttribute("aria-expanded"), "false");
  press(button, "ArrowDown");
  press(window.document.activeElement, "End");
  press(window.document.activeElement, "ArrowUp");
  assert.equal(window.document.activeElement.textContent, "PNG");
  press(window.document.activeElement, "Escape");
  assert.equal(window.document.activeElement, button);
  assert.ok(menu.querySelector("[role=menu]").hidden);
});

test("a panel is closed by Escape and by a click elsewhere", () => {
  const popover = part("a popover");
  const opener = [...popover.querySelectorAll("button")].find(({ textContent }) => textContent === "Open");
  const isOpen = () => opener.getAttribute("aria-expanded") === "true";
  for (const close of [
    () => press(window.document.activeElement, "Escape"),
    () => window.document.body.dispatchEvent(new window.Event("pointerdown", { bubbles: true })),
  ]) {
    opener.focus();
    opener.click();
    assert.ok(isOpen());
    close();
    assert.ok(!isOpen());
  }
});
