// What switching heads off does to the next word: which words to show, and sentences that are true in every case. All
// probabilities are the model's own, with the heads and without them: a text's sampling settings change neither side.

import { mostProbable, softmax } from "./sampling.mjs";
import { headEntries } from "./heads.mjs";
import { counted, share } from "./numbers.mjs";
import { capitalised, spoken } from "./words.mjs";

/** @import { PictureId } from "../types.js" */
/** @import { Floats } from "./sampling.mjs" */

/** A part of a sentence: what is strong is set in bold. @typedef {string | { strong: string }} Part */

/**
 * How a word came into the text; "" for one that is not in it, or where that is not known.
 * @typedef {"given" | "drawn" | "written" | ""} Origin
 */

/**
 * A word, and its probability with the heads and without them.
 * @typedef {{ id: number, text: string, from: number, to: number }} Word
 */

/**
 * What switching heads off does to a word, and the likeliest words with the heads and without them.
 * @typedef {Word & { origin: Origin, likeliest: Word, without: Word }} Effect
 */

/**
 * @param {Floats} before logits with the heads
 * @param {Floats} after logits without them
 * @param {string[]} texts of the vocabulary
 * @param {number | null} [written] the word in the text; the likeliest one where the text ends
 * @param {Origin} [origin]
 * @returns {Effect}
 */
export function effectOn(before, after, texts, written = null, origin = "") {
  const [from, to] = [before, after].map(softmax);
  const [likeliest, without] = [before, after].map((logits) => mostProbable(logits, 1)[0]);
  /** @param {number} id */
  const word = (id) => ({ id, text: texts[id] ?? "", from: from[id], to: to[id] });
  const isWritten = written !== null;
  return {
    ...word(isWritten ? written : likeliest),
    origin: isWritten ? origin : "",
    likeliest: word(likeliest),
    without: word(without),
  };
}

/**
 * How a word of a text came to stand there. A text that is read at a step of the training was not written by the model
 * as it was at that step.
 * @param {object} text
 * @param {string} text.state
 * @param {number} text.n_prompt
 * @param {{ temperature?: unknown }} text.settings
 * @param {{ at: number } | null} text.branch where the visitor chose another word
 * @param {number} position of the word
 * @returns {Origin}
 */
export function originOf({ state, n_prompt, settings: { temperature }, branch }, position) {
  if (state === "snapshot") return "";
  if (position < n_prompt || position === branch?.at) return "given";
  if (typeof temperature !== "number") return "";
  return temperature > 0 ? "drawn" : "written";
}

/**
 * The words to show for both sides: the likeliest of each, the written one, and others that are likely on either side.
 * @param {Floats} from probabilities with the heads
 * @param {Floats} to probabilities without them
 * @param {object} options
 * @param {number} options.count of words, besides the written one
 * @param {number | null} [options.written]
 * @param {Floats} options.by what they are sorted by, the largest first
 * @returns {number[]}
 */
export function comparedIds(from, to, { count, written = null, by }) {
  const larger = from.map((probability, id) => Math.max(probability, to[id]));
  const leading = [from, to].map((probabilities) => mostProbable(probabilities, 1)[0]);
  const ids = [...new Set([...leading, ...mostProbable(larger, count)])].slice(0, Math.max(count, 2));
  if (written !== null && !ids.includes(written)) ids.push(written);
  return ids.sort((a, b) => by[b] - by[a] || a - b);
}

/** "this head", "these 7 heads". @param {number} n */
export const theseHeads = (n) => (n === 1 ? "this head" : `these ${n} heads`);

const ORIGINS = { given: ", which was given,", drawn: ", drawn by chance,", written: "", "": "" };

/**
 * "Without these 7 heads, “kite”, the likeliest word, falls from 95% to 0.2%."
 * @param {Effect} effect
 * @param {number} n heads
 * @param {"word" | "letter"} unit
 * @returns {Part[]}
 */
export function changeWords(effect, n, unit) {
  const { id, from, to, likeliest } = effect;
  const [was, is] = [share(from), share(to)];
  const isLikeliest = id === likeliest.id;
  const which = isLikeliest ? `, the likeliest ${unit},` : ORIGINS[effect.origin];
  const changes =
    was === is
      ? [" stays at ", { strong: is }]
      : [to < from ? " falls from " : " rises from ", { strong: was }, " to ", { strong: is }];
  return [`Without ${theseHeads(n)}, `, name(effect), which, ...changes, "."];
}

/**
 * "Then “new” is the likeliest (31%)."
 * @param {Effect} effect
 * @param {number} n heads
 * @param {"word" | "letter"} unit
 * @returns {Part[]}
 */
