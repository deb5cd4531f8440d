// "Save": the open picture or the whole grid as a file that is made here, in the browser.

import { make } from "./dom.mjs";
import { toJson, toSafetensors } from "./export_data.mjs";
import { toPng, toSvg } from "./export_picture.mjs";
import { menu } from "./menu.mjs";
import { gridPicture } from "./print_grid.mjs";
import { headPicture } from "./print_head.mjs";

export function saveHead(store) {
  const kinds = {
    PNG: () => toPng(headPicture(store)),
    SVG: () => toSvg(headPicture(store)),
    JSON: () => toJson(store),
    safetensors: () => toSafetensors(store),
  };
  const name = () => store.openName.replace("Mean of all heads", "mean").replace(" H", "H").replace(" ", "-");
  return saveMenu(store, "Save this picture", kinds, name, () => store.count > 0);
}

export function saveGrid(store, grid) {
  const kinds = { PNG: () => toPng(gridPicture(store, grid)), SVG: () => toSvg(gridPicture(store, grid)) };
  return saveMenu(store, "Save all heads", kinds, () => "heads", () => store.rows > 0 && grid.shown?.length > 0);
}

function saveMenu(store, label, kinds, name, ready) {
  const save = async (kind) => {
    const file = fileName(store.pointer.model, name(), kind);
    try {
      download(await kinds[kind](), file);
    } catch (error) {
      store.report(`Could not save ${file}: ${error.message}`);
    }
  };
  const made = menu("Save", label, Object.keys(kinds).map((kind) => [kind, () => save(kind)]));
  const show = () => (made.button.disabled = !ready());
  store.on("state tokens weights thumbnails view", show);
  show();
  return made.element;
}

/** Of letters, digits and . _ - only, whatever the checkpoint is called. */
function fileName(model, picture, kind) {
  const safe = `${model}_${picture}`.replaceAll(/[^\w.-]+/g, "-").replace(/^[.-]+/, "");
  return `${safe}.${kind.toLowerCase()}`;
}

function download(blob, name) {
  const href = URL.createObjectURL(blob);
  make("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000); // the browser may still be reading it
}
