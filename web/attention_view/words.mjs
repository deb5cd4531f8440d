// How tokens and numbers are said.

/** A token where its spaces and line ends must be seen. */
export const visible = (text) =>
  text.replaceAll(" ", "·").replaceAll("\n", "↵").replaceAll("\t", "⇥").replaceAll("\r", "␍") || "∅";

export const headName = ([layer, head]) => `L${layer} H${head}`;

export const counted = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;

/** The weight itself: four decimals, and what is too small for them in powers of ten. */
export function exact(weight) {
  return weight >= 0.001 || weight === 0 ? weight.toFixed(4) : weight.toExponential(2);
}

/** One cell in one sentence. */
export function sentence(tokens, query, key, weight) {
  const name = (position) => `“${visible(tokens[position].text)}” at position ${position}`;
  return `${name(query)} (query) looks at ${name(key)} (key): ${exact(weight)}`;
}
