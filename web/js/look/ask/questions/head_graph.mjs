// Nodes as a graph from left to right: the words that heads look at, heads and MLPs by layer, and where it all leads.
// Places are in per cent of the width, so that the picture fits any column.

import { make, svg } from "../../../lib/dom.mjs";
import { headName, nodeName } from "../../../lib/heads.mjs";
import { asWritten, shorten, visible } from "../../../lib/words.mjs";
import { Roving } from "../../../widgets/roving.mjs";

const WORDS = 20; // per cent: the right edge of the words that are read
const FIRST = 30; // per cent: the middle of the first layer's heads
const LAST = 76;
const NEXT = 86; // per cent: the left edge of where it leads
const ROW = 60; // CSS pixels for a head and the number below it
const LEAST_ROWS = 3;
const LAYER = 40; // CSS pixels: the least width of a layer
const SIDES = 150; // CSS pixels: that of the words at both sides
const ASIDE = 26; // CSS pixels by which single heads of neighbouring layers stand apart, so that lines pass them
const MAX_LETTERS = 8; // of a word
const MAX_NAMED_LAYERS = 4; // with more, their names are short
const MIN_LINE = 1;
const MAX_LINE = 8;

/** @typedef {{ x: number, y: number }} Place x in per cent of the width, y in CSS pixels */
/** @typedef {{ text: string, note: string }} GraphWord */
/** @typedef {readonly [layer: number, head: number | null]} GraphNode a head, or without one the MLP of the layer */

/**
 * @typedef {object} GraphHead
 * @property {GraphNode} picture
 * @property {string} note below its name
 * @property {string} label everything that is to be said of it
 * @property {() => void} open
 */

/**
 * A line from a word (its number) or a head to another head, or to the end.
 * @typedef {object} GraphLine
 * @property {number | GraphNode} from
 * @property {GraphNode | null} to
 * @property {number} part of the widest line
 * @property {string} [css]
 * @property {string} [label] shown on pointing
 * @property {string} [key] by which it is marked
 * @property {() => void} [open]
 */

/** @typedef {{ heads: GraphHead[], lines: GraphLine[], words?: GraphWord[], end: GraphWord | null }} Graph */

/**
 * Where everything is: a column for each layer that has heads, which are evenly below each other, and after it one for
 * the layer's MLP.
 * @param {readonly GraphNode[]} nodes
 * @param {number} [words] the number of words at the left
 * @param {number} [least] CSS pixels: the least height
 */
export function layOut(nodes, words = 0, least = 0) {
  const columnOf = (/** @type {GraphNode} */ [layer, head]) => 2 * layer + Number(head === null);
  const numbers = [...new Set(nodes.map(columnOf))].sort((a, b) => a - b);
  const columns = numbers.map((number) =>
    nodes.filter((each) => columnOf(each) === number).sort((a, b) => Number(a[1]) - Number(b[1])),
  );
  const height = Math.max(least, ROW * Math.max(LEAST_ROWS, words, ...columns.map((column) => column.length)));
  const xOf = (/** @type {number} */ at) =>
    columns.length > 1 ? FIRST + ((LAST - FIRST) * at) / (columns.length - 1) : (FIRST + LAST) / 2;
  /** @type {Map<string, Place>} by the name of the node */
  const places = new Map();
  columns.forEach((column, at) => {
    const aside = column.length > 1 || columns.length === 1 ? 0 : at % 2 ? ASIDE : -ASIDE;
    column.forEach((node, rank) =>
      places.set(nodeName(node), { x: xOf(at), y: ((rank + 0.5) * height) / column.length + aside }),
    );
  });
  const lefts = Array.from({ length: words }, (_, rank) => ({ x: WORDS, y: ((rank + 0.5) * height) / words }));
  const titles = columns.map(([[layer]], at) => ({ layer, x: xOf(at) }));
  return { places, words: lefts, titles, height, end: { x: NEXT, y: height / 2 } };
}

