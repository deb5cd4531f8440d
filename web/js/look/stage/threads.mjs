// Where the threads run that lead from the word that looks to the words that the heads look at. They never cross a
// word: they run in the streets between two lines, and along the margins where they have to pass a line.

/** @typedef {{ left: number, right: number, top: number, bottom: number }} Box the letters of a token, in CSS pixels */

/**
 * @typedef {object} Strand
 * @property {number} head its number, counted through all layers
 * @property {number} key the token that it looks at
 * @property {number} width in CSS pixels
 * @property {boolean} matters whether it is kept apart from the others
 */

/**
 * @typedef {object} Room
 * @property {number} width of the text
 * @property {number} gutter how far threads may leave the text on either side
 * @property {number} street the height between the letters of two lines
 */

/** @typedef {Strand & { box: Box, way: Way, from: number, to: number, level: number }} Routed */
/** @typedef {"left" | "arc" | "street" | "self" | "right"} Way */

/** The order in which threads leave a word from left to right, so that they do not cross each other there. */
const ORDER = { left: 0, arc: 1, street: 2, self: 3, right: 4 };
const QUARTER = 0.5523; // of a radius: the control points of a quarter of an ellipse
const CORNER = 48; // CSS pixels, the largest radius
const [APART, TOGETHER] = [3, 0.2]; // CSS pixels between two threads that matter, and between others

/**
 * The path of every strand, in the order of `strands`.
 * @param {readonly Box[]} boxes of all tokens
 * @param {number} query the token that looks
 * @param {readonly Strand[]} strands
 * @param {Room} room
 * @returns {string[]}
 */
export function threadPaths(boxes, query, strands, room) {
  const from = boxes[query];
  const lines = linesOf(boxes);
  const routed = strands.map((strand) => {
    const box = boxes[strand.key];
    return { ...strand, box, way: wayOf(strand.key - query, lines[query] - lines[strand.key], from, box, room) };
  });
  const all = /** @type {Routed[]} */ (routed);
  const sorted = [...all].sort((a, b) => ORDER[a.way] - ORDER[b.way] || within(a, b) || a.width - b.width);
  spread(sorted, from, "from");
  /** @type {Map<number, Routed[]>} */
  const ribbons = new Map();
  for (const strand of sorted) ribbons.set(strand.key, [...(ribbons.get(strand.key) ?? []), strand]);
  for (const ribbon of ribbons.values()) {
    spread(ribbon[0].way === "street" ? ribbon : [...ribbon].reverse(), ribbon[0].box, "to");
    level(ribbon, room.street);
  }
  const lanes = {
    left: sorted.filter(({ way }) => way === "left"),
    right: sorted.filter(({ way }) => way === "right"),
  };
  lanes.right.reverse();
  return all.map((strand) => pathOf(strand, from, room, lanes));
}

/** The line of each token, counted from 0. @param {readonly Box[]} boxes @returns {number[]} */
export function linesOf(boxes) {
  let [line, bottom] = [-1, -Infinity];
  return boxes.map((box) => {
    if ((box.top + box.bottom) / 2 > bottom) [line, bottom] = [line + 1, box.bottom];
    return line;
  });
}

/**
 * @param {number} distance to the key, in tokens
 * @param {number} up lines
 * @param {Box} from
 * @param {Box} to
 * @param {Room} room
 * @returns {Way}
 */
function wayOf(distance, up, from, to, { width }) {
  if (distance === 0) return "self";
  if (up === 0) return "arc";
  if (up === 1) return "street";
  return from.left + to.left <= width * 1.1 ? "left" : "right";
}

/** Those that leave in the same way. @param {Routed} a @param {Routed} b */
function within(a, b) {
  const isHigher = a.box.top - b.box.top;
  if (a.way === "left") return -isHigher || b.box.left - a.box.left;
  if (a.way === "right") return isHigher || b.box.left - a.box.left;
  return a.box.left - b.box.left;
}

/** @param {Routed} strand */
const gapOf = ({ matters }) => (matters ? APART : TOGETHER);

/**
 * Give each strand its place on the edge of a word, side by side around its middle.
 * @param {Routed[]} strands
 * @param {Box} box
 * @param {"from" | "to"} end
 */
function spread(strands, { left, right }, end) {
  const inset = Math.min(2, (right - left) / 4);
  const wanted = strands.reduce((sum, strand) => sum + strand.width + gapOf(strand), 0);
  const room = Math.min(right - left - 2 * inset, Math.max(wanted, 2));
  let x = (left + right) / 2 - room / 2;
  for (const strand of strands) {
    const step = ((strand.width + gapOf(strand)) * room) / wanted;
    strand[end] = x + step / 2;
    x += step;
  }
}

