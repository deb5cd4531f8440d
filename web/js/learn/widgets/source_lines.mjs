// The code behind a rung, fetched when a visitor opens it.

import { make } from "../../lib/dom.mjs";
import { request } from "../../lib/http.mjs";
import { highlight } from "./highlight.mjs";

/** @param {number} rung */
export function sourceLines(rung) {
  const box = make("div", { class: "hl-sources" });
  const element = make("details", { class: "hl-source" }, make("summary", {}, "The lines that compute this"), box);
  element.addEventListener("toggle", () => element.open && fill(box, rung));
  return element;
}

/** The lines of a rung, without a button that opens them. @param {number} rung */
export function openLines(rung) {
  const box = make("div", { class: "hl-source hl-sources" });
  void fill(box, rung);
  return box;
}

/** @param {HTMLElement} box @param {number} rung */
async function fill(box, rung) {
  if (box.childNodes.length) return;
  try {
    const { sources } = await (await request(`learn/sources/${rung}.json`)).json();
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
