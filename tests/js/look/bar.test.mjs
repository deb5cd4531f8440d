// The bar in a small DOM: the list of models, the settings, and what is asked of the page.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, beforeEach, test } from "node:test";
import { openWindow, press, texts } from "../widgets/small_dom.mjs";

const controls = JSON.parse(readFileSync(new URL("../../fixtures/controls.json", import.meta.url), "utf8"));
const MODELS = ["tiny", "other"].map((name) => ({ name, facts: `facts of ${name}`, about: "", chat: false }));

let window, Bar, View;
let bar, asked;

before(async () => {
  window = openWindow("");
  ({ Bar } = await import("../../../web/js/look/bar.mjs"));
  ({ View } = await import("../../../web/js/look/state/view.mjs"));
});
after(() => window.close());
beforeEach(() => {
  asked = [];
  const note = (name) => (value) => asked.push(typeof value === "string" ? `${name} ${value}` : name);
  const names = ["write", "stop", "chooseModel", "showPage", "help", "menu"];
  bar = new Bar(controls, Object.fromEntries(names.map((name) => [name, note(name)])), true, new View());
  bar.fill(MODELS, "tiny");
  window.document.body.replaceChildren(bar.element, bar.refusal, bar.spaceHint);
});

const focused = () => window.document.activeElement;
const button = (name) =>
  [...bar.element.querySelectorAll("button")].find(
    (each) => (each.getAttribute("aria-label") ?? each.textContent) === name,
  );
const clickElsewhere = () => window.document.body.dispatchEvent(new window.Event("pointerdown", { bubbles: true }));

test("models are chosen with the keyboard", () => {
  const opener = button("Model");
  const list = bar.element.querySelector("[role=listbox]");
  opener.focus();
  opener.click();
  assert.equal(opener.getAttribute("aria-expanded"), "true");
  assert.equal(focused().dataset.name, "tiny");
  assert.equal(focused().getAttribute("aria-selected"), "true");
  press(focused(), "ArrowDown");
  press(focused(), "Escape");
  assert.ok(list.hidden);
  assert.equal(focused(), opener);
  assert.equal(bar.models.name, "tiny");
  press(opener, "ArrowDown");
  press(focused(), "ArrowDown");
  assert.equal(focused().dataset.name, "other");
  press(focused(), "Enter");
  assert.ok(list.hidden);
  assert.equal(focused(), opener);
  assert.equal(opener.title, "facts of other");
  assert.deepEqual(asked, ["chooseModel other"]);
});

test("the settings close and return the focus", () => {
  const opener = button("Settings");
  const panel = bar.element.querySelector("#hs-settings");
  opener.focus();
  opener.click();
  assert.ok(!panel.hidden);
  const field = panel.querySelector("input[type=number]");
  field.focus();
  press(field, "Escape");
  assert.ok(panel.hidden);
  assert.equal(focused(), opener);
  assert.equal(opener.getAttribute("aria-expanded"), "false");
  opener.click();
  clickElsewhere();
  assert.ok(panel.hidden);
});

test("a slider and its number are one", () => {
  for (const { name, label } of controls.filter(({ least }) => least != null)) {
    const [slider, field] = [label, `${label}, as a number`].map((of) =>
      [...bar.element.querySelectorAll("input")].find((input) => input.getAttribute("aria-label") === of),
    );
    const move = (input, value) => {
      input.value = value;
      input.dispatchEvent(new window.Event("input"));
    };
    const { min, max } = slider;
    for (const [input, other, value] of [
      [field, slider, max],
      [slider, field, min],
    ]) {
      move(input, value);
      assert.equal(Number(other.value), Number(value), label);
      assert.equal(bar.settings.values[name], Number(value));
    }
  }
});

test("a line break is typed, and Enter writes unless a text is being written", () => {
  bar.prompt.value = "to be\nor not\n"; // as if pasted
  bar.prompt.dispatchEvent(new window.Event("input"));
  const enter = (more) => {
    const options = { key: "Enter", bubbles: true, cancelable: true, ...more };
    const event = new window.KeyboardEvent("keydown", options);
    bar.prompt.dispatchEvent(event);
    return event.defaultPrevented;
  };
  assert.equal(enter({ shiftKey: true }), false);
  assert.deepEqual(asked, []);
  assert.equal(enter(), true);
  assert.deepEqual(asked, ["write"]);
  assert.equal(bar.prompt.value, "to be\nor not\n");
  bar.showWriting(true);
  assert.equal(enter(), true);
  assert.deepEqual(asked, ["write"]);
});

test("one of Write and Stop is shown and keeps the focus", () => {
  bar.write.focus();
  bar.showWriting(true);
  assert.ok(bar.write.hidden && !bar.stop.hidden);
  assert.equal(focused(), bar.stop);
  bar.showWriting(false);
  assert.ok(!bar.write.hidden && bar.stop.hidden);
  assert.equal(focused(), bar.write);
});

test("a refusal is said until the prompt changes", () => {
  bar.refuse("The prompt is too long.");
  assert.equal(bar.refusal.textContent, "The prompt is too long.");
  assert.equal(bar.prompt.getAttribute("aria-invalid"), "true");
  bar.prompt.value = "shorter";
  bar.prompt.dispatchEvent(new window.Event("input"));
  assert.equal(bar.refusal.textContent, "");
  assert.equal(bar.prompt.getAttribute("aria-invalid"), "false");
});

test("the page that is shown is current", () => {
  bar.showPage("learn");
  assert.deepEqual(texts(bar.element, "[aria-current=page]"), ["Learn"]);
  button("Train").click();
  assert.deepEqual(asked, ["showPage train"]);
});
