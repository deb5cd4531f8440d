// Vectors as arrows from one origin, in a plane or in three dimensions that the visitor can turn.

import { make, svg } from "../../lib/dom.mjs";
import { fixed } from "../../lib/numbers.mjs";
import { shortWord } from "../../widgets/heat_table.mjs";

const SIDE = 330;
const REACH = 138; // pixels of the longest arrow
const TIP = 7;
const [CHARACTER, LINE] = [7.3, 13]; // width of a character and height of a label, in pixels
const MARGIN = 12;
const PER_PIXEL = 0.012; // radians

/** @typedef {{ name: string, values: number[], css?: string }} Arrow */

export class Arrows {
  #turn = -0.45;
  #tilt = 0.3;
  /** @type {Arrow[]} */
  #arrows = [];
  #focus = "";
  /** Everything drawn so far lies between these heights. It never shrinks, so that nothing jumps while turning. */
  #top = SIDE / 2;
  #bottom = SIDE / 2;

  /** @param {string} label @param {string} [hint] */
  constructor(label, hint = "") {
    const attributes = { viewBox: `0 0 ${SIDE} ${SIDE}`, role: "img", "aria-label": label, class: "hl-arrows" };
    this.picture = svg("svg", attributes);
    this.said = make("p", { class: "hl-hint" });
    const caption = make("figcaption", {}, make("b", {}, label), " ", make("span", { class: "hl-axes" }, hint));
    this.element = make("figure", { class: "hl-figure hl-arrows-figure" }, caption, this.picture, this.said);
    this.#turnByDragging();
  }

  #turnByDragging() {
    /** @type {[number, number] | null} */
    let from = null;
    this.picture.addEventListener("pointerdown", (event) => {
      from = [event.clientX, event.clientY];
      this.picture.setPointerCapture(event.pointerId);
    });
    this.picture.addEventListener("pointermove", (event) => {
      if (!from) return;
      this.#turn += PER_PIXEL * (event.clientX - from[0]);
      this.#tilt = Math.min(1.5, Math.max(-1.5, this.#tilt + PER_PIXEL * (event.clientY - from[1])));
      from = [event.clientX, event.clientY];
      this.#draw();
    });
    for (const name of ["pointerup", "pointercancel"]) this.picture.addEventListener(name, () => (from = null));
  }

  /** @param {Arrow[]} arrows of two or three numbers each */
  show(arrows) {
    this.#arrows = arrows;
    this.#draw();
  }

  /** Highlight an arrow. @param {string} name @param {string} [said] */
  focus(name, said = "") {
    this.#focus = name;
    this.said.textContent = said;
    this.#draw();
  }

  /** Project numbers onto the picture, orthographically. @param {number[]} values */
  #project([x, y, z]) {
    if (z === undefined) return [x, -y];
    const [sin, cos] = [Math.sin(this.#turn), Math.cos(this.#turn)];
    const depth = x * sin + y * cos;
    return [x * cos - y * sin, -(z * Math.cos(this.#tilt) - depth * Math.sin(this.#tilt))];
  }

  /** The origin in a plane: a corner if all arrows point away from it. */
  #corner() {
    const all = this.#arrows.map(({ values }) => values);
    return [all.every(([x]) => x >= 0) ? 34 : SIDE / 2, all.every(([, y]) => y >= 0) ? SIDE - 30 : SIDE / 2];
  }

  /** Crop the picture to what has been drawn. @param {number[]} heights */
  #fit(heights) {
    this.#top = Math.min(this.#top, ...heights.map((y) => y - MARGIN));
    this.#bottom = Math.max(this.#bottom, ...heights.map((y) => y + MARGIN));
    this.picture.setAttribute("viewBox", `0 ${this.#top} ${SIDE} ${this.#bottom - this.#top}`);
  }

  #draw() {
    if (!this.#arrows.length) return;
    const size = this.#arrows[0].values.length;
    const longest = Math.max(...this.#arrows.map(({ values }) => Math.hypot(...values)), 1e-9);
    const origin = size === 2 ? this.#corner() : [SIDE / 2, SIDE / 2];
    const reach = size === 2 && origin[0] < SIDE / 2 ? 1.75 * REACH : size === 2 ? 0.75 * REACH : REACH;
    /** @param {number[]} values */
    const at = (values) => this.#project(values).map((value, i) => origin[i] + (reach * value) / longest);
    const tips = this.#arrows.map(({ values }) => at(values));
    const ends = Array.from({ length: size }, (_, i) =>
      at(Array.from({ length: size }, (__, j) => (i === j ? longest * 1.12 : 0))),
    );
    const names = this.#arrows.map(({ name }) => shortWord(name));
    const labels = apart(
      tips.map((tip, i) => ({ ...labelPlace(origin, tip), size: names[i].length })),
      ends.map(([x, y]) => ({ x, y, anchor: "start", size: 1 })),
    );
    this.#fit([origin, ...tips, ...ends, ...labels.map(({ x, y }) => [x, y])].map(([, y]) => y));
    const axes = ends.map(([x2, y2], i) => {
      const line = svg("line", { x1: origin[0], y1: origin[1], x2, y2, class: "hl-axis" });
      return svg("g", {}, line, svg("text", { x: x2, y: y2, class: "hl-axis-name" }, String(i)));
    });
    const drawn = this.#arrows.map(({ name, values, css = "" }, i) => {
      const isFocus = name === this.#focus ? "hl-focus" : "";
      return svg(
        "g",
        { class: `hl-arrow ${css} ${isFocus}` },
        ...arrow({ origin, tip: tips[i], label: labels[i] }, name, values),
      );
    });
    this.picture.replaceChildren(...axes, ...drawn);
  }
}

