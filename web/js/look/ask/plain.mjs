// Numbers in plain words, for what answers come down to.

/** A share of 1 in per cent: "41 %", "0.4 %". @param {number} part */
export function share(part) {
  const percent = 100 * part;
  if (percent && Math.abs(percent) < 0.095) return "under 0.1 %";
  return `${percent.toFixed(percent && percent < 9.95 ? 1 : 0)} %`;
}

/**
 * What a change of the loss does to a probability: "6.5 times less probable", "12 % more probable".
 * @param {number} nats positive where the loss grows
 */
export function probabilityChange(nats) {
  const factor = Math.exp(Math.abs(nats));
  const word = nats > 0 ? "less" : "more";
  if (factor >= 1.95) {
    const times = factor < 9.95 ? factor.toFixed(1) : factor < 1e4 ? factor.toFixed(0) : "over 10,000";
    return `${times} times ${word} probable`;
  }
  return `${share(nats > 0 ? 1 - 1 / factor : factor - 1)} ${word} probable`;
}

/** "L0 H1", "L0 H1 and L2 H3", "L0 H1, L0 H2 and L2 H3". @param {string[]} names */
export const listed = (names) => [names.slice(0, -1).join(", "), names.at(-1) ?? ""].filter(Boolean).join(" and ");
