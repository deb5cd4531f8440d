// A GPT in one picture: the residual stream, what reads from it and what is added to it. Every part is a link.

import { isStill, make, svg } from "../../lib/dom.mjs";

/** @typedef {keyof typeof NAMES} Part */
/** @typedef {{ href: string, title: string, go?: () => void, isElsewhere?: boolean }} Target where a part leads */
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
export const PARTS = /** @type {Part[]} */ (Object.keys(NAMES));
const [HALF, RADIUS] = [15, 13]; // of a box's height, and of a circle

/** @type {Layout} */
const WIDE = {
  size: [872, 114],
  boxes: {
    embedding: [4, 98, 84],
    norm: [150, 206, 28],
    attention: [222, 308, 28],
    add: [332, 332, 84],
    norm_again: [374, 430, 28],
    mlp: [446, 496, 28],
    add_again: [520, 520, 84],
    last_norm: [568, 624, 84],
    unembedding: [642, 750, 84],
    softmax: [768, 844, 84],
  },
  frame: [112, 5, 438, 104],
  label: [118, 103],
  lines:
    "M98 84H319 M345 84H507 M533 84H568 M624 84H642 M750 84H768 M844 84H868 " +
    "M128 84V28H150 M206 28H222 M308 28H332V71 M352 84V28H374 M430 28H446 M496 28H520V71",
  arrows:
    "M312 80l6 4l-6 4 M500 80l6 4l-6 4 M561 80l6 4l-6 4 M635 80l6 4l-6 4 M761 80l6 4l-6 4 M862 80l6 4l-6 4 " +
    "M328 64l4 6l4 -6 M516 64l4 6l4 -6 M143 24l6 4l-6 4 M215 24l6 4l-6 4 M367 24l6 4l-6 4 M439 24l6 4l-6 4",
};
/** @type {Layout} for a phone, in three lines */
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
  /** @type {Map<string, Element[]>} of both layouts */
  #links = new Map();
  /** @type {[Part, Element][]} where each part is shown, from top to bottom */
  #places = [];

  /**
   * @param {Record<Part, Target>} targets
   */
  constructor(targets) {
    this.targets = targets;
    this.layers = [WIDE, NARROW].map(() => svg("text", { class: "hl-frame-name" }, "× all layers"));
    const pictures = [WIDE, NARROW].map((layout, i) => this.#draw(layout, ["hl-wide", "hl-narrow"][i], this.layers[i]));
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
      const { href, title, go, isElsewhere } = this.targets[part];
      const attributes = { href, class: isElsewhere ? "hl-part hl-elsewhere" : "hl-part", "aria-label": title };
      const link = svg("a", attributes, svg("title", {}, title), shape, text);
      link.addEventListener("click", (event) => {
        if (!go || event.metaKey || event.ctrlKey || event.shiftKey) return;
        event.preventDefault();
        go();
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

  /** @param {number} n_layer */
  count(n_layer) {
    for (const name of this.layers) name.textContent = `× ${n_layer} layers`;
  }

  /** Highlight the part that is shown. @param {Part | null} part */
  mark(part) {
    for (const [name, links] of this.#links) {
      for (const link of links) {
        if (name === part) link.setAttribute("aria-current", "step");
        else link.removeAttribute("aria-current");
      }
    }
    this.said.textContent = part ? this.targets[part].title : "";
  }

  /**
   * Highlight the part that is in view while the page is scrolled. Return a function that stops this.
   * @param {[Part, Element][]} places from top to bottom
   */
  follow(places) {
    this.#places = places;
    let isWaiting = false;
    const look = () => {
      isWaiting = false;
      const line = innerHeight * 0.45;
      const seen = this.#places.filter(([, place]) => place.getBoundingClientRect().top < line).at(-1);
      this.mark(seen?.[0] ?? this.#places[0][0]);
    };
    const soon = () => {
      if (!isWaiting) requestAnimationFrame(look);
      isWaiting = true;
    };
    addEventListener("scroll", soon, { passive: true });
    const appears = new ResizeObserver(soon); // the diagram is hidden until the rung's numbers arrive
    appears.observe(this.element);
    return () => {
      removeEventListener("scroll", soon);
      appears.disconnect();
    };
  }
}

/** Scroll to an element that shows a part. @param {Element} place */
export function scrollTo(place) {
  place.scrollIntoView({ block: "start", behavior: isStill() ? "auto" : "smooth" });
}

// The targets of the diagram's parts: an element of the open rung, or the rung that explains the part.

/** @type {Record<Part, string>} */
export const TITLES = {
  embedding: "Embedding: the sum of a row of numbers for the token and one for its position",
  norm: "Layer norm: the copy that attention reads, scaled to a standard size",
  attention: "Attention: each token gathers information from those before it, head by head",
  add: "The output of attention is added to the residual stream",
  norm_again: "Layer norm: the copy that the MLP reads, scaled to a standard size",
  mlp: "MLP: each token on its own, through four times as many numbers and GELU",
  add_again: "The output of the MLP is added to the residual stream",
  last_norm: "The last layer norm, after all layers",
  unembedding: "Unembedding: the dot product with a token’s own vector is its logit",
  softmax: "Softmax: logits become the probabilities of the next token",
};

/** The rung that explains a part. @type {Record<Part, number>} */
export const RUNG_OF = {
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
const AFTER_ALL = 10; // the rung that shows the parts after the layers

/**
 * The diagram of a rung. A click on one of its own parts scrolls to it; the others open the rung that shows them.
 * @param {{ rung: number, go: (rung: number) => void }} lesson
 * @param {[Part, Element][]} places the elements that show each part here, from top to bottom
 */
export function diagramOf(lesson, places) {
  const targets = PARTS.map((part) => {
    const place = places.find(([name]) => name === part)?.[1];
    if (place) {
      const go = () => scrollTo(place);
      return [part, { href: `#learn/${lesson.rung}`, title: TITLES[part], go }];
    }
    const rung = part === "softmax" ? AFTER_ALL : RUNG_OF[part];
    const go = () => lesson.go(rung);
    const title = `${TITLES[part]} (rung ${rung})`;
    return [part, { href: `#learn/${rung}`, title, go, isElsewhere: true }];
  });
  const diagram = new Diagram(/** @type {Record<Part, Target>} */ (Object.fromEntries(targets)));
  return { diagram, follow: () => diagram.follow(places) };
}
