// "Save": the open picture, the whole grid or one step as a file, made in the browser.

import { download } from "../../lib/dom.mjs";
import { stepJson, toHtml, toJson, toSafetensors } from "./data.mjs";
import { gridPicture, headPicture, linesPicture, stepPicture, toPng, toSvg } from "./print.mjs";
import { menu } from "../../widgets/menu.mjs";

/** @import { Grid } from "../panels/grid.mjs" */
/** @import { StepRows } from "../panels/step_rows.mjs" */
/** @import { Store } from "../state/store.mjs" */

/** @typedef {Record<string, () => Blob | Promise<Blob>>} Kinds makes a file of each kind */

/** @param {Store} store */
export function saveHead(store) {
  const picture = () => (store.view.options.mode === "lines" ? linesPicture(store) : headPicture(store));
  const kinds = {
    PNG: () => toPng(picture()),
    SVG: () => toSvg(picture()),
    JSON: () => toJson(store),
    safetensors: () => toSafetensors(store),
    ...wholeText(store),
  };
  const name = () => store.openName.replace("Mean of all heads", "mean").replace(" H", "H").replace(" ", "-");
  const isReady = () => store.count > 0;
  return saveMenu({ store, label: "Save this picture", kinds, name, isReady }).element;
}

/**
 * @param {Store} store
 * @param {Grid} grid
 */
export function saveGrid(store, grid) {
  const kinds = {
    PNG: () => toPng(gridPicture(store, grid)),
    SVG: () => toSvg(gridPicture(store, grid)),
    ...wholeText(store),
  };
  const isReady = () => store.rows > 0 && grid.shown.length > 0;
  return saveMenu({ store, label: "Save all heads", kinds, name: () => "heads", isReady }).element;
}

/**
 * @param {Store} store
 * @param {StepRows} rows
 */
export function saveStep(store, rows) {
  const kinds = {
    PNG: () => toPng(stepPicture(store, rows)),
    SVG: () => toSvg(stepPicture(store, rows)),
    JSON: () => stepJson(store, rows),
  };
  const { element, update } = saveMenu({
    store,
    label: "Save this step",
    kinds,
    name: () => `step-${(rows.query ?? 0) + 1}`,
    isReady: () => rows.query !== null,
  });
  rows.on("shown", update);
  return element;
}

/** All that needs no model, as one file; a file offers none. @param {Store} store @returns {Kinds} */
const wholeText = (store) => (store.view.isLookOnly ? {} : { HTML: () => toHtml(store) });

/** @param {{ store: Store, label: string, kinds: Kinds, name: () => string, isReady: () => boolean }} menu */
function saveMenu({ store, label, kinds, name, isReady }) {
  /** @param {string} kind */
  const save = async (kind) => {
    const file = fileName(store.pointer.model, name(), kind);
    try {
      download(await kinds[kind](), file);
    } catch (error) {
      store.report(`Could not save ${file}: ${/** @type {Error} */ (error).message}`);
    }
  };
  const { element, button } = menu(
    "Save",
    label,
    Object.keys(kinds).map((kind) => [kind, () => save(kind)]),
  );
  const update = () => (button.disabled = !isReady());
  store.on("state tokens weights thumbnails view", update);
  update();
  return { element, update };
}

/**
 * A file name of letters, digits and . _ - only, whatever the checkpoint's name is.
 * @param {string} model
 * @param {string} picture
 * @param {string} kind
 */
function fileName(model, picture, kind) {
  const safe = `${model}_${picture}`.replaceAll(/[^\w.-]+/g, "-").replace(/^[.-]+/, "");
  return `${safe}.${kind.toLowerCase()}`;
}
