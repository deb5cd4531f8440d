// The ranked heads of both sides: the first few in a row, all of them as small tiles, and the controls that mute heads
// on side B.

import { make, setFlag, steadily } from "../../lib/dom.mjs";
import { allHeads, headIndex, isSamePicture } from "../../lib/heads.mjs";
import { counted, fixed, share } from "../../lib/numbers.mjs";
import { baseName, pictureName, stepOf } from "../../lib/words.mjs";
import { TableView } from "../../widgets/table_view.mjs";
import { scaleOf, withScale } from "../../lib/head_masks.mjs";
import { isBusy } from "../state/pointer.mjs";
import { fromFirstChange, whyAlike } from "./finding.mjs";
import { SIDES } from "./pair.mjs";
import { MIN_DIFFERENCE } from "./ranking.mjs";
import { chipButton, dropdown, setPart, smallButton } from "../../widgets/controls.mjs";
import { fillTable, makeTable } from "../../widgets/table.mjs";
import { Roving } from "../../widgets/roving.mjs";
import { whenever } from "../../lib/reactive.mjs";

/** @import { PictureId } from "../../types.js" */
/** @import { Pair } from "./pair.mjs" */
/** @import { Ranking } from "./ranking.mjs" */
/** @import { Texts } from "./texts.mjs" */

const FIRST_HEADS = 4; // heads in the row
const DARK = 0.65; // of the ink of the largest difference: numbers on more of it are light
const NEXT = "Choose a head to see where it looks in both texts.";
const SCALES = { 0: "remove", 0.5: "halve", 2: "double" };

export class RankedHeads {
  /** @type {HTMLButtonElement[]} by layer, then head */
  #tiles = [];
  #shape = "";
  #isMuting = false;

