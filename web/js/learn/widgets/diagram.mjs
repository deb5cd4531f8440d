// A GPT in one picture: the residual stream, what reads from it and what is added to it. Every part is a link.

import { isStill, make, svg } from "../../lib/dom.mjs";
import { openFolds } from "./elements.mjs";

/** @typedef {keyof typeof NAMES} Part */
/**
 * One way to lay it out: boxes by their left end, right end and height; circles by their centre.
 * @typedef {{ size: [number, number], boxes: Record<string, number[]>, frame: number[], label: number[],
 *   lines: string, arrows: string }} Layout
 */

const NAMES = {
  embedding: "embedding",
  norm: "norm",
  attention: "attention",
  add: "+",
  norm_again: "norm",
  mlp: "MLP",
  add_again: "+",
  last_norm: "norm",
  unembedding: "unembedding",
  softmax: "softmax",
};
const PARTS = /** @type {Part[]} */ (Object.keys(NAMES));
const [HALF, RADIUS] = [15, 13]; // of a box's height, and of a circle

/** @type {Layout} for the margin: the residual stream runs down */
const TALL = {
  size: [208, 336],
  boxes: {
    embedding: [4, 100, 18],
    norm: [88, 144, 62],
    attention: [88, 176, 98],
    add: [52, 52, 98],
    norm_again: [88, 144, 142],
    mlp: [88, 144, 178],
    add_again: [52, 52, 178],
    last_norm: [24, 80, 232],
    unembedding: [2, 112, 272],
    softmax: [14, 90, 312],
  },
  frame: [14, 42, 186, 172],
  label: [112, 208],
  lines:
    "M52 33V85 M52 62H88 M116 77V83 M88 98H65 M52 111V165 M52 142H88 M116 157V163 M88 178H65 M52 191V217 " +
    "M52 247V257 M52 287V297 M52 327V335",
  arrows:
    "M81 58l6 4l-6 4 M112 76l4 6l4 -6 M72 94l-6 4l6 4 M48 78l4 6l4 -6 M81 138l6 4l-6 4 M112 156l4 6l4 -6 " +
    "M72 174l-6 4l6 4 M48 158l4 6l4 -6 M48 210l4 6l4 -6 M48 250l4 6l4 -6 M48 290l4 6l4 -6 M48 329l4 6l4 -6",
};
/** @type {Layout} for a narrow page, in three lines */
const NARROW = {
  size: [360, 238],
  boxes: {
    embedding: [3, 90, 72],
    norm: [132, 180, 26],
    attention: [194, 272, 26],
    add: [296, 296, 72],
    norm_again: [132, 180, 112],
    mlp: [194, 240, 112],
    add_again: [296, 296, 154],
    last_norm: [60, 108, 214],
    unembedding: [124, 228, 214],
    softmax: [244, 316, 214],
  },
  frame: [100, 4, 254, 178],
  label: [236, 176],
  lines:
    "M90 72H283 M112 72V26H132 M180 26H194 M272 26H296V59 M309 72H338V90H112V154H283 M112 112H132 M180 112H194 " +
    "M240 112H296V141 M309 154H338V192H40V214H60 M108 214H124 M228 214H244 M316 214H344",
  arrows:
    "M276 68l6 4l-6 4 M292 52l4 6l4 -6 M276 150l6 4l-6 4 M292 134l4 6l4 -6 M125 22l6 4l-6 4 M125 108l6 4l-6 4 " +
    "M53 210l6 4l-6 4 M117 210l6 4l-6 4 M237 210l6 4l-6 4 M338 210l6 4l-6 4",
};

export class Diagram {
  /** @type {Map<Part, SVGElement[]>} of both layouts */
  #links = new Map();
  /** @type {[Part, Element][]} where the open rung shows each part, from top to bottom */
  #places = [];
  /** @type {Part | null} */
  #marked = null;