/** @param {string} name of the picture */
export function headGraph(name) {
  const plot = make("div", { class: "hs-head-graph-plot", role: "group", "aria-label": name });
  const element = make("div", { class: "hs-head-graph" }, plot);
  const roving = new Roving(plot, () => [...plot.querySelectorAll("button")]);
  /** @type {[key: string, line: SVGElement][]} */
  let keyed = [];

  /** @param {Graph} graph @param {number} [least] CSS pixels: the least height @returns {number} its height */
  function show({ heads, lines, words = [], end }, least) {
    const { places, ...layout } = layOut(
      heads.map(({ picture }) => picture),
      words.length,
      least,
    );
    plot.style.height = `${layout.height}px`;
    plot.style.minWidth = `${SIDES + LAYER * layout.titles.length}px`;
    keyed = [];
    const drawing = svg("svg", {
      viewBox: `0 0 100 ${layout.height}`,
      preserveAspectRatio: "none",
      "aria-hidden": "true",
    });
    for (const line of lines) {
      const from = typeof line.from === "number" ? layout.words[line.from] : places.get(nodeName(line.from));
      const to = line.to ? places.get(nodeName(line.to)) : layout.end;
      if (!from || !to) continue;
      const drawn = drawLine(line, from, to);
      drawing.append(drawn);
      if (line.key !== undefined) keyed.push([line.key, drawn]);
    }
    const buttons = heads.map((head) => headButton(head, places.get(nodeName(head.picture)) ?? layout.end));
    const short = layout.titles.length > MAX_NAMED_LAYERS;
    const titles = layout.titles.map(({ layer, x }) =>
      put(make("span", { class: "hs-layer" }, short ? `L${layer}` : `layer ${layer}`), { x, y: 0 }),
    );
    const read = words.map((word, at) => wordLabel("hs-read", layout.words[at], word));
    const last = end ? [wordLabel("hs-end", layout.end, end)] : [];
    plot.replaceChildren(drawing, ...titles, ...read, ...buttons, ...last);
    roving.update(buttons[0]);
    return layout.height;
  }

  /** Mark the line with a key, or none. @param {string | null} key */
  function mark(key) {
    for (const [its, line] of keyed) line.classList.toggle("hs-is-open", its === key);
  }

  return { element, show, mark };
}

/** @param {GraphLine} line @param {Place} from @param {Place} to */
function drawLine({ part, css = "", label, open }, from, to) {
  const middle = (from.x + to.x) / 2;
  const d = `M ${from.x} ${from.y} C ${middle} ${from.y}, ${middle} ${to.y}, ${to.x} ${to.y}`;
  const width = MIN_LINE + (MAX_LINE - MIN_LINE) * part;
  const target = open ? [svg("path", { d, class: "hs-edge-target" })] : [];
  const title = label ? [svg("title", {}, label)] : [];
  const drawn = svg("g", { class: `hs-edge ${css}` }, ...title, ...target, svg("path", { d, "stroke-width": width }));
  if (open) drawn.addEventListener("click", open);
  return drawn;
}

/** @param {HTMLElement} element @param {Place} place */
function put(element, { x, y }) {
  element.style.left = `${x}%`;
  element.style.top = `${y}px`;
  return element;
}

/** @param {string} css @param {Place} place @param {GraphWord} word */
const wordLabel = (css, place, { text, note }) =>
  put(
    make("span", { class: css, title: visible(text) }, shorten(asWritten(text), MAX_LETTERS), make("small", {}, note)),
    place,
  );

/** @param {GraphHead} head @param {Place} place */
function headButton({ picture, note, label, open }, place) {
  const attributes = { type: "button", class: "hs-node-head", "aria-label": label, "data-head": nodeName(picture) };
  const [layer, head] = picture;
  const button = make("button", attributes, head === null ? "MLP" : headName([layer, head]), make("small", {}, note));
  button.addEventListener("click", open);
  return put(button, place);
}
