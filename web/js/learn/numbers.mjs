// How the numbers of the lessons are written.

const MINUS = "−";

/** Four decimals, as the published outputs have them; whole numbers and very small ones as they are. */
export function number(value, digits = 4) {
  if (Number.isInteger(value)) return String(value).replace("-", MINUS);
  const text = value !== 0 && Math.abs(value) < 0.5 * 10 ** -digits ? value.toExponential(1) : value.toFixed(digits);
  return text.replaceAll("-", MINUS);
}

/** Always with its decimals, so that the numbers of a table stand below each other. */
export const fixed = (value, digits = 4) => {
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", MINUS);
};

/** Seconds as milliseconds. */
export const milliseconds = (seconds) => `${(1000 * seconds).toFixed(2)} ms`;
