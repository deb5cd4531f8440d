// A link that opens a lesson for a whole class with the same sentence, model and settings.

import { make } from "../../lib/dom.mjs";
import { copy, REFUSED } from "../../widgets/copy.mjs";
import { smallButton } from "../../widgets/controls.mjs";

/** @import { Settings } from "../rung.js" */
/** @import { Linked } from "../settings.mjs" */
/** @typedef {Linked & { rung: number, sentence?: string }} Fixed what a link fixes */

/**
 * Everything but the model's name stays behind the “#”, which browsers do not send to the server.
 * @param {Fixed & { model: string | null }} fixed
 * @param {string} page the address of the page
 */
export function makeClassLink({ rung, sentence = "", options = {}, choices = {}, shared = {}, model }, page) {
  const link = new URL(page);
  link.search = model ? `?${new URLSearchParams({ model })}` : "";
  const words = new URLSearchParams({ sentence, settings: JSON.stringify({ options, choices, shared }) });
  link.hash = `#learn/${rung}?${words}`;
  return link.href;
}

/** @param {unknown} value @returns {Settings} */
const asSettings = (value) => (value && typeof value === "object" && !Array.isArray(value) ? value : {});

/** The rung of an address, and what a link fixes. @param {string} hash @returns {Fixed | null} null for no rung */
export function readClassLink(hash) {
  const found = /^#learn\/(\d+)(?:\?(.*))?$/.exec(hash);
  if (!found) return null;
  const [rung, words] = [Number(found[1]), new URLSearchParams(found[2] ?? "")];
  const sentence = words.get("sentence");
  if (sentence === null) return { rung };
  try {
    const { options, choices, shared } = asSettings(JSON.parse(words.get("settings") ?? "{}"));
    return { rung, sentence, options: asSettings(options), choices: asSettings(choices), shared: asSettings(shared) };
  } catch {
    return { rung, sentence };
  }
}

/**
 * A button that copies the link.
 * @param {() => { link: string, isCut: boolean }} linkNow the link, and whether a text is missing in it
 */
export function classLinkButton(linkNow) {
  const said = make("span", { class: "hl-hint", role: "status" });
  const button = smallButton("Copy a link for a class", async () => {
    const { link, isCut } = linkNow();
    const rest = isCut ? " Your text is too long for a link: it is not in it." : "";
    const isCopied = await copy(link);
    said.textContent = isCopied
      ? `Copied: it opens this lesson with your sentence, model and settings.${rest}`
      : REFUSED;
  });
  return make("div", { class: "hl-controls" }, button, said);
}
