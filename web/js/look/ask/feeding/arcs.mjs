// Arcs on the grid from heads to a head that reads them. The list beside them says the same in words.

/** @import { Card } from "../../panels/grid.mjs" */
/** @import { Arc } from "../question.js" */

const SVG = "http://www.w3.org/2000/svg";
const LEAST_WIDTH = 1.2; // CSS pixels
const MOST_WIDTH = 4;

/**
 * Draw the arcs over the tiles, in place of those drawn before.
 * @param {HTMLElement} grid
 * @param {Card[]} cards those that are shown
 * @param {Arc[]} arcs
 */
export function paintArcs(grid, cards, arcs) {
  grid.querySelector(".hs-arcs")?.remove();
  if (!arcs.length) return;
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "hs-arcs");
  svg.setAttribute("aria-hidden", "true");
  const buttonOf = (/** @type {number[]} */ place) => cards.find((card) => card.place.join() === place.join())?.button;
  for (const { from, to, part } of arcs) {
    const [start, end] = [buttonOf(from), buttonOf(to)];
    if (!start || !end) continue;
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("d", curve(start, end));
    path.setAttribute("stroke-width", String(LEAST_WIDTH + part * (MOST_WIDTH - LEAST_WIDTH)));
    path.setAttribute("data-from", from.join());
    svg.append(path);
  }
  grid.prepend(svg); // the last child of the grid is the mean of all heads
}

/**
 * From the lower edge of one tile to the upper edge of another, so that the numbers on them stay free; between their
 * middles where the heads are sorted and the second is not below the first.
 * @param {HTMLElement} start
 * @param {HTMLElement} end
 */
function curve(start, end) {
  const isBelow = end.offsetTop >= start.offsetTop + start.offsetHeight;
  const [x1, x2] = [start, end].map(({ offsetLeft, offsetWidth }) => offsetLeft + offsetWidth / 2);
  const y1 = start.offsetTop + start.offsetHeight * (isBelow ? 0.95 : 0.5);
  const y2 = end.offsetTop + end.offsetHeight * (isBelow ? 0.05 : 0.5);
  const bow = 0.18 * Math.hypot(x2 - x1, y2 - y1); // heads of one column do not lie on one line
  return `M ${x1} ${y1} Q ${(x1 + x2) / 2 + bow} ${(y1 + y2) / 2} ${x2} ${y2}`;
}
