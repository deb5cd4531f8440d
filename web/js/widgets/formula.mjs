// Formulas laid out with CSS: without a maths font, MathML places subscripts too high and lets roots touch their
// content. Each piece knows how it is read aloud.

/** @typedef {string | Element} Content */

const OPERATORS = new Set("+ − × · / = [ ] , → ∞ < > ≤ ≥ ≈ ; … |".split(" "));
/** @type {WeakMap<Element, string>} */
const spoken = new WeakMap();

/**
 * @param {string} css
 * @param {string} aloud
 * @param {...(Node | string)} children
 */
function piece(css, aloud, ...children) {
  const element = document.createElement("span");
  element.className = css;
  element.append(...children);
  spoken.set(element, aloud);
  return element;
}

/** @param {Content} content */
const aloud = (content) => (typeof content === "string" ? content : (spoken.get(content) ?? content.textContent ?? ""));

/** @param {Content[]} contents */
const read = (contents) => contents.map(aloud).join(" ");

/** An operator, a variable of one letter, or words. @param {Content} content */
function part(content) {
  if (typeof content !== "string") return content;
  if (OPERATORS.has(content)) return piece("hl-operator", content, content);
  if (content === "(" || content === ")") return piece("hl-bracket", content, content);
  return piece(/^[A-Za-zΔσμγβ]$/.test(content) ? "hl-variable" : "hl-name", content, content);
}

/** The pieces of a line; brackets are as tall as their content. @param {Content[]} contents */
function line(contents) {
  const parts = contents.map(part);
  /** @type {number[]} */
  const open = [];
  parts.forEach((element, i) => {
    if (element.textContent === "(" && element.className === "hl-bracket") open.push(i);
    if (element.textContent !== ")" || element.className !== "hl-bracket") return;
    const start = open.pop();
    if (start === undefined) return;
    const isTall = parts.slice(start + 1, i).some((inner) => inner.matches(".hl-fraction, :has(.hl-fraction)"));
    if (isTall) for (const bracket of [parts[start], element]) bracket.classList.add("hl-tall");
  });
  return parts;
}

/** @param {...Content} children */
export const row = (...children) => piece("hl-group", read(children), ...line(children));

/** @param {Content} above @param {Content} below */
export const fraction = (above, below) =>
  piece("hl-fraction", `${aloud(above)} over ${aloud(below)}`, row(above), row(below));

/** @param {...Content} children */
export const root = (...children) =>
  piece("hl-root", `square root of ${read(children)}`, piece("hl-root-sign", "", "√"), row(...children));

/** @param {Content} base @param {Content} below */
export const sub = (base, below) =>
  piece("hl-group", `${aloud(base)} ${aloud(below)}`, part(base), small("sub", below));

/** @param {Content} base @param {Content} above */
export const sup = (base, above) =>
  piece("hl-group", `${aloud(base)} to the ${aloud(above)}`, part(base), small("sup", above));

/** @param {"sub" | "sup"} tag @param {Content} content */
function small(tag, content) {
  const element = document.createElement(tag);
  element.append(part(content));
  return element;
}

/** @param {Content} below */
export const sum = (below) => piece("hl-sum", `sum over ${aloud(below)} of`, piece("hl-sigma", "", "∑"), row(below));

/** Each argument is one line. @param {...Content[]} lines */
export function formula(...lines) {
  const box = document.createElement("div");
  box.className = "hl-formula";
  for (const contents of lines) {
    const element = piece("hl-math", "", ...line(contents));
    element.setAttribute("role", "math");
    element.setAttribute("aria-label", read(contents));
    box.append(element);
  }
  return box;
}
