// A circuit as a graph: layers from top to bottom, a box for each head with the tokens it reads and writes.

import { make, svg } from "../../../lib/dom.mjs";
import { headName } from "../../../lib/heads.mjs";
import { clamp, percent } from "../../../lib/numbers.mjs";
import { shorten, visible } from "../../../lib/words.mjs";

/** @import { CircuitAnswer, EdgeInCircuit, HeadInCircuit } from "../../../lens.js" */

const WIDTH = 124; // of a box, in CSS pixels
const HEIGHT = 42;
const GAP = 44; // between two layers
const COLUMN = 70; // just over half a box, so that a line down from a box passes those in the next columns
const LINE = 16; // of text
const MAX_LETTERS = 8; // of a token
const MIN_LINE = 1.2;
const MAX_LINE = 5;
// Where an edge enters a box, from its middle.
const PORTS = /** @type {Record<string, number>} */ ({ q: -36, k: 0, v: 36 });

/** @typedef {{ x: number, y: number }} Place of the middle of the upper side of a box */

/**
 * Where each head's box is, by the head's name, and that of the logits. There is a row for each layer that has heads.
 * Every head has a column of its own, in which lines lead down to later layers; boxes of one layer do not overlap.
 * @param {Pick<HeadInCircuit, "layer" | "head">[]} heads
 */
export function layOut(heads) {
  const layers = [...new Set(heads.map(({ layer }) => layer))].sort((a, b) => a - b);
  const rows = layers.map((layer) => heads.filter((each) => each.layer === layer).sort((a, b) => a.head - b.head));
  const most = Math.max(0, ...rows.map((row) => row.length));
  /** @type {Map<string, Place>} */
  const places = new Map();
  let [column, last] = [-1, -1];
  for (let rank = 0; rank < most; rank++) {
    rows.forEach((row, at) => {
      const head = row[rank];
      if (!head) return;
      column += at === last ? 2 : 1;
      last = at;
      places.set(headName([head.layer, head.head]), { x: WIDTH / 2 + 1 + column * COLUMN, y: 1 + at * (HEIGHT + GAP) });
    });
  }
  const width = WIDTH + 2 + Math.max(column, 0) * COLUMN;
  return { places, width, logits: { x: width / 2, y: 1 + rows.length * (HEIGHT + GAP) } };
}

/**
 * @param {(head: HeadInCircuit) => void} openHead
 * @param {(edge: EdgeInCircuit) => void} openEdge
 */
export function circuitGraph(openHead, openEdge) {
  const element = make("div", {
    class: "hs-circuit",
    tabindex: 0,
    role: "group",
    "aria-label": "Graph of the circuit",
  });
  /** @type {Map<string, SVGElement>} */
  let lines = new Map();

  /** @param {EdgeInCircuit} edge */
  const keyOf = ({ sender, receiver, way }) => `${sender} ${receiver} ${way}`;

  /** @param {CircuitAnswer} answer */
  function show({ heads, edges }) {
    const { places, width, logits } = layOut(heads);
    const most = Math.max(...edges.map(({ lost }) => Math.abs(lost)), 1e-9);
    const picture = svg("svg", { width, height: logits.y + HEIGHT + 1, "aria-hidden": "true" });
    lines = new Map();
    for (const edge of edges) {
      const from = places.get(headName(edge.sender));
      const to = edge.receiver ? places.get(headName(edge.receiver)) : logits;
      if (!from || !to) continue;
      const reach = WIDTH / 2 - 8;
      const port = edge.way ? PORTS[edge.way] : clamp(from.x - to.x, -reach, reach);
      const d = curve(from, { x: to.x + port, y: to.y });
      const strength = MIN_LINE + (MAX_LINE - MIN_LINE) * (Math.abs(edge.lost) / most);
      const line = svg(
        "g",
        { class: edge.lost < 0 ? "hs-edge hs-less" : "hs-edge" },
        svg("title", {}, `${headName(edge.sender)} → ${edge.way ?? "logits"}: ${percent(edge.lost)} lost without it`),
        svg("path", { d, class: "hs-edge-target" }),
        svg("path", { d, "stroke-width": strength }),
      );
      if (edge.way) line.append(svg("text", { x: to.x + port + 5, y: to.y - 4 }, edge.way));
      line.addEventListener("click", () => openEdge(edge));
      lines.set(keyOf(edge), line);
      picture.append(line);
    }
    for (const head of heads) {
      const place = places.get(headName([head.layer, head.head]));
      if (!place) continue;
      const [reads, writes] = [head.reads, head.promoted[0]].map((token) => name(token?.text ?? ""));
      const node = box(place, [`${headName([head.layer, head.head])}  ${percent(head.lost)}`, `${reads} → ${writes}`]);
      node.addEventListener("click", () => openHead(head));
      picture.append(node);
    }
    picture.append(box(logits, ["logits"]));
    element.replaceChildren(picture);
  }

  /** Mark an open edge. @param {EdgeInCircuit | null} edge */
  function mark(edge) {
    for (const [key, line] of lines) line.classList.toggle("hs-is-open", edge !== null && key === keyOf(edge));
  }

  return { element, show, mark };
}

/** @param {string} text */
const name = (text) => `“${shorten(visible(text), MAX_LETTERS)}”`;

/** @param {Place} place @param {string[]} words lines of text */
function box({ x, y }, words) {
  const middle = y + HEIGHT / 2 + 5; // of a line's letters
  const texts = words.map((line, at) =>
    svg("text", { x, y: middle + (at - (words.length - 1) / 2) * LINE, class: at ? "hs-tokens" : "" }, line),
  );
  const frame = svg("rect", { x: x - WIDTH / 2, y, width: WIDTH, height: HEIGHT, rx: 6 });
  return svg("g", { class: words.length > 1 ? "hs-node hs-node-head" : "hs-node" }, frame, ...texts);
}

/**
 * Down from the lower side of a box, and in the gap above another one over to its upper side.
 * @param {Place} from
 * @param {Place} to
 */
function curve(from, to) {
  const turn = to.y - GAP;
  const middle = to.y - GAP / 2;
  return `M ${from.x} ${from.y + HEIGHT} V ${turn} C ${from.x} ${middle}, ${to.x} ${middle}, ${to.x} ${to.y}`;
}
