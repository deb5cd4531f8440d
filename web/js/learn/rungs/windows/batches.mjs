// Windows put together into batches, of which one is shown as the tensors that a model gets.

import { make, setFlag } from "../../../lib/dom.mjs";
import { counted } from "../../../lib/numbers.mjs";
import { rowOf } from "../../widgets/elements.mjs";

/** @typedef {{ inputs: number[][], targets: number[][] }} Tensors */

export function batchList() {
  const batches = make("p", { class: "hl-spelled", role: "group", "aria-label": "Batches" });
  const status = make("p", { class: "hl-count", role: "status" });
  const tensors = make("div", {});
  let chosen = 0;

  /** @param {string} name @param {number[][]} ids @param {string} css */
  function tensor(name, ids, css) {
    const rows = ids.map((line) => make("tr", {}, ...line.map((id) => make("td", {}, id))));
    const shape = `${name}, shape (${ids.length}, ${ids[0].length})`;
    const table = make("table", { class: `hl-window ${css}`, "aria-label": name }, make("tbody", {}, ...rows));
    const caption = make("figcaption", {}, make("b", {}, shape));
    return make("figure", { class: "hl-figure" }, caption, make("div", { class: "hl-scroll" }, table));
  }

  /** @param {any} data */
  function update(data) {
    const { batches: shown = [], n_batches: n, left_over: left, tensors: all = [] } = data;
    chosen = Math.max(0, Math.min(chosen, shown.length - 1));
    const buttons = shown.map((/** @type {number[]} */ batch, /** @type {number} */ i) => {
      const name = `Batch ${i}: ${batch.length > 1 ? "windows" : "window"} ${batch.join(", ")}`;
      const button = make("button", { type: "button", class: "hl-word", title: name, "aria-label": name });
      button.append(...batch.map((window) => make("b", {}, window)));
      button.addEventListener("click", () => {
        chosen = i;
        show();
      });
      return button;
    });
    const show = () => {
      buttons.forEach((/** @type {Element} */ button, /** @type {number} */ i) =>
        setFlag(button, "aria-pressed", i === chosen),
      );
      const found = /** @type {Tensors | undefined} */ (all[chosen]);
      tensors.replaceChildren(
        ...(found
          ? [rowOf(tensor("Batch inputs", found.inputs, ""), tensor("Batch targets", found.targets, "hl-all-targets"))]
          : []),
      );
    };
    batches.replaceChildren(...buttons);
    if (n > shown.length) batches.append(`… and ${n - shown.length} more`);
    const lost = left
      ? `; ${counted(left, "window")} that would not fill another one ${left > 1 ? "are" : "is"} left out`
      : "";
    const many = `${counted(n, "batch").replace("batchs", "batches")} of windows${lost}`;
    status.textContent = data.problem ? "" : n ? `${many}. Choose one: its ids are the tensors below.` : many;
    show();
  }

  return { elements: [status, batches, tensors], update };
}
