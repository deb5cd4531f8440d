// Play: one number of the visitor's sentence travels through a rung, from a word to the result, stop by stop.

import { isStill, make, svg } from "../../lib/dom.mjs";
import { clamp } from "../../lib/numbers.mjs";
import { openFolds } from "./elements.mjs";
import { smallButton } from "../../widgets/controls.mjs";

/** @import { HeatTable } from "../../widgets/heat_table.mjs" */

/**
 * Where the number passes: a cell of a table, whose arithmetic is then shown, or any element; a function finds one that
 * may be drawn again.
 * @typedef {object} Stop
 * @property {[table: HeatTable, row: number, column: number] | Element | (() => Element) | null} at
 * @property {string} words
 * @property {string} [value] the number there, unless it is the text of the element
 */

const FLIGHT = 900; // milliseconds from stop to stop
const [MIN_READING, PER_CHARACTER] = [1_600, 42]; // milliseconds at a stop
const MAX_BEND = 90; // pixels between an arc and the straight line

export class Play {
  /** @type {Stop[]} */
  #stops = [];
  #at = -1; // the stop that is shown, -1 for none
  #timer = 0;

  /** @param {() => Stop[]} stops made from the numbers that the rung shows now; empty if there are none yet */
  constructor(stops) {
    this.stops = stops;
    /** @param {string} name @param {string} title @param {() => void} onclick */
    const button = (name, title, onclick) => smallButton(name, onclick, { "aria-label": title, title });
    this.start = smallButton("", () => this.#toggle());
    this.back = button("‹", "Back one stop", () => this.#step(-1));
    this.next = button("›", "On to the next stop", () => this.#step(1));
    this.close = button("×", "Stop following the number", () => this.#leave());
    this.said = make("p", { role: "status" });
    const group = { class: "hl-play", role: "group", "aria-label": "Follow one number" };
    this.element = make("div", group, this.start, this.back, this.next, this.close, this.said);
    this.element.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (step && this.#at >= 0) this.#step(step);
    });
    this.arcs = svg("svg", {});
    this.number = make("b", {});
    /** What is drawn over the rung's tables; it fills the element that they are in. */
    this.flight = make("div", { class: "hl-flight", "aria-hidden": "true" }, this.arcs, this.number);
    new ResizeObserver(() => this.#draw()).observe(this.flight);
    this.reset();
  }

  #onEscape = (/** @type {KeyboardEvent} */ event) => event.key === "Escape" && this.#leave();

  /** Stop, and remove everything from the rung: its numbers have changed, or it is left. */
  reset() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    for (const { at } of this.#stops) elementOf(at)?.classList.remove("hl-stop");
    this.#stops = [];
    this.#at = -1;
    removeEventListener("keydown", this.#onEscape);
    this.element.hidden = !this.stops().length;
    this.#show();
  }

  #leave() {
    this.reset();
    this.start.focus({ preventScroll: true });
  }

  #toggle() {
    if (this.#timer) {
      clearTimeout(this.#timer);
      this.#timer = 0;
      this.#show();
    } else if (isStill()) this.#step(1);
    else if (this.#at < 0 || this.#at === this.#stops.length - 1) {
      this.reset();
      this.#step(1, true);
    } else this.#step(1, true);
  }

  /** @param {number} by @param {boolean} [goesOn] to the end */
  #step(by, goesOn = false) {
    clearTimeout(this.#timer);
    this.#timer = 0;
    if (this.#at < 0) {
      this.#stops = this.stops();
      addEventListener("keydown", this.#onEscape);
    }
    const from = this.#at;
    this.#at = clamp(from + by, 0, this.#stops.length - 1);
    const { at, words } = this.#stops[this.#at];
    const element = elementOf(at);
    if (element) bringIntoView(element);
    if (Array.isArray(at)) at[0].select(at[1], at[2]);
    const isLast = this.#at === this.#stops.length - 1;
    if (goesOn && !isLast) {
      const reading = Math.max(MIN_READING, PER_CHARACTER * words.length);
      this.#timer = setTimeout(() => this.#step(1, true), FLIGHT + reading);
    }
    this.#show();
    if (from >= 0 && this.#at === from + 1) this.#fly();
    if (isLast && goesOn) focusOn(element);
  }

  #show() {
    const isOn = this.#at >= 0;
    const isLast = isOn && this.#at === this.#stops.length - 1;
    this.element.classList.toggle("hl-playing", isOn);
    for (const button of [this.back, this.next, this.close]) button.hidden = !isOn;
    this.back.disabled = this.#at === 0;
    this.next.disabled = isLast;
    const way = isStill() ? "Follow one number, picture by picture" : "Follow one number";
    this.start.textContent = this.#timer ? "❚❚ Pause" : !isOn ? `▶ ${way}` : isLast ? "▶ Again" : "▶ Go on";
    this.start.hidden = isOn && isStill();
    const words = isOn ? this.#stops[this.#at].words : "";
    this.said.replaceChildren(...(isOn ? [make("b", {}, `${this.#at + 1} / ${this.#stops.length}`), ` ${words}`] : []));
    this.#stops.forEach(({ at }, i) => elementOf(at)?.classList.toggle("hl-stop", i <= this.#at));
    this.#draw();
  }

  /** Draw the way so far, and the number where it is. */
  #draw() {
    this.flight.hidden = this.#at < 0;
    if (this.#at < 0) return;
    const passed = this.#stops.slice(0, this.#at + 1);
    const centres = passed.map(({ at }) => this.#centreOf(elementOf(at)));
    const ways = centres.slice(1).map((to, i) => arc(centres[i], to));
    this.arcs.replaceChildren(...ways.map((d) => svg("path", { d, pathLength: 1 })));
    const { at, value } = passed[this.#at];
    this.number.textContent = value ?? elementOf(at)?.textContent ?? "";
    const [x, y] = centres[this.#at];
    this.number.style.offsetPath = ways.at(-1) ? `path("${ways.at(-1)}")` : `path("M ${x} ${y} l 0.1 0")`;
  }

  /** Move the number to the stop that is shown, with the arc behind it. */
  #fly() {
    if (isStill()) return;
    const settings = { duration: FLIGHT, easing: "ease-in-out" };
    this.number.animate({ offsetDistance: ["0%", "100%"] }, settings);
    this.arcs.lastElementChild?.animate({ strokeDashoffset: [1, 0] }, settings);
  }

  /** The centre of an element in the coordinates of the arcs. @param {Element | null} element */
  #centreOf(element) {
    const origin = this.flight.getBoundingClientRect();
    const { left, right, top, height } = (element ?? this.flight).getBoundingClientRect();
    // A cell that its table has scrolled out of sight is taken to be at the edge.
    const edge = element?.closest(".hl-scroll")?.getBoundingClientRect() ?? origin;
    const x = clamp((left + right) / 2, edge.left, edge.right) - origin.left;
    return [x, top + height / 2 - origin.top];
  }
}

/** @param {Stop["at"]} at */
const elementOf = (at) => (Array.isArray(at) ? at[0].cellAt(at[1], at[2]) : typeof at === "function" ? at() : at);

/** @param {number[]} from @param {number[]} to */
function arc([x1, y1], [x2, y2]) {
  const length = Math.hypot(x2 - x1, y2 - y1) || 1;
  const bend = Math.min(MAX_BEND, length / 3) / length;
  // The middle is moved at a right angle, upwards.
  const way = x2 < x1 ? -1 : 1;
  const [x, y] = [(x1 + x2) / 2 + way * bend * (y2 - y1), (y1 + y2) / 2 - way * bend * (x2 - x1)];
  return `M ${x1.toFixed(1)} ${y1.toFixed(1)} Q ${x.toFixed(1)} ${y.toFixed(1)} ${x2.toFixed(1)} ${y2.toFixed(1)}`;
}

/** @param {Element} element */
function bringIntoView(element) {
  openFolds(element);
  const box = element.closest(".hl-scroll");
  if (box) {
    const [inner, outer] = [element.getBoundingClientRect(), box.getBoundingClientRect()];
    if (inner.right > outer.right || inner.left < outer.left) {
      box.scrollLeft += inner.left + inner.width / 2 - (outer.left + outer.width / 2);
    }
  }
  const { top, bottom } = element.getBoundingClientRect();
  // Between the words above and the arithmetic below, both of which stay in view.
  if (top > innerHeight * 0.22 && bottom < innerHeight * 0.6) return;
  element.scrollIntoView({ block: "center", behavior: isStill() ? "auto" : "smooth" });
}

/** @param {Element | null} element */
function focusOn(element) {
  const target = element?.querySelector("button") ?? element;
  if (!(target instanceof HTMLElement)) return;
  if (target.tabIndex < 0 && target.tagName !== "BUTTON") target.tabIndex = -1;
  target.focus({ preventScroll: true });
}

/**
 * The query and the key of the largest weight between two different words.
 * @param {number[][]} weights
 */
export function looksMost(weights) {
  const others = weights.flatMap((row, r) => row.flatMap((weight, c) => (r === c ? [] : [{ place: [r, c], weight }])));
  const first = { place: [0, 0], weight: 0 }; // for a single word
  return others.reduce((most, one) => (one.weight > most.weight ? one : most), first).place;
}
