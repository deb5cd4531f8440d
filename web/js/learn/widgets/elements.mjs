// The small elements that every lesson is made of.

import { make } from "../../lib/dom.mjs";

/** @typedef {Node | string} Part */

/** @param {...Part} parts */
export const paragraph = (...parts) => make("p", {}, ...parts);

/** @param {string} text */
export const code = (text) => make("code", {}, text);

/** A term where it is introduced. @param {string} text */
export const term = (text) => make("dfn", {}, text);

/** A way to another page of the tab bar. @param {"look" | "train" | "use"} page @param {string} text */
export const pageLink = (page, text) => make("a", { href: `#${page}`, class: "hl-page-link" }, text);

/** Whether visitors may train GPTs of their own here. */
export const canTrain = () => document.querySelector("#hs-train") !== null;

/** @param {string} text */
export const heading = (text) => make("h3", {}, text);

/** Tables side by side where there is room. @param {...Node} children */
export const rowOf = (...children) => make("div", { class: "hl-row" }, ...children);

/** @param {...Node} children */
export const controls = (...children) => make("div", { class: "hl-controls" }, ...children);

/** Remarks that can be opened, each in one paragraph. @param {string} title @param {...(Part[] | Part)} all */
export function remarks(title, ...all) {
  const items = all.map((remark) => make("li", {}, ...(Array.isArray(remark) ? remark : [remark])));
  return make("details", { class: "hl-remarks" }, make("summary", {}, title), make("ul", {}, ...items));
}
