// A circuit from left to right: the words that its heads look at, the heads by layer, and the next word. Places are in
// per cent of the width, so that the picture fits any column.

import { make, svg } from "../../../lib/dom.mjs";
import { headName } from "../../../lib/heads.mjs";
import { percent } from "../../../lib/numbers.mjs";
import { asWritten, shorten, visible } from "../../../lib/words.mjs";
import { Roving } from "../../../widgets/roving.mjs";
import { tileName } from "../../stage/field.mjs";

/** @import { CircuitAnswer, EdgeInCircuit, HeadInCircuit } from "../../../lens.js" */

const WORDS = 20; // per cent: the right edge of the words that are read
const FIRST = 30; // per cent: the middle of the first layer's heads
const LAST = 76;
const NEXT = 86; // per cent: the left edge of the next word
const ROW = 60; // CSS pixels for a head and the number below it
const LEAST_ROWS = 3;
const LAYER = 56; // CSS pixels: the least width of a layer
const SIDES = 160; // CSS pixels: that of the words at both sides
const ASIDE = 26; // CSS pixels by which single heads of neighbouring layers stand apart, so that lines pass them
const MAX_WORDS = 6;
const MAX_LETTERS = 8; // of a word
const MAX_NAMED_LAYERS = 5; // with more, their names are short
const MIN_LINE = 1;
const MAX_LINE = 8;

/** @typedef {{ x: number, y: number }} Place x in per cent of the width, y in CSS pixels */

/**
 * Where everything is: a column for each layer that has heads, whose heads are evenly below each other.
 * @param {Pick<HeadInCircuit, "layer" | "head">[]} heads
 * @param {number} [words] the number of words at the left
 */
export function layOut(heads, words = 0) {
  const layers = [...new Set(heads.map(({ layer }) => layer))].sort((a, b) => a - b);
  const columns = layers.map((layer) => heads.filter((each) => each.layer === layer).sort((a, b) => a.head - b.head));
  const height = ROW * Math.max(LEAST_ROWS, words, ...columns.map((column) => column.length));
  const xOf = (/** @type {number} */ at) =>
    layers.length > 1 ? FIRST + ((LAST - FIRST) * at) / (layers.length - 1) : (FIRST + LAST) / 2;
  /** @type {Map<string, Place>} by the name of the head */
  const places = new Map();
  columns.forEach((column, at) => {
    const aside = column.length > 1 || columns.length === 1 ? 0 : at % 2 ? ASIDE : -ASIDE;
    column.forEach(({ layer, head }, rank) =>
      places.set(headName([layer, head]), { x: xOf(at), y: ((rank + 0.5) * height) / column.length + aside }),
    );
  });
  const lefts = Array.from({ length: words }, (_, rank) => ({ x: WORDS, y: ((rank + 0.5) * height) / words }));
  const titles = layers.map((layer, at) => ({ layer, x: xOf(at) }));
  return { places, words: lefts, titles, height, next: { x: NEXT, y: height / 2 } };
}

/**
 * The positions of the first prompt that heads look at most, in their order.
 * @param {Pick<HeadInCircuit, "key" | "reads" | "weight">[]} heads
 */
export function wordsRead(heads) {
  /** @type {Map<number, { key: number, text: string, weight: number }>} */
  const found = new Map();
  for (const { key, reads, weight } of heads) {
    const word = found.get(key) ?? { key, text: reads.text, weight: 0 };
    word.weight += weight;
    found.set(key, word);
  }
  const most = [...found.values()].sort((a, b) => b.weight - a.weight).slice(0, MAX_WORDS);
  return most.sort((a, b) => a.key - b.key);
}

/**
 * @param {(head: HeadInCircuit) => void} openHead
 * @param {(edge: EdgeInCircuit) => void} openEdge
 */
