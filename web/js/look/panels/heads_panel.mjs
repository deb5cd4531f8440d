// All heads at once: the whole text of each as a grid of pictures, or the row of one step as strips.

import { make } from "../../lib/dom.mjs";
import { isSamePicture } from "../../lib/heads.mjs";
import { HEADS } from "../../lib/options.mjs";
import { tileLegend } from "./legend.mjs";
import { Grid, gridTable } from "./grid.mjs";
import { StepRows } from "./step_rows.mjs";
import { describePicture, TopHeads } from "./top_heads.mjs";
import { TrainingSteps } from "./training_steps.mjs";
import { viewControls } from "./view_controls.mjs";
import { context2d } from "../../lib/drawing/canvas.mjs";
import { palette } from "../../lib/drawing/palette.mjs";
import { Scale } from "../../lib/drawing/scale.mjs";
import { ThumbnailPainter } from "../../lib/drawing/images.mjs";
import { pictureName } from "../../lib/words.mjs";
import { smallButton, tabs } from "../../widgets/controls.mjs";
import { effect, whenever } from "../../lib/reactive.mjs";

/** @import { ShownText } from "../state/shown_text.mjs" */
/** @import { PictureId } from "../../types.js" */

/**
 * While an answer colours the tiles, its legend replaces the usual one.
 * @param {ShownText} store
 * @param {HTMLElement} usual
 */
function overlayNote(store, usual) {
  const title = make("span", {});
  const back = smallButton("", () => store.answer.toggleOverlay());
  back.textContent = "Back to attention";
  const note = make("p", { class: "hs-hint hs-overlay-note" }, title, " ", back);
  const show = () => {
    const { shownOverlay } = store.answer;
    note.hidden = !shownOverlay;
    usual.hidden = Boolean(shownOverlay);
    title.textContent = `Coloured by ${shownOverlay?.title ?? ""}`;
  };
  effect(show);
  return note;
}

/**
 * @param {ShownText} store
 * @param {(grid: Grid) => HTMLElement[]} gridActions buttons next to the title while the grid is shown
 * @param {(rows: StepRows) => HTMLElement[]} stepActions buttons there while one step is shown
 */
export function headsPanel(store, gridActions, stepActions) {
  const { view } = store;
  const grid = new Grid(store);
  const rows = new StepRows(store);
  const table = gridTable(store, grid);
  const controls = viewControls(store, grid);
  const training = new TrainingSteps(store);
  const meaning = tileLegend(store);
  const answered = overlayNote(store, meaning);
  const scroll = make("div", { class: "hs-scroll" }, grid.element);
  const whole = make(
    "div",
    { class: "hs-whole" },
    training.element,
    meaning,
    answered,
    scroll,
    new TopHeads(store).element,
    headPreview(store, grid),
    table.element,
  );
  const actions = { whole: [...gridActions(grid), table.toggle], step: [...stepActions(rows), rows.table.toggle] };
  const shown = { whole: [whole, ...actions.whole], step: [rows.element, ...actions.step] };
  const choice = tabs("Heads", HEADS, (heads) => view.set({ heads }));
  effect(() => {
    const { heads } = view.options;
    choice.show(heads);
    for (const element of shown.whole) element.hidden = heads !== "whole";
    for (const element of shown.step) element.hidden = heads !== "step";
  });
  const top = make("div", { class: "hs-top" }, make("h2", {}, "Heads"), choice.element, controls.toggle);
  top.append(...actions.whole, ...actions.step);
  return make(
    "section",
    { class: "hs-panel hs-heads", "aria-label": "Heads" },
    top,
    controls.element,
    whole,
    rows.element,
  );
}

/**
 * @param {ShownText} store
 * @param {Grid} grid
 */
function headPreview(store, grid) {
  const canvas = make("canvas", { "aria-hidden": true });
  const [name, text] = [make("b", {}), make("p", { class: "hs-hint" })];
  const element = make("div", { class: "hs-preview", "aria-hidden": true }, canvas, make("div", {}, name, text));
  /** @type {PictureId | null} under the pointer */
  let hovered = null;

  const draw = () => {
    const picture = hovered; // the open head is shown larger anyway
    element.hidden = !picture || isSamePicture(picture, store.open);
    if (!picture || element.hidden) return;
    const painter = new ThumbnailPainter(
      store.data.thumbnails,
      new Scale(store.view.options),
      palette().looks.pixels,
      Infinity,
      store.selection.step ?? store.readable,
    );
    if (!painter.side) return;
    canvas.width = canvas.height = painter.side;
    context2d(canvas).putImageData(painter.paint(store.data.index(picture)), 0, 0);
    name.textContent = pictureName(picture, store.pointer);
    text.textContent = describePicture(store, picture);
  };

  grid.onHover((picture) => {
    hovered = picture;
    draw();
  });
  whenever(() => [store.rows, store.drawing, store.view.options, store.open, store.selection.step], draw);
  return element;
}
