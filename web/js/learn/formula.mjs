// Formulas as MathML, which browsers set by themselves.

const SPACE = "http://www.w3.org/1998/Math/MathML";
const OPERATORS = new Set("+ − × · / = ( ) [ ] , → ∑ ∞ < > ≤ ; …".split(" "));

function node(tag, ...children) {
  const element = document.createElementNS(SPACE, tag);
  element.append(...children.map(part));
  return element;
}

/** A string becomes what it looks like: an operator, a number, a name, and with spaces in it words. */
function part(content) {
  if (typeof content !== "string") return content;
  if (content.includes(" ")) {
    const words = document.createElementNS(SPACE, "mtext");
    words.textContent = content.replaceAll(" ", "\u00a0");
    return words;
  }
  const tag = OPERATORS.has(content) ? "mo" : /^[\d.]+$/.test(content) ? "mn" : "mi";
  const element = document.createElementNS(SPACE, tag);
  element.textContent = content;
  return element;
}

export const row = (...children) => node("mrow", ...children);
export const fraction = (above, below) => node("mfrac", above, below);
export const root = (...children) => node("msqrt", ...children);
export const sub = (base, below) => node("msub", base, below);
export const sup = (base, above) => node("msup", base, above);
export const sum = (below, above) => (above ? node("munderover", "∑", below, above) : node("munder", "∑", below));

/** Each argument is one line: a list of parts. */
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
