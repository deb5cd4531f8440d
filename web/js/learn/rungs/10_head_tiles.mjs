// All heads of the model as small pictures, to choose one from, and where the chosen one looks.

import { make } from "../../lib/dom.mjs";
import { packedPixels } from "../../lib/drawing/canvas.mjs";
import { onThemeChange, palette } from "../../lib/drawing/palette.mjs";
import { headName } from "../../lib/heads.mjs";
import { fixed } from "../../lib/numbers.mjs";
import { cells } from "../../lib/triangle.mjs";
import { visible } from "../../lib/words.mjs";
import { Chips } from "../widgets/elements.mjs";

/** @import { Stop } from "../widgets/steps.mjs" */

const SHOWN_KEYS = 12; // the tokens that the head looks at most

/** @type {Record<string, { name: string, does: string }>} */
const ROLES = {
  previous_token: { name: "previous token", does: "looks at the previous token" },
  induction: { name: "induction", does: "looks at what followed the same token earlier" },
  first_token: { name: "first token", does: "looks at the first token" },
};

/** @import { Data } from "../data.js" */
/** @typedef {{ role: string, score: number }} Role the name of a role, or "" */

export class HeadTiles {
  /** @type {HTMLButtonElement[][]} */
  #tiles = [];
  /** @type {number[][][]} */
  #thumbnails = [];

  /** @param {(layer: number, head: number) => void} choose */
  constructor(choose) {
    this.choose = choose;
    this.grid = make("div", { class: "hl-tiles", role: "group", "aria-label": "All heads" });
    this.status = make("p", { class: "hl-count", role: "status" });
    this.looks = new Chips();
    this.element = make("div", {}, this.grid, this.status, this.looks.element);
    /** @type {Stop[]} the way of a number through the chosen head */
    this.stops = [];
    onThemeChange(() => this.#paint());
  }

  /** @param {Data["whole-model"]} data */
  update({ thumbnails, roles, layer, head, tokens, query, weights, scores }) {
    const [n_layer, n_head] = [thumbnails.length, thumbnails[0].length];
    if (this.#tiles.length !== n_layer || this.#tiles[0].length !== n_head) this.#build(n_layer, n_head);
    this.#thumbnails = thumbnails;
    this.#tiles.forEach((line, l) =>
      line.forEach((tile, h) => {
        const { role, score } = roles[l][h];
        const name = role ? ROLES[role].name : "";
        const does = role ? `: ${ROLES[role].does}, ${score.toFixed(2)} on average` : "";
        tile.title = `${headName([l, h])}${does}`;
        tile.setAttribute("aria-label", tile.title);
        tile.setAttribute("aria-pressed", String(l === layer && h === head));
        tile.lastElementChild?.replaceChildren(name);
      }),
    );
    const { role, score } = roles[layer][head];
    const does = role
      ? `${ROLES[role].does}, with ${score.toFixed(2)} of its weight on average`
      : `has none of these jobs${whatItDoes(weights, tokens.map(visible))}`;
    this.status.textContent = `The outlined one, ${headName([layer, head])}, ${does}.`;
    this.#paint();
    this.#showLooks([layer, head], tokens.map(visible), { query, scores, weights: weights.slice(cells(query)) });
  }

  /**
   * Where the token that is followed looks.
   * @param {[layer: number, head: number]} place
   * @param {string[]} tokens
   * @param {{ query: number, scores: number[], weights: number[] }} row
   */
  #showLooks(place, tokens, { query, scores, weights }) {
    const byWeight = scores.map((_, key) => key).sort((a, b) => weights[b] - weights[a]);
    const shown = byWeight.slice(0, SHOWN_KEYS).sort((a, b) => a - b);
    const chips = shown.map((key) => {
      return { text: tokens[key], below: `${fixed(scores[key], 2)} → ${fixed(weights[key], 2)}`, known: true };
    });
    const name = headName(place);
    const from = `“${tokens[query]}”`;
    this.looks.show(chips, scores.length, `Where ${from} alone looks: scores / √head_dim → attention weights`);
    const [most] = byWeight;
    const [at, to] = [this.looks.list.children[shown.indexOf(most)], `“${tokens[most]}”`];
    const weight = fixed(weights[most], 2);
    this.stops = [
      { at: this.#tiles[place[0]][place[1]], value: name, words: `In layer ${place[0]}, each head gathers something.` },
      {
        at: at.firstElementChild,
        value: fixed(scores[most], 2),
        words: `In ${name}, the query of ${from} times the key of ${to}, divided by √head_dim: the score.`,
      },
      {
        at: at.lastElementChild,
        value: weight,
        words: `Softmax over all tokens so far: ${weight} of the value of ${to} goes into what the layer adds.`,
      },
    ];
  }

  /** @param {number} n_layer @param {number} n_head */
  #build(n_layer, n_head) {
    this.grid.style.setProperty("--heads", String(n_head));
    this.#tiles = Array.from({ length: n_layer }, (_, l) =>
      Array.from({ length: n_head }, (__, h) => {
        const onclick = () => this.choose(l, h);
        return make("button", { type: "button", onclick }, make("canvas"), make("small"));
      }),
    );
    const rows = this.#tiles.flatMap((line, l) => [make("span", { class: "hl-tile-row" }, `L${l}`), ...line]);
    this.grid.replaceChildren(...rows);
  }

  #paint() {
    const { pixels } = palette().looks;
    this.#tiles.forEach((line, l) =>
      line.forEach((tile, h) => {
        const bytes = this.#thumbnails[l]?.[h];
        const canvas = /** @type {HTMLCanvasElement} */ (tile.firstElementChild);
        if (!bytes) return;
        const side = Math.round(Math.sqrt(bytes.length));
        canvas.width = canvas.height = side;
        const image = new ImageData(side, side);
        const target = packedPixels(image);
        bytes.forEach((byte, i) => (target[i] = pixels[Math.round(byte ** 2 / 255)]));
        canvas.getContext("2d")?.putImageData(image, 0, 0);
      }),
    );
  }
}

/**
 * The clearest look of a head at an earlier token but the first, in words; nothing if there is none.
 * @param {number[]} weights the lower triangle
 * @param {string[]} tokens
 */
export function whatItDoes(weights, tokens) {
  const clearest = { query: 0, key: 0, weight: 0 };
  for (let query = 2; query < tokens.length; query++) {
    for (let key = 1; key < query; key++) {
      const weight = weights[cells(query) + key];
      if (weight > clearest.weight) Object.assign(clearest, { query, key, weight });
    }
  }
  const { query, key, weight } = clearest;
  if (!key) return "";
  return `; most of all, “${tokens[query]}” looks at “${tokens[key]}”, with ${fixed(weight, 2)}`;
}