  /** @param {Texts} texts @param {Ranking} ranking */
  constructor(texts, ranking) {
    const { pair } = texts;
    this.texts = texts;
    this.pair = pair;
    this.ranking = ranking;
    this.chips = make("p", { class: "hs-chips", role: "group", "aria-label": "Largest difference first" });
    this.redrawChips = steadily(this.chips, () => this.drawChips());
    this.tiles = make("div", { class: "hs-tiles", role: "group" });
    this.tiles.addEventListener("click", (event) => this.click(event.target));
    this.roving = new Roving(this.tiles, () => this.#tiles, { columns: () => this.shape.n_head });
    this.mute = smallButton("Mute heads in B", () => this.startMuting(!this.#isMuting));
    this.mute.title = "Click tiles to read text B without these heads";
    this.scale = dropdown("What a click does to a head", SCALES, () => {});
    this.restore = smallButton("Restore all", () => this.texts.rereads.scaleHeads(null));
    this.write = smallButton("Write both");
    this.write.title = "From the prompt and with the same seed: A as before, B with these heads scaled";
    this.write.addEventListener("click", () => {
      this.startMuting(false);
      texts.writing.writeScaled(pair.stores.b.pointer.head_mask);
    });
    this.hint = make("p", { class: "hs-hint", role: "status" });
    const table = makeTable({});
    this.table = new TableView("Show differences as a table", () => this.drawTable(table), make("div", {}, table));
    this.table.toggle.addEventListener("click", () => this.table.element.scrollIntoView({ block: "nearest" }));
    this.tools = make("div", { class: "hs-controls" }, this.mute, this.scale, this.restore, this.write);
    const top = make("div", { class: "hs-top" }, make("h2", {}, "What changed in the heads"));
    this.element = make("section", { class: "hs-panel hs-ranked-heads", "aria-label": "Heads by difference" });
    this.element.append(top, this.hint, this.tiles, this.tools, this.chips, this.table.element);
    whenever(
      () => [ranking.heads, ...pair.progress, ...pair.heads.opened],
      () => this.draw(),
    );
  }

  /** @param {boolean} isMuting whether a click on a tile mutes its head in B, instead of opening it */
  startMuting(isMuting) {
    this.#isMuting = isMuting;
    this.draw();
  }

  /** Mute heads, as the visitor has chosen elsewhere on the page. */
  muteHere() {
    this.startMuting(true);
    this.element.scrollIntoView({ block: "nearest" });
    this.#tiles.find(({ tabIndex }) => tabIndex === 0)?.focus({ preventScroll: true });
  }

  draw() {
    const { pair, ranking } = this;
    const { a, b } = pair.stores;
    if (!pair.isComplete) return;
    this.build();
    const { sorted } = ranking;
    const most = Math.max(sorted[0]?.difference ?? 0, MIN_DIFFERENCE);
    const mask = b.pointer.head_mask;
    const unknown = this.pictures.map((each) => ({ picture: each, difference: 0 }));
    for (const { picture, difference } of sorted.length ? sorted : unknown) {
      const tile = this.#tiles[headIndex(picture, this.shape)];
      if (!tile) continue;
      const name = pictureName(picture, a.pointer);
      const isOpen = isSamePicture(picture, a.open);
      const scale = scaleOf(mask, picture);
      const state = scale === 1 ? "" : scale === 0 ? ", removed in B" : `, × ${scale} in B`;
      const label = `${name}, difference ${fixed(difference)}${state}`;
      tile.setAttribute("aria-label", this.#isMuting ? `${scale === 1 ? "Mute" : "Restore"} ${label}` : label);
      tile.title = label;
      setPart(tile, difference / most);
      tile.toggleAttribute("data-dark", difference / most > DARK);
      tile.textContent = scale === 0 ? "×" : scale !== 1 ? String(scale) : difference ? share(difference) : "";
      setFlag(tile, "aria-pressed", this.#isMuting ? scale !== 1 : isOpen);
      tile.classList.toggle("hs-opened", isOpen);
    }
    this.redrawChips();
    this.mute.disabled = pair.isGrowing;
    setFlag(this.mute, "aria-pressed", this.#isMuting);
    this.scale.hidden = !this.#isMuting;
    this.tools.hidden = !this.#isMuting && !mask;
    this.restore.hidden = !mask;
    const isOneModel = a.pointer.sha256 === b.pointer.sha256 && stepOf(a.pointer.model) === null;
    this.write.hidden = !mask || !isOneModel || pair.isGrowing;
    this.hint.textContent = this.words();
    this.table.refresh();
    this.roving.update(this.#tiles[headIndex(a.open, this.shape)]);
    ranking.openMostDifferent();
  }

  words() {
    const { pair, ranking } = this;
    const isAlike = ranking.heads !== null && (ranking.sorted[0]?.difference ?? 0) < MIN_DIFFERENCE;
    const alike = `No head attends differently${whyAlike(pair)}.`;
    if (this.#isMuting) {
      const reading = pair.alignment.divergence === null ? "the same text, read" : "read again";
      return `Click tiles: B is ${reading} with these heads scaled.${isAlike && !pair.isGrowing ? ` ${alike}` : ""}`;
    }
    if (pair.isGrowing) return "Ranked when both texts are written.";
    if (!ranking.heads) return "";
    if (isAlike) return alike;
    const { a, b } = pair.stores;
    if (baseName(a.pointer.model) !== baseName(b.pointer.model)) {
      return "Two different models: heads with the same number may differ. Side by side, you can choose a head of B.";
    }
    return meaning(pair);
  }

  drawChips() {
    const { pair, ranking } = this;
    const { pointer, open } = pair.stores.a;
    const first = ranking.sorted.slice(0, FIRST_HEADS).filter(({ difference }) => difference >= MIN_DIFFERENCE);
    const buttons = first.map(({ picture, difference }) => {
      const choose = () => pair.heads.choose(picture);
      const chip = chipButton(`${pictureName(picture, pointer)} ${share(difference)}`, choose);
      chip.dataset.difference = chip.title = fixed(difference);
      if (isSamePicture(picture, open)) chip.setAttribute("aria-current", "true");
      return chip;
    });
    this.chips.replaceChildren(...buttons);
  }

  /** The layers and heads that both sides have. */
  get shape() {
    const { a, b } = this.pair.stores;
    const [n_layer, n_head] = /** @type {const} */ (["n_layer", "n_head"]).map((name) =>
      Math.min(a.pointer[name], b.pointer[name]),
    );
    return { n_layer, n_head };
  }

  get pictures() {
    return allHeads(this.shape);
  }

  build() {
    const { n_layer, n_head } = this.shape;
    const shape = `${n_layer}x${n_head}`;
    if (shape === this.#shape) return;
    this.#shape = shape;
    this.#tiles = this.pictures.map(() => make("button", { type: "button", class: "hs-tile", tabindex: -1 }));
    const title = (/** @type {(string | Node)[]} */ ...words) => make("span", { class: "hs-label" }, ...words);
    const wide = (/** @type {string} */ word) => make("span", { class: "hs-tiles-word" }, `${word} `);
    const corner = make("span", { class: "hs-tiles-corner" }, "layer·head"); // where the words have no room
    const parts = [title(corner), ...Array.from({ length: n_head }, (_, head) => title(wide("head"), String(head)))];
    for (let layer = 0; layer < n_layer; layer++) {
      parts.push(title(wide("layer"), String(layer)));
      parts.push(...this.#tiles.slice(layer * n_head, (layer + 1) * n_head));
    }
    this.tiles.style.setProperty("--hs-columns", String(n_head));
    this.tiles.setAttribute("aria-label", "Difference of each head: rows are layers, columns heads");
    this.tiles.replaceChildren(...parts);
  }

  /** @param {EventTarget | null} target */
  click(target) {
    const at = this.#tiles.findIndex((tile) => tile === target);
    if (at < 0) return;
    const picture = this.pictures[at];
    if (!this.#isMuting) this.pair.heads.choose(picture);
    // While only the drawing is pending, clicks still count.
    else if (!SIDES.some((side) => isBusy(this.pair.stores[side].pointer.state))) this.toggle(picture);
  }

  /** Scale a head of B, or restore it. @param {PictureId} picture */
  toggle(picture) {
    const { pointer } = this.pair.stores.b;
    const scale = scaleOf(pointer.head_mask, picture) === 1 ? Number(this.scale.value) : 1;
    this.texts.rereads.scaleHeads(withScale(pointer.head_mask, pointer, [picture], scale));
  }

  /** @param {HTMLTableElement} table */
  drawTable(table) {
    const { pointer } = this.pair.stores.a;
    const rows = this.ranking.sorted.map(({ picture, difference }) => [
      pictureName(picture, pointer),
      fixed(difference, 6),
    ]);
    const isScaled = this.pair.stores.b.pointer.head_mask !== null;
    const caption = `Differences of the heads${isScaled ? ", B with heads scaled" : ""}`;
    fillTable(table, { caption, titles: ["head", "difference"], rows });
  }
}

/** A sentence saying what the heads' numbers mean. @param {Pair} pair */
function meaning(pair) {
  const { alignment, firstRow, stores } = pair;
  const { pieces, divergence, shared } = alignment;
  if (firstRow === pieces.length - 1 && divergence === firstRow) return `${fromFirstChange(pair)} ${NEXT}`;
  const isWhole = pieces.length === Math.max(stores.a.length, stores.b.length);
  const tokens = isWhole ? "all tokens" : "the tokens that correspond to each other";
  const where = firstRow ? `${isWhole ? "the tokens" : tokens} after the texts diverge` : tokens;
  const part = `How much of its attention each head moves to other words in B, averaged over ${where}.`;
  if (divergence === null) return `${part} ${NEXT}`;
  const distinguished = `Only the ${counted(shared, "token")} that both texts share are distinguished`;
  return `${part} ${distinguished}; all others are pooled into one. ${NEXT}`;
}