/** @typedef {{ x: number, y: number, anchor: string }} Place */
/** @typedef {Place & { size: number }} Label with its length in characters */

/** Just beyond the tip of an arrow. @param {number[]} origin @param {number[]} tip @returns {Place} */
function labelPlace([x0, y0], [x, y]) {
  const angle = Math.atan2(y - y0, x - x0);
  const anchor = Math.cos(angle) < -0.25 ? "end" : Math.cos(angle) > 0.25 ? "start" : "middle";
  return { x: x + 9 * Math.cos(angle), y: y + 9 * Math.sin(angle) + 4, anchor };
}

/**
 * The labels, moved down as far as needed so that none overlap.
 * @param {Label[]} labels
 * @param {Label[]} kept labels that stay where they are
 */
export function apart(labels, kept) {
  const moved = labels.map((label) => ({ ...label }));
  const placed = [...kept];
  for (const label of [...moved].sort((a, b) => a.y - b.y)) {
    placed.sort((a, b) => a.y - b.y);
    for (const other of placed) if (overlap(label, other)) label.y = other.y + LINE;
    placed.push(label);
  }
  return moved;
}

/** @param {Label} a @param {Label} b */
function overlap(a, b) {
  const [[from, to], [start, end]] = [a, b].map(({ x, anchor, size }) => {
    const left = x - (anchor === "end" ? 1 : anchor === "middle" ? 0.5 : 0) * size * CHARACTER;
    return [left, left + size * CHARACTER];
  });
  return from < end && start < to && Math.abs(a.y - b.y) < LINE;
}

/**
 * @param {{ origin: number[], tip: number[], label: Label }} place
 * @param {string} name
 * @param {number[]} values
 */
function arrow({ origin: [x1, y1], tip: [x2, y2], label }, name, values) {
  const angle = Math.atan2(y2 - y1, x2 - x1);
  const side = (/** @type {number} */ by) => `${x2 - TIP * Math.cos(angle + by)},${y2 - TIP * Math.sin(angle + by)}`;
  return [
    svg("line", { x1, y1, x2, y2 }),
    svg("polygon", { points: `${x2},${y2} ${side(0.45)} ${side(-0.45)}` }),
    svg("text", { x: label.x, y: label.y, "text-anchor": label.anchor }, shortWord(name)),
    svg("title", {}, `${name}: ${values.map((value) => fixed(value)).join(", ")}`),
  ];
}

/**
 * A dot product in words, as lengths and an angle.
 * @param {string} one
 * @param {number[]} a
 * @param {string} other
 * @param {number[]} b
 */
export function dotInWords(one, a, other, b) {
  const [length, second] = [Math.hypot(...a), Math.hypot(...b)];
  const dot = a.reduce((sum, value, i) => sum + value * b[i], 0);
  const cosine = length && second ? dot / (length * second) : 0;
  const angle = (Math.acos(Math.min(1, Math.max(-1, cosine))) * 180) / Math.PI;
  return (
    `“${one}” · “${other}” = length ${fixed(length, 2)} × length ${fixed(second, 2)} × cosine ${fixed(cosine, 3)} = ` +
    `${fixed(dot)}. The angle is ${fixed(angle, 1)}°.`
  );
}
