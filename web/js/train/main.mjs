// Where Gradio starts the Train tab.

import { make } from "../lib/dom.mjs";
import { TrainPage } from "./page.mjs";

const STYLES = ["page", "setup", "watch"];

/**
 * Gradio calls this when the tab is first opened, or when the visitor comes back to a training.
 * @param {HTMLElement} element the element to fill
 */
export async function mount(element) {
  await Promise.all(STYLES.map((name) => loadStyle(new URL(`styles/${name}.css`, import.meta.url))));
  await new TrainPage(element).open();
}

/** Resolves when the style sheet has loaded or failed to. @param {URL} url */
function loadStyle(url) {
  const style = make("link", { rel: "stylesheet", href: url.href });
  const loaded = new Promise((resolve) => (style.onload = style.onerror = resolve));
  document.head.append(style);
  return loaded;
}
