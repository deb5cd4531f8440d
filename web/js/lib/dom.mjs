// Building elements, and the visitor's input devices. Text is inserted as text, never as markup.

/** Screens on which the panels stand below each other, and sheets lie over them. */
export const PHONE = "(max-width: 767px)";

/**
 * An attribute that is true is set without a value; false or null leaves it out. A function becomes a listener of the
 * event named after "on".
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, string | number | boolean | null | undefined | ((event: any) => unknown)>} [attributes]
 * @param {...(Node | string | number)} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, String(value));
  }
  element.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return element;
}

/**
 * An SVG element.
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, string | number>} [attributes]
 * @param {...(Node | string)} children
 * @returns {SVGElementTagNameMap[Tag]}
 */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/**
 * A small button.
 * @param {string | Node} words
 * @param {((event: any) => unknown) | null} [onclick]
 * @param {Parameters<typeof make>[1]} [attributes] a class is added to that of all small buttons
 */
export const smallButton = (words, onclick = null, { class: more, ...attributes } = {}) =>
  make("button", { type: "button", class: more ? `hs-small ${more}` : "hs-small", onclick, ...attributes }, words);

/**
 * A slider. Where code sets its value or its ends, it does so with `setRange`.
 * @param {Parameters<typeof make>[1]} attributes
 */
export function rangeInput(attributes) {
  const range = make("input", { type: "range", ...attributes });
  range.addEventListener("input", () => setRange(range, range.value));
  setRange(range, range.value);
  return range;
}

/**
 * Set the value of a slider, whose track is filled up to there.
 * @param {Pick<HTMLInputElement, "min" | "max" | "value" | "style">} range
 * @param {number | string} value
 * @param {{ min?: number, max?: number }} [ends] that change
 */
export function setRange(range, value, { min = Number(range.min), max = Number(range.max) } = {}) {
  range.min = String(min);
  range.max = String(max);
  range.value = String(value);
  range.style.setProperty("--part", String((Number(range.value) - min) / (max - min || 1)));
}

/**
 * A button that opens a file, and the hidden field behind it.
 * @param {string} label of the field
 * @param {string} accept
 * @param {(file: File) => unknown} use
 */
export function fileButton(label, accept, use) {
  const field = make("input", { type: "file", class: "hs-hidden", accept, tabindex: -1, "aria-label": label });
  field.addEventListener("change", () => {
    const [file] = field.files ?? [];
    field.value = ""; // the same file can be opened again
    if (file) use(file);
  });
  return { button: smallButton("Open a file", () => field.click()), field };
}

/**
 * How to do something: with a mouse, or by touch on devices that cannot hover.
 * @param {string} mouse
 * @param {string} touch
 */
export const mouseOrTouch = (mouse, touch) => (matchMedia("(hover: none)").matches ? touch : mouse);

/**
 * Replace the text of an element if it differs: even setting the same text would cause a new layout.
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Hide or show an element; one that stays as it is is not touched, so that its styles are not recomputed.
 * @param {HTMLElement} element
 * @param {boolean} isHidden
 */
export function setHidden(element, isHidden) {
  if (element.hidden !== isHidden) element.hidden = isHidden;
}

/**
 * Set an attribute that is "true" or "false".
 * @param {Element} element
 * @param {string} name
 * @param {boolean} value
 */
export const setFlag = (element, name, value) => element.setAttribute(name, String(value));

/** Draws in the next frame, once, however often that is requested before it. */
export class NextFrame {
  isDue = false;

  /** @param {() => void} draw */
  constructor(draw) {
    this.draw = draw;
  }

  request() {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      this.draw();
    });
  }
}

/**
 * A row of buttons, one of which is pressed.
 * @template {string} Key
 * @param {string} label
 * @param {Record<Key, string>} names
 * @param {(key: Key) => void} choose
 */
export function tabs(label, names, choose) {
  const entries = /** @type {[Key, string][]} */ (Object.entries(names));
  const buttons = entries.map(([key, name]) => smallButton(name, () => choose(key)));
  /** @param {string} chosen */
  const show = (chosen) => entries.forEach(([key], i) => setFlag(buttons[i], "aria-pressed", key === chosen));
  return { element: make("div", { class: "hs-tabs", role: "group", "aria-label": label }, ...buttons), show };
}

/**
 * A drop-down list.
 * @param {string} label
 * @param {Record<string, string>} names
 * @param {(key: any) => void} choose
 */
export function dropdown(label, names, choose) {
  const options = Object.entries(names).map(([key, name]) => make("option", { value: key }, name));
  const select = make("select", { "aria-label": label }, ...options);
  select.addEventListener("change", () => choose(select.value));
  return select;
}

/** @param {(checked: boolean) => void} choose */
export function checkbox(choose) {
  const input = make("input", { type: "checkbox" });
  input.addEventListener("change", () => choose(input.checked));
  return input;
}

/** The name of a control: its label, else its text. @param {Element} control */
const nameOf = (control) => control.getAttribute("aria-label") ?? control.textContent;

/**
 * A drawing function that replaces buttons without disturbing their user. It waits while one is pressed,
 * since a click is lost if its button is replaced between press and release; and the focus moves to the control with
 * the same name as the one that had it.
 * @param {HTMLElement} element that holds the buttons
 * @param {() => void} draw
 */
export function steadily(element, draw) {
  let isPressed = false;
  let isWaiting = false;
  const redraw = () => {
    isWaiting = isPressed;
    if (isPressed) return;
    const focused = element.contains(document.activeElement) ? document.activeElement : null;
    draw();
    if (!focused || focused.isConnected) return;
    const same = [...element.querySelectorAll(focused.tagName)].find((control) => nameOf(control) === nameOf(focused));
    /** @type {HTMLElement | undefined} */ (same)?.focus({ preventScroll: true });
  };
  const release = () => {
    isPressed = false;
    // The click comes right after the release.
    if (isWaiting) setTimeout(redraw);
  };
  element.addEventListener("pointerdown", ({ target }) => {
    if (!(/** @type {Element} */ (target).closest("button"))) return;
    isPressed = true;
    for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, release, { once: true });
  });
  return redraw;
}

/** Add a style sheet. Resolves when it has loaded or failed to. @param {URL} url */
export function loadStyle(url) {
  const style = make("link", { rel: "stylesheet", href: url.href });
  document.head.append(style);
  return new Promise((resolve) => (style.onload = style.onerror = resolve));
}

/** Save a file. @param {Blob} blob @param {string} name */
export function download(blob, name) {
  const href = URL.createObjectURL(blob);
  make("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000); // the browser may still be reading it
}

/** Whether the visitor prefers reduced motion. */
export const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** @type {Record<string, [down: number, right: number]>} */
export const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

/** Whether a modifier key is held: such combinations belong to the browser. @param {KeyboardEvent} event */
export const hasModifier = ({ altKey, ctrlKey, metaKey }) => altKey || ctrlKey || metaKey;
