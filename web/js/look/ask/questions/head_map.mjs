// A map of all heads: heads that behave alike in this text lie close together. Clicking one opens it.

import { percent } from "../../../lib/numbers.mjs";
import { make } from "../../../lib/dom.mjs";
import { headEntries, isSamePicture } from "../../../lib/heads.mjs";
import { pictureName } from "../../../lib/words.mjs";
import { chipButton } from "../../../widgets/controls.mjs";
import { Roving } from "../../../widgets/roving.mjs";

/** @import { PictureId } from "../../../types.js" */
/** @import { ShownText } from "../../state/shown_text.mjs" */

const NEIGHBOURS = 3;
const MARGIN = 6; // per cent of the plot, left free at the edges for names

/**
 * The heads closest to a given one, closest first.
 * @param {number[][][]} points `[layer][head]`
 * @param {PictureId} picture
 * @returns {PictureId[]}
 */
function nearest(points, [layer, head]) {
  const [x, y] = points[layer][head];
  const others = headEntries(points).map(({ picture, value }) => ({
    picture,
    far: Math.hypot(value[0] - x, value[1] - y),
  }));
  others.sort((a, b) => a.far - b.far);
  return others
    .filter(({ picture }) => picture[0] !== layer || picture[1] !== head)
    .slice(0, NEIGHBOURS)
    .map(({ picture }) => picture);
}

/** @param {ShownText} store */
export function headMap(store) {
  const caption = make("p", { class: "hs-hint" });
  const neighbours = make("p", { class: "hs-chips" });
  const plot = make("div", { class: "hs-head-map", role: "group", "aria-label": "Map of all heads" });
  const roving = new Roving(plot, () => [...plot.querySelectorAll("button")]);
  const element = make("div", { class: "hs-patching" }, caption, plot, neighbours);

  /** @param {{ points: number[][][], explained: number[], features: string[], axes: number[][] }} map */
  const show = ({ points, explained, features, axes }) => {
    const all = points.flat();
    const range = [0, 1].map((axis) => {
      const values = all.map((point) => point[axis]);
      const [least, most] = [Math.min(...values), Math.max(...values)];
      return { least, size: Math.max(most - least, 1e-9) };
    });
    const dots = points.flatMap((row, layer) =>
      row.map((point, head) => {
        /** @type {PictureId} */
        const picture = [layer, head];
        const isOpen = isSamePicture(picture, store.open);
        const name = pictureName(picture, store.pointer);
        const dot = make("button", { type: "button", title: name }, name);
        const [left, top] = range.map(({ least, size }, axis) => {
          const part = (point[axis] - least) / size;
          return MARGIN + (100 - 2 * MARGIN) * (axis ? 1 - part : part);
        });
        dot.style.left = `${left}%`;
        dot.style.top = `${top}%`;
        dot.style.setProperty("--layer", String(layer / Math.max(points.length - 1, 1)));
        dot.setAttribute("aria-pressed", String(isOpen));
        dot.addEventListener("click", () => store.view.choose(picture));
        return dot;
      }),
    );
    plot.replaceChildren(...dots);
    roving.update(dots.find((dot) => dot.getAttribute("aria-pressed") === "true"));
    const share = explained.map((part) => percent(part));
    const main = axes.map((axis) => {
      const order = axis.map((value, i) => ({ value, i })).sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
      return order
        .slice(0, 3)
        .map(({ value, i }) => `${value < 0 ? "−" : ""}${features[i].replaceAll("_", " ")}`)
        .join(", ");
    });
    caption.textContent =
      "Heads that behave alike in this text lie close together. The axes are the two directions in which their " +
      `measures vary most (principal components). To the right: ${main[0]} (${share[0]} of the variance); up: ` +
      `${main[1]} (${share[1]}).`;
    const [layer, head] = store.open;
    neighbours.hidden = !points[layer]?.[head];
    if (neighbours.hidden) return;
    const chips = nearest(points, store.open).map((picture) =>
      chipButton(pictureName(picture, store.pointer), () => store.view.choose(picture)),
    );
    neighbours.replaceChildren(make("span", {}, `most like ${store.openName}`), ...chips);
  };
  return { element, show };
}
