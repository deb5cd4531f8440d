// How much of the answer the residual stream carries, at each token and after each layer, as a heat map below the words
// of both texts.

import { make } from "../../../lib/dom.mjs";
import { palette } from "../../../lib/drawing/palette.mjs";
import { clamp, percent } from "../../../lib/numbers.mjs";
import { asWritten, visible } from "../../../lib/words.mjs";
import { shortName, TokenGrid } from "../token_grid.mjs";

/** @import { ShownText } from "../../state/shown_text.mjs" */
/** @import { TokenPicture } from "../token_grid.mjs" */

const LEAST_NUMBER = 0.05; // cells with a smaller share have colour but no number

/** @typedef {{ id: number, text: string }[]} Tokens */
/** @typedef {{ residual: number[][], tokens: Tokens, corrupted_tokens: Tokens }} Carried `[n_layer + 1][position]` */

/**
 * The map from the first token at which the texts differ: before it nothing differs.
 * @param {Carried} answer
 * @param {string} done "restored" or "taken away"
 * @returns {TokenPicture}
 */
const mapOf = ({ residual, tokens, corrupted_tokens: changed }, done) => ({
  first: Math.max(
    tokens.findIndex(({ id }, at) => id !== changed[at].id),
    0,
  ),
  end: tokens.length,
  corner: "after",
  title: (position) => {
    const [one, other] = [tokens[position], changed[position]];
    const isSame = one.id === other.id;
    const label = isSame ? `“${visible(one.text)}”` : `“${visible(one.text)}”, changed to “${visible(other.text)}”`;
    const content = [asWritten(one.text), make("span", { class: isSame ? "" : "hs-changed" }, asWritten(other.text))];
    return { content, label: `${label} at position ${position}` };
  },
  rows: residual.map((_, layer) => shortName(layer)),
  cell: (position, layer) => {
    const value = residual[layer][position];
    const where = layer ? `after layer ${layer - 1}` : "before any layer";
    return {
      text: Math.abs(value) < LEAST_NUMBER ? "" : percent(value).replace("%", ""),
      label: `“${visible(tokens[position].text)}” at position ${position}, ${where}: ${percent(value)} ${done}`,
      ramp: palette().change,
      shade: Math.round(127.5 + 127.5 * clamp(value, -1, 1)),
    };
  },
});

/** @param {ShownText} store */
export function residualMap(store) {
  const caption = make("p", { class: "hs-hint" });
  const grid = new TokenGrid("The residual stream at each token, after each layer", "residual", (position) =>
    store.selection.lock({ query: position }),
  );
  const element = make("div", { class: "hs-answer-part hs-residual-map" }, grid.element, caption);

  /** @param {Carried} answer @param {string} done "restored" or "taken away" */
  const show = (answer, done) => {
    caption.textContent =
      `Above, the two texts from the first changed word on. A number is the per cent of their difference that is ` +
      `${done} when what the model has there, after a layer, is exchanged alone.`;
    const map = mapOf(answer, done);
    grid.show(map, map.first, 0);
  };
  return { element, show };
}