export function circuitGraph(openHead, openEdge) {
  const plot = make("div", { class: "hs-circuit-plot", role: "group", "aria-label": "Graph of the circuit" });
  const element = make("div", { class: "hs-circuit" }, plot);
  const roving = new Roving(plot, () => [...plot.querySelectorAll("button")]);
  /** @type {Map<string, SVGElement>} */
  let lines = new Map();

  /** @param {CircuitAnswer} answer */
  function show({ heads, edges, pairs }) {
    const words = wordsRead(heads);
    const places = layOut(heads, words.length);
    plot.style.height = `${places.height}px`;
    plot.style.minWidth = `${SIDES + LAYER * places.titles.length}px`;
    const drawing = svg("svg", {
      viewBox: `0 0 100 ${places.height}`,
      preserveAspectRatio: "none",
      "aria-hidden": "true",
    });
    const read = readLines(heads, words, places);
    lines = writtenLines(edges, places, openEdge);
    drawing.append(...read, ...lines.values());
    const buttons = heads.map((head) => headButton(head, places.places, openHead));
    const short = places.titles.length > MAX_NAMED_LAYERS;
    plot.replaceChildren(
      drawing,
      ...places.titles.map(({ layer, x }) => label("hs-layer", { x, y: 0 }, short ? `L${layer}` : `layer ${layer}`)),
      ...words.map(({ text, key }, at) => label("hs-read", places.words[at], text, `position ${key}`)),
      ...buttons,
      ...(pairs.length ? [label("hs-next", places.next, pairs[0].answer.text, "next")] : []),
    );
    roving.update(buttons[0]);
  }

  /** Mark an open edge. @param {EdgeInCircuit | null} edge */
  function mark(edge) {
    for (const [key, drawn] of lines) drawn.classList.toggle("hs-is-open", edge !== null && key === keyOf(edge));
  }

  return { element, show, mark };
}

/** @typedef {ReturnType<typeof layOut>} Places */

/** @param {EdgeInCircuit} edge */
const keyOf = ({ sender, receiver, way }) => `${sender} ${receiver} ${way}`;

/**
 * How much each head looks at its word.
 * @param {HeadInCircuit[]} heads
 * @param {{ key: number }[]} words
 * @param {Places} places
 */
const readLines = (heads, words, places) =>
  heads.flatMap((head) => {
    const from = places.words[words.findIndex(({ key }) => key === head.key)];
    const to = places.places.get(headName([head.layer, head.head]));
    return from && to ? [lineOf("hs-edge hs-reads", from, to, head.weight)] : [];
  });

/** @param {EdgeInCircuit[]} edges @param {Places} places @param {(edge: EdgeInCircuit) => void} openEdge */
function writtenLines(edges, places, openEdge) {
  const most = Math.max(...edges.map(({ lost }) => Math.abs(lost)), 1e-9);
  /** @type {Map<string, SVGElement>} */
  const lines = new Map();
  for (const edge of edges) {
    const from = places.places.get(headName(edge.sender));
    const to = edge.receiver ? places.places.get(headName(edge.receiver)) : places.next;
    if (!from || !to) continue;
    const words = `${headName(edge.sender)} → ${edge.way ?? "next word"}: ${percent(edge.lost)} lost without it`;
    const drawn = lineOf(edge.lost < 0 ? "hs-edge hs-less" : "hs-edge", from, to, Math.abs(edge.lost) / most, words);
    drawn.addEventListener("click", () => openEdge(edge));
    lines.set(keyOf(edge), drawn);
  }
  return lines;
}

/**
 * A line whose width is a part of the widest.
 * @param {string} css
 * @param {Place} from
 * @param {Place} to
 * @param {number} part from 0 to 1
 * @param {string} [words] on pointing; only such a line can be clicked
 */
function lineOf(css, from, to, part, words = "") {
  const middle = (from.x + to.x) / 2;
  const d = `M ${from.x} ${from.y} C ${middle} ${from.y}, ${middle} ${to.y}, ${to.x} ${to.y}`;
  const width = MIN_LINE + (MAX_LINE - MIN_LINE) * part;
  const target = words ? [svg("title", {}, words), svg("path", { d, class: "hs-edge-target" })] : [];
  return svg("g", { class: css }, ...target, svg("path", { d, "stroke-width": width.toFixed(1) }));
}

/** @param {HTMLElement} element @param {Place} place */
function put(element, { x, y }) {
  element.style.left = `${x}%`;
  element.style.top = `${y}px`;
  return element;
}

/** @param {string} css @param {Place} place @param {string} text @param {string} [note] */
const label = (css, place, text, note = "") =>
  put(
    make(
      "span",
      { class: css, title: visible(text) },
      shorten(asWritten(text), MAX_LETTERS),
      ...(note ? [make("small", {}, note)] : []),
    ),
    place,
  );

/** @param {HeadInCircuit} head @param {Map<string, Place>} places @param {(head: HeadInCircuit) => void} openHead */
function headButton(head, places, openHead) {
  const name = headName([head.layer, head.head]);
  const lost = percent(head.lost);
  const button = make(
    "button",
    { type: "button", class: "hs-node-head", "aria-label": `${name}: ${lost} lost without it`, "data-head": name },
    tileName([head.layer, head.head]),
    make("small", {}, lost),
  );
  button.addEventListener("click", () => openHead(head));
  return put(button, places.get(name) ?? { x: 0, y: 0 });
}
