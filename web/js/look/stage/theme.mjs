// Light or dark: as the system, or as the visitor has chosen, which the browser remembers. Others that set the page's
// colours, such as Gradio when it starts, do not change a choice.

import { readStored, writeStored } from "../../widgets/storage.mjs";

const STORED = "headscope-theme"; // storage key of the choice
export const THEMES = { "": "as the system", light: "light", dark: "dark" };

export const chosenTheme = () => readStored(STORED);

/** @param {string} theme of THEMES */
export function chooseTheme(theme) {
  writeStored(STORED, theme);
  show(theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
}

/** @param {string} theme */
function show(theme) {
  const isDark = theme === "dark";
  if (document.body.classList.contains("dark") !== isDark) document.body.classList.toggle("dark", isDark);
}

/** Show the theme that was chosen, from now on. */
export function keepTheme() {
  const keep = () => void (chosenTheme() && show(chosenTheme()));
  new MutationObserver(keep).observe(document.body, { attributes: true, attributeFilter: ["class"] });
  keep();
}
