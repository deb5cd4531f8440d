// How much each position of the residual stream restores or takes away, by layer. Positions with no effect are omitted.

import { make } from "../../../lib/dom.mjs";
import { palette } from "../../../lib/drawing/palette.mjs";
import { clamp, percent } from "../../../lib/numbers.mjs";
import { visible } from "../../../lib/words.mjs";
import { smallButton } from "../../../widgets/controls.mjs";
import { fillTable, makeCell, makeTable } from "../../../widgets/table.mjs";

/** @import { ShownText } from "../../state/shown_text.mjs" */

const MIN_EFFECT = 0.05; // positions whose effect is smaller in every layer are left out
const MAX_POSITIONS = 12;

/**
 * The positions to show, in their order.
 * @param {number[][]} residual `[n_layer + 1][position]`
 */
function carriers(residual) {
  const most = residual[0].map((_, position) => Math.max(...residual.map((row) => Math.abs(row[position]))));
  const effects = most.map((value, position) => ({ value, position })).filter(({ value }) => value >= MIN_EFFECT);
  effects.sort((a, b) => b.value - a.value);
  return effects
    .slice(0, MAX_POSITIONS)
    .map(({ position }) => position)
    .sort((a, b) => a - b);
}

/** @param {ShownText} store */
export function residualTable(store) {
  const caption = make("p", { class: "hs-hint" });
  const table = makeTable({});
  const element = make(
    "div",
    { class: "hs-residual", tabindex: 0, role: "group", "aria-label": "Residual stream" },
    caption,
    table,
  );

  /**
   * @param {{ residual: number[][], tokens: { text: string }[], corrupted_tokens: { text: string }[] }} answer
   * @param {string} done "restored" or "taken away"
   */
  const show = ({ residual, tokens, corrupted_tokens }, done) => {
    const positions = carriers(residual);
    const left = residual[0].length - positions.length;
    const rest = left ? ` (positions that stay below ${percent(MIN_EFFECT)} are left out)` : "";
    caption.textContent = `Share ${done} by the residual stream at one position, before each layer${rest}`;
    const ramp = palette().change;
    const rows = residual.map((row, layer) => {
      const name = layer === residual.length - 1 ? "at the end" : `before L${layer}`;
      const cells = positions.map((position) => {
        const cell = makeCell(percent(row[position]));
        ramp.paint(cell, Math.round(127.5 + 127.5 * clamp(row[position], -1, 1)));
        return cell;
      });
      return [name, ...cells];
    });
    fillTable(table, { titles: ["", ...positions.map((position) => column(position))], rows });

    /** @param {number} position */
    function column(position) {
      const [one, other] = [tokens[position].text, corrupted_tokens[position].text].map(visible);
      const label = one === other ? one : `${one} / ${other}`;
      const button = smallButton(label, () => store.selection.lock({ query: position }));
      button.title = `Token ${position}: select it`;
      return button;
    }
  };
  return { element, show };
}
