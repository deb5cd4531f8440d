// All heads of the model as small pictures, to choose one from.

import { make } from "../../lib/dom.mjs";
import { packedPixels } from "../../lib/drawing/canvas.mjs";
import { onThemeChange, palette } from "../../lib/drawing/palette.mjs";
import { headName } from "../../lib/heads.mjs";

/** @type {Record<string, { name: string, does: string }>} */
const ROLES = {
  previous_token: { name: "previous token", does: "looks at the previous token" },
  induction: { name: "induction", does: "looks at what followed the same token earlier" },
  first_token: { name: "first token", does: "looks at the first token" },
};

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
    this.element = make("div", {}, this.grid, this.status);
    onThemeChange(() => this.#paint());
  }

  /** @param {{ thumbnails: number[][][], roles: Role[][], layer: number, head: number }} data */
  update({ thumbnails, roles, layer, head }) {
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
    const clear = role
      ? `has a clear role here, ${ROLES[role].name}: it ${ROLES[role].does} (${score.toFixed(2)})`
      : "";
    this.status.textContent = `${headName([layer, head])} ${clear || "has no clear role in this text"}.`;
    this.#paint();
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
