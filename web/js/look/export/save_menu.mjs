// "Save": the sentence, the open picture, the whole grid or one step as a file, made in the browser.

import { download } from "../../lib/dom.mjs";
import { stepJson, toHtml, toJson, toSafetensors } from "./data.mjs";
import { menu } from "../../widgets/menu.mjs";
import { effect } from "../../lib/reactive.mjs";

/** @import { Grid } from "../panels/grid.mjs" */
/** @import { StepRows } from "../panels/step_rows.mjs" */
/** @import { ShownText } from "../state/shown_text.mjs" */
/** @import { Picture } from "./print.mjs" */

/** @typedef {Omit<typeof import("./print.mjs"), "toPng" | "toSvg">} Print */
/** @typedef {Record<string, () => Blob | Promise<Blob>>} Kinds makes a file of each kind */

/** @param {readonly number[]} picture @param {{ n_layer: number, n_head: number }} shape of the model */
function pictureFile([layer, column], { n_layer, n_head }) {
  if (layer === n_layer) return "mean";
  return `L${layer}${column < n_head ? `H${column}` : column === n_head ? "-mean" : "-rollout"}`;
}

/**
 * The sentence with its threads, or all that is known of the text.
 * @param {ShownText} store
 * @param {HTMLElement} sentence
 * @param {() => string} said of the next word
 */
export function saveSentence(store, sentence, said) {
  const kinds = {
    ...pictures(async () => {
      const { sentencePicture } = await import("./sentence_picture.mjs");
      return sentencePicture(sentence, said());
    }),
    ...wholeText(store),
  };
  const isReady = () => store.count > 0;
  return saveMenu({ store, text: "Save the sentence", kinds, name: () => "sentence", isReady });
}

/** @param {ShownText} store @param {string} [text] of the button, which says what is saved */
export function saveHead(store, text) {
  const kinds = {
    ...pictures((print) =>
      store.view.options.mode === "lines" ? print.linesPicture(store) : print.headPicture(store),
    ),
    JSON: () => toJson(store),
    safetensors: () => toSafetensors(store),
    ...wholeText(store),
  };
  const name = () => pictureFile(store.open, store.pointer);
  const isReady = () => store.count > 0;
  return saveMenu({ store, label: text ?? "Save this picture", text, kinds, name, isReady });
}

/**
 * @param {ShownText} store
 * @param {Grid} grid
 */
export function saveGrid(store, grid) {
  const kinds = {
    ...pictures((print) => new print.GridPicture(store, grid).picture()),
    ...wholeText(store),
  };
  const isReady = () => store.rows > 0 && grid.shown.length > 0;
  return saveMenu({ store, label: "Save all heads", kinds, name: () => "heads", isReady });
}

/**
 * @param {ShownText} store
 * @param {StepRows} rows
 */
export function saveStep(store, rows) {
  const kinds = {
    ...pictures((print) => print.stepPicture(store, rows)),
    JSON: () => stepJson(store, rows),
  };
  return saveMenu({
    store,
    label: "Save this step",
    kinds,
    name: () => `step-${(rows.query ?? 0) + 1}`,
    isReady: () => rows.query !== null,
  });
}

/**
 * A picture as a file of pixels, or of shapes.
 * @param {(print: Print) => Picture | Promise<Picture>} picture
 * @returns {Kinds}
 */
function pictures(picture) {
  const save = async (/** @type {boolean} */ hasPixels) => {
    const { toPng, toSvg, ...print } = await import("./print.mjs");
    return (hasPixels ? toPng : toSvg)(await picture(print));
  };
  return { PNG: () => save(true), SVG: () => save(false) };
}

/** All that needs no model, as one file; a file offers none. @param {ShownText} store @returns {Kinds} */
const wholeText = (store) => (store.view.isLookOnly ? {} : { HTML: () => toHtml(store) });

/**
 * @param {object} menu
 * @param {ShownText} menu.store
 * @param {string} [menu.text] of its button
 * @param {string} [menu.label] what assistive technology calls it
 * @param {Kinds} menu.kinds
 * @param {() => string} menu.name of the file, after that of the model
 * @param {() => boolean} menu.isReady
 */
function saveMenu({ store, text = "Save", label = text, kinds, name, isReady }) {
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
    text,
    label,
    Object.keys(kinds).map((kind) => [kind, () => save(kind)]),
  );
  effect(() => void (button.disabled = !isReady()));
  return element;
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
