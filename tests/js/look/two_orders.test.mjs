// Panels show the same in whichever order they are made: none relies on another's having been told first.

import assert from "node:assert/strict";
import { before, test } from "node:test";
import { until } from "../../../web/js/lib/reactive.mjs";
import { frame, pointer, weights } from "../recorded_run.mjs";

/** As much of an element as these panels use. */
class SmallElement {
  constructor(tag) {
    this.tag = tag;
    this.attributes = {};
    this.children = [];
    this.dataset = {};
    this.hidden = false;
    this.isConnected = true;
    const classes = new Set();
    this.classList = {
      add: (name) => classes.add(name),
      remove: (name) => classes.delete(name),
      contains: (name) => classes.has(name),
      toggle: (name, isOn = !classes.has(name)) => (isOn ? classes.add(name) : classes.delete(name)),
    };
    this.classes = classes;
    const style = {};
    this.style = Object.assign(style, { setProperty: (name, value) => (style[name] = value) });
  }
  setAttribute(name, value) {
    if (name === "class") for (const one of value.split(" ")) this.classes.add(one);
    else if (name === "hidden") this.hidden = true;
    else this.attributes[name] = value;
  }
  removeAttribute(name) {
    delete this.attributes[name];
  }
  append(...children) {
    for (const child of children) {
      this.children = this.children.filter((other) => other !== child);
      this.children.push(child);
      if (child instanceof SmallElement) child.parentElement = this;
    }
  }
  replaceChildren(...children) {
    this.children = [];
    this.append(...children);
  }
  set textContent(text) {
    this.children = [text];
  }
  get textContent() {
    return this.children.map((child) => child.textContent ?? child).join("");
  }
  get lastChild() {
    return this.children.at(-1);
  }
  addEventListener() {}
  contains(other) {
    return other === this || this.children.some((child) => child instanceof SmallElement && child.contains(other));
  }
  closest() {
    return null;
  }
  querySelectorAll() {
    return [];
  }
  getBoundingClientRect() {
    return { top: 0, bottom: 0, left: 0, right: 0 };
  }
  /** What is seen of it. */
  toJSON() {
    const { tag, attributes, children, dataset, hidden, disabled, title, value, style } = this;
    return {
      tag,
      attributes,
      children,
      dataset,
      hidden,
      disabled,
      title,
      value,
      style,
      classes: [...this.classes].sort(),
    };
  }
}

before(() => {
  globalThis.Node = SmallElement;
  globalThis.document = {
    baseURI: "http://page/",
    body: new SmallElement("body"),
    createElement: (tag) => new SmallElement(tag),
    createElementNS: (_, tag) => new SmallElement(tag),
    addEventListener() {},
  };
  globalThis.getComputedStyle = () => ({ lineHeight: "20px", getPropertyValue: () => "#123456" });
  globalThis.matchMedia = () => ({ matches: false, addEventListener() {} });
  globalThis.requestAnimationFrame = (draw) => setTimeout(() => draw(performance.now()));
  globalThis.cancelAnimationFrame = () => {};
  globalThis.localStorage = { getItem: () => null, setItem() {} };
  // Node's own would keep the process.
  globalThis.MessageChannel = class {
    port1 = { onmessage() {} };
    port2 = { postMessage: () => setTimeout(() => this.port1.onmessage()) };
  };
  globalThis.MutationObserver = class {
    observe() {}
  };
  globalThis.fetch = async (url) => {
    const { pathname, searchParams } = new URL(url);
    const what = pathname.split("/")[3];
    const start = Number(searchParams.get("start"));
    return new Response(what === "rows" ? await frame(6, start) : weights(6, start));
  };
});

/** What panels show after each of some changes. @param {boolean} isReversed whether the last one is made first */
async function shown(isReversed) {
  const { ShownText } = await import("../../../web/js/look/state/shown_text.mjs");
  const { View } = await import("../../../web/js/look/state/view.mjs");
  const { Mixer } = await import("../../../web/js/look/state/mixer.mjs");
  const { headScale } = await import("../../../web/js/look/ask/mixer_controls.mjs");
  const { FocusSentence } = await import("../../../web/js/look/panels/focus_sentence.mjs");
  const { describeToken, Scrubber } = await import("../../../web/js/look/panels/scrubber.mjs");
  const { TextView } = await import("../../../web/js/look/panels/text_view.mjs");
  const { TopHeads } = await import("../../../web/js/look/panels/top_heads.mjs");
  const { tileLegend } = await import("../../../web/js/look/panels/legend.mjs");
  const { copyLink } = await import("../../../web/js/look/export/copy_link.mjs");
  const { usePrepared } = await import("../../../web/js/look/state/prepared.mjs");
  usePrepared(/** @type {any} */ ({ answer() {}, answerTo() {} })); // a file
  const store = new ShownText(new View());
  const makers = [
    () => new FocusSentence(store, null).element,
    () => new Scrubber(store, store.selection, (step) => describeToken(store.tokens[step], step)).element,
    () => new TextView(store, {}).element,
    () => new TopHeads(store).element,
    () => tileLegend(store),
    () => copyLink(store, () => ""),
    () => headScale(new Mixer(store)),
  ];
  const order = makers.map((_, i) => i);
  if (isReversed) order.reverse();
  const elements = [];
  for (const i of order) elements[i] = makers[i]();
  store.playback.setSpeed(0);
  const changes = [
    () => store.follow(pointer("first", "writing", 4)),
    () => store.follow(pointer("first", "done", 6)),
    () => store.selection.goto(3),
    () => store.view.set({ details: true }),
    () => store.view.choose([1, 1]), // the mean of all heads
    () => store.selection.point({ query: 2 }),
    () => store.view.set({ ask: "desk" }),
    () => store.begin(),
  ];
  const states = [];
  for (const change of changes) {
    change();
    if (store.pointer.run) await until(() => store.weights.rows >= 4 && store.data.rows >= store.pointer.rows - 1);
    states.push(JSON.parse(JSON.stringify(elements)));
  }
  return states;
}

test("panels made in two orders show the same after every change", async () => {
  const [states, reversed] = [await shown(false), await shown(true)];
  assert.deepEqual(reversed, states);
  assert.ok(new Set(states.map((state) => JSON.stringify(state))).size > 5);
});