/**
 * Strands to one word are a ribbon: each has its own level where it runs flat.
 * @param {Routed[]} ribbon
 * @param {number} street
 */
function level(ribbon, street) {
  const sum = ribbon.reduce((total, strand) => total + strand.width + gapOf(strand), 0);
  const fit = Math.min(1, (street * 0.75) / sum);
  let at = -sum / 2;
  for (const strand of ribbon) {
    const step = strand.width + gapOf(strand);
    strand.level = (at + step / 2) * fit;
    at += step;
  }
}

/**
 * @param {Routed} strand
 * @param {Box} from
 * @param {Room} room
 * @param {{ left: Routed[], right: Routed[] }} lanes
 */
function pathOf(strand, from, room, lanes) {
  const { way, from: x, to, box, level: flat } = strand;
  const { street } = room;
  const start = `M${f(x)},${f(from.top)}`;
  if (way === "self") {
    const [end, high] = [Math.max(from.left, x - 12), from.top - street / 2];
    return `${start}C${f(x + 2)},${f(high)} ${f(end - 2)},${f(high)} ${f(end)},${f(from.top)}`;
  }
  if (way === "arc") {
    const far = Math.abs(x - to);
    const rise = Math.max(6, Math.min(street / 2, 6 + 0.12 * far) + flat * Math.min(1, far / 200));
    const y = from.top - Math.min(rise, street * 0.9) / 0.75; // a curve reaches three quarters of its controls
    return `${start}C${f(x)},${f(y)} ${f(to)},${f(y)} ${f(to)},${f(box.top)}`;
  }
  if (way === "street") {
    const gap = from.top - box.bottom;
    const shift = (to > x ? -1 : 1) * flat * Math.min(1, Math.abs(to - x) / 300) * 1.33;
    /** @param {number} y */
    const inStreet = (y) => Math.min(Math.max(y, box.bottom), from.top);
    const [low, high] = [inStreet(from.top - 0.8 * gap - shift), inStreet(box.bottom + 0.8 * gap - shift)];
    return `${start}C${f(x)},${f(low)} ${f(to)},${f(high)} ${f(to)},${f(box.bottom)}`;
  }
  return start + alongMargin(strand, from, room, lanes[way]);
}

/**
 * Up into the street, to the margin, up along it, into the street under the line of the key, and up to the key.
 * @param {Routed} strand
 * @param {Box} from
 * @param {Room} room
 * @param {Routed[]} lane all strands along this margin, the outermost last
 */
function alongMargin(strand, from, { width, gutter, street }, lane) {
  const { from: x, to, box, way } = strand;
  const part = lane.length > 1 ? lane.indexOf(strand) / (lane.length - 1) : 0.5;
  const out = way === "left" ? -1 : 1;
  const away = gutter * (0.35 + 0.5 * part);
  const margin = out < 0 ? -away : width + away;
  const low = from.top - street * (0.25 + 0.5 * part);
  const high = box.bottom + street * (0.72 - 0.5 * part);
  const leaving = Math.min(CORNER, Math.abs(x - margin) / 2);
  const arriving = Math.min(CORNER, Math.abs(to - margin) / 2);
  const turn = Math.min(away * 1.6 + 8, leaving, arriving);
  const rise = Math.min(street * 0.9, (low - high) / 2);
  const rest = 1 - QUARTER;
  const [begun, ended] = [x + out * leaving, to + out * arriving];
  const [inner, bend] = [margin - out * turn, margin - out * turn * rest];
  const [above, below] = [from.top + (low - from.top) * QUARTER, high + (box.bottom - high) * QUARTER];
  return [
    `C${f(x)},${f(above)} ${f(x + out * leaving * rest)},${f(low)} ${f(begun)},${f(low)}L${f(inner)},${f(low)}`,
    `C${f(bend)},${f(low)} ${f(margin)},${f(low - rise * rest)} ${f(margin)},${f(low - rise)}`,
    `L${f(margin)},${f(high + rise)}`,
    `C${f(margin)},${f(high + rise * rest)} ${f(bend)},${f(high)} ${f(inner)},${f(high)}L${f(ended)},${f(high)}`,
    `C${f(to + out * arriving * rest)},${f(high)} ${f(to)},${f(below)} ${f(to)},${f(box.bottom)}`,
  ].join("");
}

/** @param {number} value */
const f = (value) => value.toFixed(1);
