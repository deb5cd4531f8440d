// How tokens, pictures and numbers are said.

/** A token where its spaces and line ends must be seen. */
export const visible = (text) =>
  text.replaceAll(" ", "·").replaceAll("\n", "↵").replaceAll("\t", "⇥").replaceAll("\r", "␍") || "∅";

/** The name of a picture of a model with this shape: a head, the mean of a layer or of all, a rollout. */
export function pictureName([layer, column], { n_layer, n_head }) {
  if (layer === n_layer) return "Mean of all heads";
  if (column === n_head) return `L${layer} mean`;
  if (column === n_head + 1) return `L${layer} rollout`;
  return `L${layer} H${column}`;
}

export const counted = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;

/** The weight itself: four decimals, and what is too small for them in powers of ten. */
export function exact(weight) {
  return weight >= 0.001 || weight === 0 ? weight.toFixed(4) : weight.toExponential(2);
}

/** A metric's value with its unit. */
export const measured = (value, { unit }) => (unit ? `${value.toFixed(2)} ${unit}` : value.toFixed(3));

/** One cell in one sentence. */
export function sentence(tokens, query, key, weight) {
  const name = (position) => `“${visible(tokens[position].text)}” at position ${position}`;
  return `${name(query)} (query) looks at ${name(key)} (key): ${exact(weight)}`;
}
