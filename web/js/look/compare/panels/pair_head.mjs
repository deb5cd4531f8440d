// The open head of both sides and the difference between them, with one choice of how all three are coloured.

import { make } from "../../../lib/dom.mjs";
import { position } from "../../../lib/drawing/scale.mjs";
import { counted, exact } from "../../../lib/numbers.mjs";
import { pictureName } from "../../../lib/words.mjs";
import { rampLine, weightLegend } from "../../panels/legend.mjs";
import { DifferenceMatrix, SideMatrix } from "./pair_matrix.mjs";
import { rowTable } from "./pair_table.mjs";
import { baseName } from "../models.mjs";
import { badge, LETTERS } from "./pair_text.mjs";

/** @import { PictureId, Pointer } from "../../../types.js" */
/** @import { SideName } from "../alignment.mjs" */
/** @import { Pair } from "../pair.mjs" */

/** @param {Pair} pair @param {SideName} side */
export function sideHead(pair, side) {
  const store = pair.stores[side];
  const matrix = new SideMatrix(pair, side);
  const { select, show } = headSelect(pair, side);
  const label = make("span", { class: "hs-same" });
  const top = make("div", { class: "hs-top" }, badge(side), select, label);
  const region = make("section", { class: `hs-panel hs-pair-head hs-side-${side}` }, top, matrix.element);
  region.append(weightLegend(store));
  const name = () => {
    show();
    label.hidden = side === "a" || pair.heads.isUnlinked;
    label.textContent = label.title = label.hidden ? "" : sameWords(pair);
    region.setAttribute("aria-label", `Attention weights ${LETTERS[side]}, ${store.openName}`);
  };
  store.on("state open", name);
  pair.on("view state", name);
  return region;
}

/** How the head of side B goes with that of side A. @param {Pair} pair */
function sameWords({ heads, stores: { a, b } }) {
  if (heads.isStandIn) return `B has no ${a.openName}; shows ${b.openName}`;
  const isOneModel = baseName(a.pointer.model) === baseName(b.pointer.model);
  return isOneModel ? "same head as A" : "same place as in A";
}

/**
 * The list of heads of one side: A's is that of both, unless B has one of its own.
 * @param {Pair} pair
 * @param {SideName} side
 */
function headSelect(pair, side) {
  const store = pair.stores[side];
  const select = make("select", { "aria-label": side === "a" ? "Head of both sides" : "Head of side B" });
  select.addEventListener("change", () => {
    const place = /** @type {PictureId} */ (select.value.split(".").map(Number));
    if (side === "a") pair.heads.choose(place);
    else pair.heads.chooseB(select.value === "same" ? null : place);
  });
  const same = make("option", { value: "same" });
  let shape = "";
  const show = () => {
    const { pointer } = store;
    const isNew = shape !== `${pointer.n_layer}x${pointer.n_head}`;
    shape = `${pointer.n_layer}x${pointer.n_head}`;
    if (isNew) {
      const options = pictures(pointer).map((place) =>
        make("option", { value: place.join(".") }, pictureName(place, pointer)),
      );
      if (side === "b") options.unshift(same);
      select.replaceChildren(...options);
    }
    const { isStandIn } = pair.heads;
    same.textContent = isStandIn ? `${store.openName} (nearest)` : "same as A";
    select.value = side === "b" && isStandIn ? "same" : store.open.join(".");
  };
  return { select, show };
}

/** All pictures of a model, in the order of the grid. @param {Readonly<Pointer>} pointer @returns {PictureId[]} */
function pictures({ n_layer, n_head }) {
  if (!n_layer) return [];
  const places = Array.from({ length: n_layer * (n_head + 2) }, (_, i) => [
    Math.floor(i / (n_head + 2)),
    i % (n_head + 2),
  ]);
  return /** @type {PictureId[]} */ ([...places, [n_layer, n_head]]);
}

/** @param {Pair} pair */
export function differencePanel(pair) {
  const matrix = new DifferenceMatrix(pair);
  const table = rowTable(pair);
  const title = make("h2", {}, "Difference B − A");
  const largest = make("p", { class: "hs-status" });
  const top = make("div", { class: "hs-top" }, title, largest, table.toggle);
  const legend = differenceLegend(pair, matrix);
  const region = make("section", { class: "hs-panel hs-pair-difference", "aria-label": "Difference, B less A" });
  const why = make("p", { class: "hs-apart-words", role: "status" }); // where there is no difference to show
  region.append(top, why, matrix.element, legend.element, table.element);
  const parts = [largest, table.toggle, matrix.element, legend.element];
  pair.on("state tokens view", () => {
    why.textContent = notSubtracted(pair);
    const isNone = why.textContent !== "";
    for (const part of parts) part.hidden = isNone;
    why.hidden = !isNone;
    if (isNone) table.show(false);
  });
  pair.on("weights view", () => {
    const { difference } = pair;
    const isNone = difference.rows > 0 && difference.largest === 0;
    largest.textContent = !difference.rows ? "" : isNone ? "none" : `at most ${exact(difference.largest)}`;
    legend.draw();
  });
  return region;
}

/** Why the open heads are not subtracted; "" where they are. @param {Pair} pair */
function notSubtracted({ isApart, alignment, heads, stores: { a, b } }) {
  if (isApart) {
    const parting = alignment.parting ?? 0;
    const more = alignment.shared > parting ? "hardly more" : "no more";
    return (
      `These are two different texts: they share their first ${counted(parting, "token")} and ${more}, so their ` +
      "heads are shown side by side, not subtracted. Compare the patterns, not the cells."
    );
  }
  if (!heads.isStandIn) return "";
  return (
    `B has no ${a.openName}, so it shows ${b.openName}, a head that need not have anything to do with it. ` +
    "To subtract two heads, choose one for B in its list, or one that both models have."
  );
}

/**
 * The colours of the difference, whose ends are the largest one of the open head.
 * @param {Pair} pair
 * @param {DifferenceMatrix} matrix
 */
function differenceLegend(pair, matrix) {
  const { element: line, draw } = rampLine("difference", () =>
    [-1, -0.25, 0, 0.25, 1].map((part) => {
      const value = part * matrix.limit;
      const text = part ? `${part < 0 ? "−" : "+"}${short(Math.abs(value))}` : "0";
      return [0.5 + 0.5 * Math.sign(part) * position(pair.view.options.scale, Math.abs(part)), text];
    }),
  );
  const words = make("p", { class: "hs-hint hs-legend-words" });
  const unknown = make("span", { class: "hs-swatch hs-swatch-unknown" });
  words.append(
    make("span", {}, badge("a"), " more"),
    make("span", {}, unknown, "no shared token"),
    make("span", {}, "more ", badge("b")),
  );
  const element = make("div", { class: "hs-difference-legend" }, line, words);
  return { element, draw };
}

/** @param {number} value */
const short = (value) =>
  value >= 0.0995 ? value.toFixed(2) : value >= 0.00095 ? value.toFixed(4) : value.toExponential(1);