  /** @param {(rung: number) => void} go opens a rung */
  constructor(go) {
    this.go = go;
    this.layers = [TALL, NARROW].map(() => svg("text", { class: "hl-frame-name" }, "× all layers"));
    const pictures = [TALL, NARROW].map((layout, i) => this.#draw(layout, ["hl-tall", "hl-narrow"][i], this.layers[i]));
    this.said = make("p", { class: "hl-count", role: "status" });
    this.element = make("nav", { class: "hl-diagram", "aria-label": "The parts of a GPT" }, ...pictures, this.said);
  }

  /** @param {Layout} layout @param {string} css @param {SVGTextElement} name of the frame */
  #draw({ size, boxes, frame, label, lines, arrows }, css, name) {
    const [x, y, width, height] = frame;
    name.setAttribute("x", String(label[0]));
    name.setAttribute("y", String(label[1]));
    const links = PARTS.map((part) => {
      const [left, right, middle] = boxes[part];
      const shape =
        left === right
          ? svg("circle", { cx: left, cy: middle, r: RADIUS })
          : svg("rect", { x: left, y: middle - HALF, width: right - left, height: 2 * HALF, rx: 5 });
      const text = svg("text", { x: (left + right) / 2, y: middle + 5, "text-anchor": "middle" }, NAMES[part]);
      const link = svg("a", { class: "hl-part" }, svg("title"), shape, text);
      link.addEventListener("click", (event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey) return;
        event.preventDefault();
        const place = this.#placeOf(part);
        if (place) {
          this.mark(part);
          scrollTo(place);
        } else this.go(RUNG_OF[part]);
      });
      this.#links.set(part, [...(this.#links.get(part) ?? []), link]);
      return link;
    });
    return svg(
      "svg",
      { viewBox: `0 0 ${size.join(" ")}`, class: css },
      svg("rect", { x, y, width, height, rx: 9, class: "hl-frame" }),
      name,
      svg("path", { d: `${lines} ${arrows}`, class: "hl-flow" }),
      ...links,
    );
  }

  /** @param {Part} part */
  #placeOf(part) {
    return this.#places.find(([name]) => name === part)?.[1];
  }

  /**
   * Fill each part by how many of the rungs about it have been seen, and highlight that of the open rung.
   * @param {number} rung
   * @param {number[]} seen
   */
  open(rung, seen) {
    this.#places = [];
    this.#aim(rung);
    this.count(null);
    for (const part of PARTS) {
      const about = RUNGS_ABOUT[part];
      const known = about.filter((one) => seen.includes(one)).length / about.length;
      for (const link of this.#links.get(part) ?? []) link.style.setProperty("--known", String(known));
    }
    this.mark(PARTS.find((part) => RUNGS_ABOUT[part].includes(rung)) ?? null);
  }

  /** Let each part lead to its place on the open rung, or to the rung that shows it. @param {number} open */
  #aim(open) {
    const isLast = !Object.values(RUNGS_ABOUT).some((rungs) => rungs.includes(open));
    this.element.classList.toggle("hl-in-use", isLast || this.#places.length > 0);
    for (const [part, links] of this.#links) {
      const isHere = this.#placeOf(part) !== undefined;
      const rung = isHere ? open : RUNG_OF[part];
      for (const link of links) {
        const title = isHere ? TITLES[part] : `${TITLES[part]} (rung ${rung})`;
        link.setAttribute("href", `#learn/${rung}`);
        link.setAttribute("aria-label", title);
        link.classList.toggle("hl-elsewhere", !isHere);
        link.querySelector("title")?.replaceChildren(title);
      }
    }
  }

  /** @param {number | null} n_layer */
  count(n_layer) {
    for (const name of this.layers) name.textContent = `× ${n_layer ?? "all"} layers`;
  }

  /** Highlight the part that is shown. @param {Part | null} part */
  mark(part) {
    this.#marked = part;
    for (const [name, links] of this.#links) {
      for (const link of links) {
        if (name === part) link.setAttribute("aria-current", "step");
        else link.removeAttribute("aria-current");
      }
    }
    this.said.textContent = part ? TITLES[part] : "";
  }

  /**
   * Let the parts lead to places of the open rung, and highlight the one that is in view while the page is scrolled.
   * Return a function that stops this.
   * @param {number} rung
   * @param {[Part, Element][]} places from top to bottom
   */
  follow(rung, places) {
    this.#places = places;
    this.#aim(rung);
    let isWaiting = false;
    const look = () => {
      isWaiting = false;
      const tops = places.filter(([, place]) => place.checkVisibility()).map(topOf);
      const above = tops.filter(({ top }) => top < innerHeight * 0.2);
      const lowest = Math.max(...above.map(({ top }) => top));
      const seen = above.filter(({ top }) => top === lowest).map(({ part }) => part); // in one row
      if (!seen.length) this.mark(places[0][0]);
      else if (!this.#marked || !seen.includes(this.#marked)) this.mark(seen[0]);
    };
    const soon = () => {
      if (!isWaiting) requestAnimationFrame(look);
      isWaiting = true;
    };
    addEventListener("scroll", soon, { passive: true });
    const appears = new ResizeObserver(soon); // the places are hidden until the rung's numbers arrive
    appears.observe(places[0][1]);
    return () => {
      removeEventListener("scroll", soon);
      appears.disconnect();
    };
  }
}

/** @param {[Part, Element]} place */
const topOf = ([part, place]) => ({ part, top: place.getBoundingClientRect().top });

/** Scroll to an element that shows a part. @param {Element} place */
export function scrollTo(place) {
  openFolds(place);
  place.scrollIntoView({ block: "start", behavior: isStill() ? "auto" : "smooth" });
}

/** @type {Record<Part, string>} */
const TITLES = {
  embedding: "Embedding: the sum of a row of numbers for the token and one for its position",
  norm: "Layer norm: the copy that attention reads, scaled to a standard size",
  attention: "Attention: each token gathers information from those before it, head by head",
  add: "The output of attention is added to the residual stream",
  norm_again: "Layer norm: the copy that the MLP reads, scaled to a standard size",
  mlp: "MLP: each token on its own, through four times as many numbers and GELU",
  add_again: "The output of the MLP is added to the residual stream",
  last_norm: "The last layer norm, after all layers",
  unembedding: "Unembedding: from the vector of a token to a logit for each token that may come next",
  softmax: "Softmax: logits become the probabilities of the next token",
};

/** The rungs about a part. @type {Record<Part, number[]>} */
const RUNGS_ABOUT = {
  embedding: [1, 2],
  norm: [9],
  attention: [4, 5, 6, 7, 8, 11],
  add: [9],
  norm_again: [9],
  mlp: [9],
  add_again: [9],
  last_norm: [10],
  unembedding: [3, 10],
  softmax: [5, 10],
};

/** The rung that a part leads to. @type {Record<Part, number>} */
const RUNG_OF = {
  embedding: 2,
  norm: 9,
  attention: 8,
  add: 9,
  norm_again: 9,
  mlp: 9,
  add_again: 9,
  last_norm: 10,
  unembedding: 10,
  softmax: 5,
};
