// Where Gradio starts the Learn tab.

import { make } from "../lib/dom.mjs";
import { Lessons, rungInHash } from "./lessons.mjs";

// In this order.
const STYLES = ["page", "lesson", "tokens", "charts", "exercises", "model", "diagram", "end"];

/**
 * Gradio calls this when the tab is first opened.
 * @param {HTMLElement} element the element to fill
 */
export async function mount(element) {
  await Promise.all(STYLES.map((name) => loadStyle(new URL(`styles/${name}.css`, import.meta.url))));
  new Lessons(element).open(rungInHash());
}

/** Resolves when the style sheet has loaded or failed to. @param {URL} url */
function loadStyle(url) {
  const style = make("link", { rel: "stylesheet", href: url.href });
  const loaded = new Promise((resolve) => (style.onload = style.onerror = resolve));
  document.head.append(style);
  return loaded;
}
