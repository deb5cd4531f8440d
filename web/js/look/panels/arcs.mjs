// Arcs over a text, from the token that looks to the tokens that it looks at. The positions of the tokens are measured
// when the text is laid out again, never in a frame that only draws other arcs.

import { isStill, svg } from "../../lib/dom.mjs";

/** @import { ShownText } from "../state/shown_text.mjs" */

/** @typedef {{ left: number, right: number, top: number, bottom: number }} Box in CSS pixels of the text's content */
/** @typedef {{ query: number, key: number, weight: number }} Arc */

const MIN_WEIGHT = 0.03; // weights below it have no arc
const MIN_FAR = 0.15; // along the margin, where weak ones would draw boxes around the lines
const MAX_ARCS = 24; // arcs of a token
const LANE = 9; // CSS pixels from the margin to the arcs that pass along it
const SAME_LINE = 4; // CSS pixels by which the middles of two tokens of a line may differ
const DRAWING = 350; // milliseconds in which an arc draws itself

/** The places of the tokens of a text, measured when they are needed and not known. */
export class TokenPlaces {
  /** @type {Box[]} */
  #boxes = [];
  #width = 0;
  #height = 0;
  top = 0; // how far the text is scrolled

  /** @param {HTMLElement} element the text, which scrolls */
  constructor(element) {
    this.element = element;
  }

  get width() {
    return this.#width;
  }

  /** Whether any part of a token is in view. @param {Box} box */
  isInView({ top, bottom }) {
    return bottom > this.top + 1 && top < this.top + this.#height - 1;
  }

  /** The text has another size. Returns whether its words may have moved, which only another width does. */
  resized() {
    this.#height = this.element.clientHeight;
    return this.#width !== this.element.clientWidth;
  }

  /** Forget the places of the tokens from one position on. @param {number} [first] */
  forget(first = 0) {
    this.#boxes.length = Math.min(this.#boxes.length, first);
  }

  /**
   * Measure all that are not known.
   * @param {HTMLElement[]} words the part of each token that is coloured
   * @returns {readonly Box[]}
   */
  measured(words) {
    if (this.#boxes.length >= words.length) return this.#boxes;
    const { element } = this;
    const frame = element.getBoundingClientRect();
    if (!frame.width) return [];
    this.#width = element.clientWidth;
    this.#height = element.clientHeight;
    this.top = element.scrollTop;
    const [x, y] = [element.scrollLeft - frame.left, element.scrollTop - frame.top];
    for (let i = this.#boxes.length; i < words.length; i++) {
      let box = null;
      // A long token may be broken into several lines: the widest part counts.
      for (const part of words[i].getClientRects()) if (!box || part.width > box.width) box = part;
      const { left, right, top, bottom } = box ?? frame;
      this.#boxes.push({ left: left + x, right: right + x, top: top + y, bottom: bottom + y });
    }
    return this.#boxes;
  }

  /**
   * The position of the token that is nearest to a point of the window, so that a finger need not hit it.
   * @param {HTMLElement[]} words
   * @param {number} clientX
   * @param {number} clientY
   */
  nearest(words, clientX, clientY) {
    const { element } = this;
    const frame = element.getBoundingClientRect();
    const [x, y] = [clientX - frame.left + element.scrollLeft, clientY - frame.top + element.scrollTop];
    const boxes = this.measured(words);
    const above = boxes.map(({ top, bottom }) => Math.abs((top + bottom) / 2 - y));
    const line = Math.min(...above) + SAME_LINE;
    let [best, least] = [/** @type {number | null} */ (null), Infinity];
    boxes.forEach(({ left, right }, i) => {
      const aside = Math.max(left - x, x - right, 0);
      if (above[i] <= line && aside < least) [best, least] = [i, aside];
    });
    return best;
  }
}

/**
 * The path of an arc, in the gaps between the lines: over the words of its line, through the gap to the line above, or
 * along the nearer margin to a line further up.
 * @param {Box} from the token that looks
 * @param {Box} to
 * @param {number} width of the text
 * @param {number} gap between the boxes of two lines
 */
function arcPath(from, to, width, gap) {
  const [x, y] = [(from.left + from.right) / 2, from.top - 1];
  const [toX, below] = [(to.left + to.right) / 2, to.bottom + 1];
  const f = (/** @type {number} */ value) => value.toFixed(1);
  if (Math.abs(from.top - to.top) < (from.bottom - from.top) / 2) {
    const height = Math.min(1.2 * gap, 8 + 0.2 * Math.abs(x - toX), Math.max(1.25 * (y - 4), 4)); // within the text
    return `M${f(x)} ${f(y)}C${f(x)} ${f(y - height)} ${f(toX)} ${f(y - height)} ${f(toX)} ${f(to.top - 1)}`;
  }
  if (y - below < 1.5 * gap) {
    return `M${f(x)} ${f(y)}C${f(x)} ${f(below - 4)} ${f(toX)} ${f(y + 4)} ${f(toX)} ${f(below)}`;
  }
  const isLeft = x + toX < width;
  const lane = isLeft ? LANE : width - LANE;
  const inwards = isLeft ? 1 : -1;
  const [r, high, low] = [gap / 2, y - gap / 2, below + gap / 2];
  const bend = (
    /** @type {number} */ cx,
    /** @type {number} */ cy,
    /** @type {number} */ ex,
    /** @type {number} */ ey,
  ) => `Q${f(cx)} ${f(cy)} ${f(ex)} ${f(ey)}`;
  return (
    `M${f(x)} ${f(y)}${bend(x, high, x - inwards * r, high)}L${f(lane + inwards * r)} ${f(high)}` +
    `${bend(lane, high, lane, high - r)}L${f(lane)} ${f(low + r)}${bend(lane, low, lane + inwards * r, low)}` +
    `L${f(toX - inwards * r)} ${f(low)}${bend(toX, low, toX, below)}`
  );
}

export class Arcs {
  /** @type {SVGPathElement[]} used again from drawing to drawing */
  #paths = [];
  /** @type {string[]} what each of them shows */
  #shown = [];
  #last = ""; // the selection that was drawn last

