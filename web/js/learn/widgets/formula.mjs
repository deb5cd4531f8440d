// Formulas as MathML, which browsers lay out by themselves.

/** @typedef {string | Element} Content */

const SPACE = "http://www.w3.org/1998/Math/MathML";
const OPERATORS = new Set("+ − × · / = ( ) [ ] , → ∑ ∞ < > ≤ ; …".split(" "));

/**
 * @param {string} tag
 * @param {...Content} children
 */
function node(tag, ...children) {
  const element = document.createElementNS(SPACE, tag);
  element.append(...children.map(part));
  return element;
}

/**
 * A string becomes what it looks like: an operator, a number, a name or, with spaces in it, words.
 * @param {Content} content
 */
function part(content) {
  if (typeof content !== "string") return content;
  if (content.includes(" ")) return leaf("mtext", content.replaceAll(" ", "\u00a0"));
  return leaf(OPERATORS.has(content) ? "mo" : /^[\d.]+$/.test(content) ? "mn" : "mi", content);
}

/**
 * @param {string} tag
 * @param {string} text
 */
function leaf(tag, text) {
  const element = document.createElementNS(SPACE, tag);
  element.textContent = text;
  return element;
}

/** @param {...Content} children */
export const row = (...children) => node("mrow", ...children);

/** @param {Content} above @param {Content} below */
export const fraction = (above, below) => node("mfrac", above, below);

/** @param {...Content} children */
export const root = (...children) => node("msqrt", ...children);

/** @param {Content} base @param {Content} below */
export const sub = (base, below) => node("msub", base, below);

/** @param {Content} base @param {Content} above */
export const sup = (base, above) => node("msup", base, above);

/** @param {Content} below */
export const sum = (below) => node("munder", "∑", below);

/** Each argument is one line. @param {...Content[]} lines */
export function formula(...lines) {
  const box = document.createElement("div");
  box.className = "hl-formula";
  for (const line of lines) {
    const math = node("math", ...line);
    math.setAttribute("display", "block");
    box.append(math);
  }
  return box;
}
