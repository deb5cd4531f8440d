// When a table learns its text by heart.

export const MEMORISED =
  "The training loss falls while the held-out loss rises: the text is too short. The table learns the pairs of this " +
  "text by heart, and its held-out tenth has other ones.";
const CLEARLY = 0.05; // nats

/**
 * Whether the model still gets better on what it learns from, and worse on what it does not.
 * @param {number[]} training losses
 * @param {number[]} held losses on the held-out tenth
 */
export function isMemorising(training, held) {
  const [last, heldLast] = [training.at(-1), held.at(-1)];
  if (last === undefined || heldLast === undefined) return false;
  const best = held.reduce((a, b) => Math.min(a, b));
  const then = training[held.indexOf(best)];
  return heldLast > best + CLEARLY && last < then;
}