  /**
   * @param {ShownText} store
   * @param {TokenPlaces} places
   */
  constructor(store, places) {
    this.store = store;
    this.places = places;
    this.element = svg("svg", { class: "hs-arcs", "aria-hidden": "true" });
  }

  /** The arcs of all tokens whose attention is shown, the faintest first. @returns {Arc[]} */
  get arcs() {
    const { store } = this;
    return store.selection.queries.flatMap((query) => {
      const row = store.selectedHeads.meanRow(query) ?? store.weights.row(query);
      /** @type {Arc[]} */
      const arcs = [];
      for (let key = store.view.options.hideFirst ? 1 : 0; key < row.length; key++) {
        if (key !== query && row[key] >= MIN_WEIGHT) arcs.push({ query, key, weight: row[key] });
      }
      return arcs.sort((a, b) => a.weight - b.weight).slice(-MAX_ARCS);
    });
  }

  /** @param {HTMLElement[]} words the part of each token that is coloured */
  draw(words) {
    const { store, places } = this;
    const boxes = places.measured(words);
    const isDrawn = (/** @type {number} */ at) => at < boxes.length && places.isInView(boxes[at]);
    const gap = gapOf(boxes);
    const arcs = this.arcs.filter(
      ({ query, key, weight }) =>
        isDrawn(query) && isDrawn(key) && (weight >= MIN_FAR || boxes[query].top - boxes[key].bottom < 1.5 * gap),
    );
    while (this.#paths.length < arcs.length) {
      const path = svg("path", { pathLength: 1 });
      this.#paths.push(path);
      this.#shown.push("");
      this.element.append(path);
    }
    this.#paths.forEach((path, i) => {
      const arc = arcs[i];
      const shape = arc
        ? arcPath(boxes[Math.max(arc.query, arc.key)], boxes[Math.min(arc.query, arc.key)], places.width, gap)
        : "";
      const shown = arc ? `${shape} ${arc.weight}` : "";
      if (shown === this.#shown[i]) return;
      this.#shown[i] = shown;
      if (!arc) {
        path.removeAttribute("d");
        return;
      }
      path.setAttribute("d", shape);
      path.dataset.query = String(arc.query);
      path.dataset.key = String(arc.key);
      path.style.strokeWidth = (1 + (0.28 * gap - 1) * arc.weight).toFixed(2);
      path.style.opacity = (0.22 + 0.73 * arc.weight).toFixed(2);
    });
    const selection = `${store.pointer.run} ${store.open} ${arcs.map(({ query }) => query).at(-1)}`;
    const isChosen = selection !== this.#last && !store.selection.hover && !store.isGrowing;
    this.#last = selection;
    if (!isChosen || !arcs.length || isStill()) return;
    for (const path of this.#paths) {
      if (!path.hasAttribute("d")) continue;
      const drawn = { strokeDasharray: ["1 1", "1 1"], strokeDashoffset: [1, 0] };
      path.animate(drawn, { duration: DRAWING, easing: "ease-out" });
    }
  }
}

/** The gap between the boxes of two lines of a text. @param {readonly Box[]} boxes */
function gapOf(boxes) {
  const [first] = boxes;
  const next = boxes.find(({ top }) => top > first.bottom - 1);
  return next ? Math.max(next.top - first.bottom, 8) : 18;
}
