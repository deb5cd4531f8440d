// The source code of a rung, fetched when a visitor opens it.

import { download, make } from "../../lib/dom.mjs";
import { request } from "../../lib/http.mjs";
import { smallButton } from "../../widgets/controls.mjs";

/** @param {string} key of a rung */
export function sourceLines(key) {
  const box = make("div", { class: "hl-sources" });
  const element = make("details", { class: "hl-source" }, make("summary", {}, "The lines that compute this"), box);
  element.addEventListener("toggle", () => element.open && fill(box, key));
  return element;
}

/**
 * A button that saves a rung as a notebook, and what it needs.
 * @param {string} key of a rung
 * @param {() => object} body the sentence and the settings
 * @param {string} needs
 */
export function notebookButton(key, body, needs) {
  const said = make("span", { class: "hl-hint", role: "status" }, needs);
  const button = smallButton("Save as a notebook");
  button.addEventListener("click", async () => {
    try {
      const response = await request(`learn/notebooks/${key}.ipynb`, { body: body() });
      download(await response.blob(), `${key}.ipynb`);
      said.textContent = needs;
    } catch (error) {
      said.textContent = /** @type {Error} */ (error).message;
    }
  });
  return make("div", { class: "hl-controls" }, button, said);
}

/** Source code that is always open. @param {string} name of the code on the server */
export function openLines(name) {
  const box = make("div", { class: "hl-source hl-sources" });
  void fill(box, name);
  return box;
}

/** @param {HTMLElement} box @param {string} name */
async function fill(box, name) {
  if (box.childNodes.length) return;
  try {
    const { sources } = await (await request(`learn/sources/${name}.json`)).json();
    box.replaceChildren(...sources.flatMap(listing));
  } catch (error) {
    box.textContent = `Could not fetch the source: ${/** @type {Error} */ (error).message}`;
  }
}

/** @param {{ name: string, file: string, line: number, code: string }} source */
const listing = ({ name, file, line, code }) => [
  make("h4", {}, name, make("small", {}, ` ${file}, line ${line}`)),
  make("pre", { tabindex: 0, "aria-label": `Source of ${name}` }, make("code", {}, ...highlight(code))),
];

// Python with highlighting: strings and comments are muted, keywords stand out.

const QUIET = String.raw`"""[\s\S]*?"""|"[^"\n]*"|#[^\n]*`;
const KEYWORDS =
  "def class return yield for in if else elif while not and or raise import from is None True False self with as pass";
const PIECES = new RegExp(`(${QUIET})|\\b(${KEYWORDS.replaceAll(" ", "|")})\\b`, "g");

/** @param {string} code */
function highlight(code) {
  /** @type {(string | Node)[]} */
  const parts = [];
  let end = 0;
  for (const found of code.matchAll(PIECES)) {
    parts.push(code.slice(end, found.index), make("span", { class: found[1] ? "hl-quiet" : "hl-key" }, found[0]));
    end = found.index + found[0].length;
  }
  return [...parts, code.slice(end)];
}
