// Numbers: clamped, and formatted for people.

/** @import { Token } from "../types.js" */

const MINUS = "−";

/** The end of the colour ramp for surprise. */
export const MAX_SURPRISE = 8; // bits

/**
 * @param {number} value
 * @param {number} least
 * @param {number} most
 */
export const clamp = (value, least, most) => Math.min(Math.max(value, least), most);

/** An attention weight or probability: four decimals; very small ones in scientific notation. @param {number} weight */
export function exact(weight) {
  return weight >= 0.001 || weight === 0 ? weight.toFixed(4) : weight.toExponential(2);
}

let hasThreeDigits = false; // whether that is all that is known of attention weights

/** Attention weights come from half precision. */
export function limitDigits() {
  hasThreeDigits = true;
}

/**
 * An attention weight, with the digits that are known.
 * @param {number} weight
 * @param {(weight: number) => string} [write]
 */
export function weightText(weight, write = exact) {
  return hasThreeDigits && weight >= 0.001 ? weight.toPrecision(3) : (hasThreeDigits ? exact : write)(weight);
}

/** A float32 exactly, in the fewest digits that read back as the same number. @param {number} weight */
export function full(weight) {
  for (let digits = 1; digits < 9; digits++) {
    const value = Number(weight.toPrecision(digits));
    if (Math.fround(value) === Math.fround(weight)) return String(value);
  }
  return String(Number(weight.toPrecision(9)));
}

/**
 * Four decimals; whole numbers without any, very small ones in scientific notation.
 * @param {number} value
 */
export function number(value, digits = 4) {
  if (Number.isInteger(value)) return thousands(value).replace("-", MINUS);
  const text = value !== 0 && Math.abs(value) < 0.5 * 10 ** -digits ? value.toExponential(1) : value.toFixed(digits);
  return text.replaceAll("-", MINUS);
}

/** A fixed number of decimals, so that the numbers of a column line up. @param {number} value */
export const fixed = (value, digits = 4) => {
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", MINUS);
};

/** Four decimals, and at least four significant digits. @param {number} value */
export const significant = (value) =>
  Math.abs(value) >= 0.1 || value === 0 ? fixed(value) : value.toPrecision(4).replaceAll("-", MINUS);

/** A number without its leading zero, for narrow places: ".25", "−.25". @param {string} text */
export const withoutZero = (text) => text.replace(/^(−?)0\./, "$1.");

/**
 * A number with its sign, unless it rounds to 0.
 * @param {number} value
 * @param {(size: number) => string} write formats a number without its sign
 */
export function withSign(value, write) {
  const text = write(Math.abs(value));
  return /[1-9]/.test(text) ? `${value < 0 ? MINUS : "+"}${text}` : text;
}

/** A fixed number of decimals, with the sign. @param {number} value @param {number} [digits] */
export const signed = (value, digits = 2) => withSign(value, (size) => fixed(size, digits));

/** Three decimals, for narrow places; a smaller number is not shown as 0. @param {number} size */
export const brief = (size) => (size > 0 && size < 0.0005 ? "<0.001" : size.toFixed(3));

/** @param {number} seconds */
export const milliseconds = (seconds) => `${(1000 * seconds).toFixed(2)} ms`;

/**
 * A metric's value with its unit.
 * @param {number} value NaN for a rollout of a long text
 * @param {{ unit: string }} metric
 */
export const measured = (value, { unit }) =>
  Number.isNaN(value) ? "computed when opened" : unit ? `${value.toFixed(2)} ${unit}` : brief(value);

const inGroups = new Intl.NumberFormat("en"); // faster than toLocaleString, for numbers that change with each token

/** "1,114,394". @param {number} n */
export const thousands = (n) => inGroups.format(n);

/** "1 head", "1,114,394 tokens". @param {number} n @param {string} noun @param {string} [plural] */
export const counted = (n, noun, plural = `${noun}s`) => `${thousands(n)} ${n === 1 ? noun : plural}`;

/** How surprising a token was, in bits; null if it was not predicted. @param {Pick<Token, "logprob">} token */
export const surprise = ({ logprob }) => (logprob == null ? null : -logprob / Math.LN2);

/** A share, which may be negative, with a fixed number of decimals: "41%", "−3%". @param {number} part */
export const percent = (part, digits = 0) => `${fixed(100 * part, digits)}%`;

/** A fraction as a percentage: "41%", "0.4%". @param {number} part */
export function share(part) {
  if (part && Math.abs(part) < 0.00095) return "under 0.1%";
  return `${(100 * part).toFixed(part && part < 0.0995 ? 1 : 0)}%`;
}

/**
 * What a change in loss does to a probability: "falls from 56% to 17%".
 * @param {number} before
 * @param {number} nats positive if the loss grows
 */
export function probabilityMove(before, nats) {
  const [from, to] = [before, Math.min(before * Math.exp(-nats), 1)].map(share);
  return from === to ? `stays at ${from}` : `${nats > 0 ? "falls" : "rises"} from ${from} to ${to}`;
}

/**
 * What a change in loss means for a probability: "6.5 times less probable", "12% more probable".
 * @param {number} nats positive if the loss grows
 */
export function probabilityChange(nats) {
  const factor = Math.exp(Math.abs(nats));
  if (factor < 1.95) return nats > 0 ? `${share(1 - 1 / factor)} less probable` : `${share(factor - 1)} more probable`;
  if (factor >= 1e4) return nats > 0 ? "over 10,000 times less probable" : "over 10,000 times as probable";
  const times = factor.toFixed(factor < 9.95 ? 1 : 0);
  return nats > 0 ? `${times} times less probable` : `${times} times as probable`;
}

/**
 * Round numbers from `low` to `high` for the ticks of an axis, about `most` of them, and their texts.
 * @param {number} low
 * @param {number} high
 * @param {number} [most]
 */
export function roundTicks(low, high, most = 5) {
  const rough = (high - low || 1) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * /** @type {number} */ ([1, 2, 5, 10].find((factor) => factor * power >= rough * (1 - 1e-9)));
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.floor(high / step + 1e-9) - first + 1;
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return Array.from({ length: count }, (_, i) => {
    const value = (first + i) * step;
    return { value, text: fixed(value, digits) };
  });
}

/** The time of day, "18:36". @param {number} seconds since 1970 */
export const timeOf = (seconds) =>
  new Date(1000 * seconds).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
