// Building elements, and the visitor's input devices. Text is inserted as text, never as markup.

/** Screens on which the panels stand below each other, and sheets lie over them. */
export const PHONE = "(width < 640px)";

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
 * Replace what an element contains if it differs, for the same reason.
 * @param {Element} element
 * @param {...(Node | string)} children
 */
export function setChildren(element, ...children) {
  const other = /** @type {Element} */ (element.cloneNode());
  other.append(...children);
  if (!other.isEqualNode(element)) element.replaceChildren(...other.childNodes);
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

/**
 * Whether a modifier key is held: such combinations belong to the browser.
 * @param {Pick<MouseEvent, "altKey" | "ctrlKey" | "metaKey">} event
 */
export const hasModifier = ({ altKey, ctrlKey, metaKey }) => altKey || ctrlKey || metaKey;
