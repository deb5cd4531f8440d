// What becomes of the shape on the way through weight splits, as a picture whose steps lead to their tables.

import { make } from "../../../lib/dom.mjs";
import { scrollTo } from "../../widgets/diagram.mjs";
import { svg } from "../../widgets/svg.mjs";

const [CELL, ROWS, GAP] = [11, 4, 14]; // pixels of a cell, tokens that are drawn, pixels between two heads
const [WIDTH, HEIGHT, MIDDLE] = [800, 172, 66];
const [BOTH, FIRST, SECOND] = ["hl-shape", "hl-shape hl-shape-0", "hl-shape hl-shape-1"];

/** @typedef {{ name: string, shape: string, x: number, grids: string[][], isMasked?: boolean, place: Element }} Step */

/** @param {Record<"x" | "wide" | "split" | "weights" | "merged" | "projected", Element>} places */
export function shapesOfHeads(places) {
  const halves = [FIRST, FIRST, SECOND, SECOND];
  const pairs = [
    [FIRST, FIRST],
    [SECOND, SECOND],
  ];
  const squares = pairs.map(([css]) => Array(ROWS).fill(css));
  /** @type {Step[]} */
  const steps = [
    { name: "words", shape: "(T, 3)", x: 40, grids: [[BOTH, BOTH, BOTH]], place: places.x },
    { name: "one projection", shape: "(T, 4)", x: 160, grids: [halves], place: places.wide },
    { name: "split", shape: "(2, T, 2)", x: 285, grids: pairs, place: places.split },
    { name: "weights", shape: "(2, T, T)", x: 400, grids: squares, isMasked: true, place: places.weights },
    { name: "× values", shape: "(2, T, 2)", x: 515, grids: pairs, place: places.merged },
    { name: "side by side", shape: "(T, 4)", x: 630, grids: [halves], place: places.merged },
    { name: "mixed", shape: "(T, d_out)", x: 750, grids: [[BOTH, BOTH]], place: places.projected },
  ];
  const arrows = steps.slice(1).map(({ x }, i) => {
    const [from, to] = [steps[i].x + 34, x - 34];
    return `M${from} ${MIDDLE}H${to}m-6 -4l6 4l-6 4`;
  });
  const links = steps.map((step) => {
    const title = `${step.name}, ${step.shape}: go to its numbers`;
    const text = (/** @type {string} */ words, /** @type {number} */ y, css = "") =>
      svg("text", { x: step.x, y, "text-anchor": "middle", class: css }, words);
    const link = svg(
      "a",
      { href: "#learn/8", "aria-label": title, class: "hl-part" },
      svg("title", {}, title),
      svg("rect", { x: step.x - 45, y: 0, width: 90, height: HEIGHT, class: "hl-hit" }), // also between two grids
      ...gridsOf(step),
      text(step.name, HEIGHT - 24),
      text(step.shape, HEIGHT - 8, "hl-frame-name"),
    );
    link.addEventListener("click", (event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey) return;
      event.preventDefault();
      scrollTo(step.place);
    });
    return link;
  });
  const box = { viewBox: `0 0 ${WIDTH} ${HEIGHT}` };
  const picture = svg("svg", box, svg("path", { d: arrows.join(""), class: "hl-flow" }), ...links);
  return make(
    "nav",
    { class: "hl-diagram hl-shapes", "aria-label": "The shapes on the way" },
    make("div", { class: "hl-scroll" }, picture),
  );
}

/** The cells of a step, one grid below the other. @param {Step} step */
function gridsOf({ x, grids, isMasked = false }) {
  const height = grids.length * ROWS * CELL + (grids.length - 1) * GAP;
  return grids.flatMap((columns, g) => {
    const top = MIDDLE - height / 2 + g * (ROWS * CELL + GAP);
    const left = x - (columns.length * CELL) / 2;
    return Array.from({ length: ROWS }, (_, r) =>
      columns.map((css, c) => {
        const isFuture = isMasked && c > r;
        const at = { x: left + c * CELL, y: top + r * CELL, width: CELL - 1, height: CELL - 1 };
        return svg("rect", { ...at, class: isFuture ? BOTH : css });
      }),
    ).flat();
  });
}
