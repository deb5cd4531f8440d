// What a question of Ask begins ends when it is closed: its effects, and its listeners on what outlasts it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { frame, pointer, weights } from "../recorded_run.mjs";
import { openWindow } from "../widgets/small_dom.mjs";

const { document } = openWindow("");
const context = new Proxy({}, { get: (_, name) => (name === "measureText" ? () => ({ width: 9 }) : () => context) });
globalThis.HTMLCanvasElement.prototype.getContext = () => context;
globalThis.OffscreenCanvas = class {
  getContext = () => context;
};
globalThis.fetch = async (url) => {
  const { pathname, searchParams } = new URL(url, "http://page.test");
  const start = Number(searchParams.get("start"));
  if (pathname.endsWith("rows")) return new Response(await frame(6, start));
  if (pathname.includes("/heads/")) return new Response(weights(6, start));
  return pathname.endsWith(".json") ? new Response("[]") : new Response("{}", { status: 404 });
};

const { Effect } = await import("../../../web/js/vendor/signals.mjs");
const { AskPanel } = await import("../../../web/js/look/ask/ask_panel.mjs");
const { Mixer } = await import("../../../web/js/look/state/mixer.mjs");
const { QUESTIONS } = await import("../../../web/js/look/ask/question_list.mjs");
const { ShownText } = await import("../../../web/js/look/state/shown_text.mjs");
const { View } = await import("../../../web/js/look/state/view.mjs");
const { scope, whenever } = await import("../../../web/js/lib/reactive.mjs");
const { signal } = await import("../../../web/js/vendor/signals.mjs");

/** What is under way: effects, observers, and listeners on the window and the document. */
const live = new Set();
const { c: begin, d: end } = Effect.prototype;
Effect.prototype.c = function () {
  live.add(this);
  return begin.call(this);
};
Effect.prototype.d = function () {
  live.delete(this);
  return end.call(this);
};
for (const target of [globalThis.window, document]) {
  const { addEventListener: add, removeEventListener: remove } = target;
  target.addEventListener = (name, act, options) => {
    if (!options?.once) live.add(act);
    return add.call(target, name, act, options);
  };
  target.removeEventListener = (name, act, ...options) => {
    live.delete(act);
    return remove.call(target, name, act, ...options);
  };
}
for (const name of ["MutationObserver", "ResizeObserver"]) {
  globalThis[name] = class {
    observe() {
      live.add(this);
    }
    disconnect() {
      live.delete(this);
    }
  };
}

test("a scope ends its effects, and those of scopes within it", () => {
  const value = signal(0);
  const seen = [];
  const follow = (name) =>
    whenever(
      () => [value.value],
      () => seen.push(name),
    );
  const outer = scope(() => {
    follow("outer");
    return scope(() => follow("inner"));
  });
  value.value = 1;
  outer.built.end();
  value.value = 2;
  outer.end();
  value.value = 3;
  assert.deepEqual(seen, ["outer", "inner", "outer", "inner", "outer"]);
});

test("opening and closing every question 50 times leaves as many effects, observers and listeners as before", () => {
  const store = new ShownText(new View());
  store.follow(pointer("first", "done", 6));
  const panel = new AskPanel(store, new Mixer(store), null);
  document.body.append(panel.element);
  const before = live.size;
  assert.ok(before > 3);
  for (const { key } of QUESTIONS) {
    let most = 0;
    for (let i = 0; i < 50; i++) {
      store.view.set({ ask: key, askWith: "", details: true });
      panel.refresh();
      assert.equal(panel.element.hidden, false);
      most ||= live.size;
      assert.equal(live.size, most, key);
      store.view.closeAsk();
      panel.refresh();
      assert.equal(live.size, before, key);
    }
  }
});