export function likeliestWords({ id, likeliest, without }, n, unit) {
  const [first, other] = [likeliest, without].map(name);
  const same = likeliest.id === without.id;
  const then = share(without.to);
  if (likeliest.id === id)
    return same ? [`It stays the likeliest ${unit}.`] : [`Then `, other, ` is the likeliest (${then}).`];
  const them = n === 1 ? "it" : "them";
  const was = share(likeliest.from);
  if (same) return [`The likeliest ${unit} is `, first, ` with ${them} (${was}) and without ${them} (${then}).`];
  const end = without.id === id ? [name(without), " is."] : [other, ` (${then}).`];
  return [`The likeliest ${unit} is `, first, ` with ${them} (${was}), and without ${them} `, ...end];
}

/**
 * What switching heads off does, in short: "Without them the model expects “new”: “kite” falls from 94% to 0.6%."
 * @param {Effect} effect
 * @param {number} n heads
 * @param {"word" | "letter"} unit
 * @returns {Part[]}
 */
export function offWords(effect, n, unit) {
  const { id, from, to, likeliest, without } = effect;
  const [was, is] = [share(from), share(to)];
  const isShort = id === likeliest.id && without.id !== id && to < from && was !== is;
  if (!isShort) return [...changeWords(effect, n, unit), " ", ...likeliestWords(effect, n, unit)];
  const start = `Without ${n === 1 ? "it" : "them"} the model expects `;
  return [start, name(without), ": ", name(effect), " falls from ", { strong: was }, " to ", { strong: is }, "."];
}

/** @param {Word} word @returns {Part} */
const name = ({ text }) => ({ strong: spoken(text) });

// Which heads favour a word.

const MIN_NAMED_SHARE = 1 / 3; // of the largest contribution: heads with a smaller share are not named
const MAX_NAMED_HEADS = 6;

/**
 * The heads that add most to a word, the largest first.
 * @param {number[][]} values [layer][head] what each adds
 * @returns {{ picture: PictureId, value: number }[]}
 */
export function strongestFor(values) {
  const sorted = headEntries(values)
    .filter(({ value }) => value > 0)
    .sort((a, b) => b.value - a.value);
  return sorted.filter(({ value }) => value >= MIN_NAMED_SHARE * sorted[0].value).slice(0, MAX_NAMED_HEADS);
}

const NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];

/** "seven heads", "12 heads". @param {number} n */
export const someHeads = (n) => (NUMBERS[n] ? `${NUMBERS[n]} head${n === 1 ? "" : "s"}` : counted(n, "head"));

/**
 * What a group of heads does for a word.
 * @param {object} group
 * @param {number} group.n heads in it
 * @param {string | null} group.copied the word that all of them look at and copy; null if they do not
 * @param {number[] | null} group.adds what each of them adds; null if that is not known
 * @param {number[] | null} group.all what each head of the model adds
 * @param {string} word the next one
 * @param {"word" | "letter"} unit
 * @returns {Part[]}
 */
export function restWords({ n, copied, adds, all }, word, unit) {
  const next = { strong: spoken(word) };
  const one = n === 1;
  if (!n) return all ? ["No head adds to ", next, ": the rest of the model chooses it."] : [];
  const some = capitalised(all ? `${someHeads(n).replace(/ .*/, "")} of ${counted(all.length, "head")}` : someHeads(n));
  const looks = [`${some} ${one ? "looks" : "look"} back at `, { strong: spoken(copied ?? "") }];
  const copies = copied === null ? [] : [...looks, ` and ${one ? "copies" : "copy"} it.`];
  const sum = (/** @type {number[]} */ numbers) => numbers.reduce((total, value) => total + value, 0);
  const [part, total] = [sum(adds ?? []), sum(all ?? [])];
  if (!adds || !all || part <= 0) return copies;
  const start = copied === null ? [`${some} ${one ? "adds" : "add"} `] : [...copies, one ? " It adds " : " They add "];
  if (part > total) {
    const taken = (part - total) / part; // by the others
    const n_others = all.length - n;
    const others = `. The other ${n_others === 1 ? "one takes" : `${n_others} together take`} away `;
    const much = taken > 1 ? ["more than that"] : [{ strong: share(taken) }, " of that"];
    return [...start, ...(copied === null ? ["most to ", next] : ["to the next ", unit]), others, ...much, "."];
  }
  const amount = { strong: share(part / total) };
  if (copied !== null) return [...start, amount, ` of what all heads add to the next ${unit}.`];
  return [...start, "most to ", next, ": ", amount, " of what all heads add."];
}
