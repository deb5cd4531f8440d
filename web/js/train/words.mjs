// How the Train tab writes numbers.

import { headEntries } from "../lib/heads.mjs";
import { counted, thousands } from "../lib/numbers.mjs";

/** @import { EndEvent, HeadScores, LossEvent, ScoredRole, Size } from "./types.js" */

/** @param {number} bytes */
export const megabytes = (bytes) => (bytes < 1e5 ? `${thousands(bytes)} bytes` : `${(bytes / 1e6).toFixed(1)} MB`);

/** @param {number} n */
export const weights = (n) => `${(n / 1e6).toFixed(2)} million weights`;

/** A duration in everyday words. @param {number} seconds */
export function duration(seconds) {
  if (seconds < 55) return `${Math.max(1, Math.round(seconds))} seconds`;
  const minutes = Math.round(seconds / 60);
  if (minutes === 60) return "an hour";
  return minutes === 1 ? "a minute" : `${minutes} minutes`;
}

/** How long a training goes on. @param {number} seconds */
export function timeLeft(seconds) {
  if (seconds < 1) return "nearly done";
  return seconds < 59.5 ? `${counted(Math.round(seconds), "second")} left` : `${clock(seconds)} minutes left`;
}

/** How long trainings of these sizes learn, for those who wait for them. @param {Pick<Size, "seconds">[]} sizes */
export function durations(sizes) {
  const words = [...new Set(sizes.map(({ seconds }) => duration(seconds)))];
  if (!words.length) return "";
  return words.length === 1 ? `, for about ${words[0]} each` : `, for ${words[0]} to ${words[words.length - 1]} each`;
}

/** What a size costs. @param {Pick<Size, "n_parameters" | "seconds">} size */
export const cost = ({ n_parameters, seconds }) => `${weights(n_parameters)}, about ${duration(seconds)}`;

/** The probability that a loss in nats stands for, with two significant digits: "23%", "0.23%". @param {number} loss */
export function chance(loss) {
  const value = 100 * Math.exp(-loss);
  if (value < 0.01) return "less than 0.01%";
  return `${Number(value.toPrecision(value < 99 ? 2 : 3))}%`;
}

/**
 * What the chart of the losses shows, and on which text each loss is measured.
 * @param {{ watched_tokens: number, validation_tokens: number }} start
 */
export function aboutLosses({ watched_tokens, validation_tokens }) {
  const part =
    watched_tokens < validation_tokens
      ? `${thousands(watched_tokens)} characters, spread evenly over the held-out tenth`
      : `all ${thousands(validation_tokens)} held-out characters`;
  return (
    "The loss is the model’s mean surprise at the right character, in nats: 0.7 for a chance of one half, 2.3 for " +
    "one tenth. The chance in the chart is e to the power of −loss, a geometric mean. Guessing is blind; letter " +
    "pairs are a bigram model, which guesses from the previous character alone. The held-out " +
    `loss and that of the bigram model are measured on ${part}; the dashed curve is that of the batches ` +
    "that the model has just learned from."
  );
}

/** The losses of the weights that are kept: the first of the lowest. @param {LossEvent[]} losses */
export const keptLosses = (losses) =>
  losses.reduce((best, row) => (row.validation_loss < best.validation_loss ? row : best), losses[0]);

/**
 * The result of a training in chances, the same that the chart shows.
 * @param {Pick<EndEvent, "step" | "kept" | "stopped">} end
 * @param {number} loss of the weights that are kept
 * @param {number} bigram that of letter pairs, on the same characters
 */
export function aboutResult({ step, kept, stopped }, loss, bigram) {
  const early = stopped ? "Stopped early. " : "";
  const pairs = `letter pairs alone ${loss > bigram ? "do better, with" : "give it"} ${chance(bigram)}`;
  const which = kept < step ? ` The weights of step ${thousands(kept)}, which did best, are kept.` : "";
  return `${early}In text that is new to it, the right character gets a chance of ${chance(loss)}: ${pairs}.${which}`;
}

/**
 * The same in nats, and why its chances are not quite those of the chart.
 * @param {Pick<EndEvent, "loss" | "bigram">} end
 * @param {{ watched_tokens: number, validation_tokens: number }} start
 */
export function resultInNats({ loss, bigram }, { watched_tokens, validation_tokens }) {
  const nats =
    `On the whole held-out tenth, the kept weights have a loss of ${loss.toFixed(3)} nats per character, and the ` +
    `bigram model of ${bigram.toFixed(3)}`;
  if (watched_tokens >= validation_tokens) return `${nats}.`;
  const chances = `chances of ${chance(loss)} and ${chance(bigram)}`;
  return `${nats}: ${chances}. Those of the chart may differ a little, because it is measured on a part of this text.`;
}

/**
 * Why the held-out loss has risen since it was lowest. Only a model whose training loss falls meanwhile overfits.
 * @param {LossEvent} lowest
 * @param {LossEvent} last
 */
export function aboutRise({ step, validation_loss, train_loss }, last) {
  const kept = `The weights of step ${thousands(step)} are the ones that are kept.`;
  const risen = `The chance on held-out text has fallen since step ${thousands(step)} (${chance(validation_loss)})`;
  if (train_loss === null || last.train_loss === null || last.train_loss >= train_loss) return `${risen}. ${kept}`;
  return (
    `${risen} while that on the training text has risen: the model overfits. It memorises its training text, which ` +
    `does not help with text that it has not seen. The text is too short for a model of this size. ${kept}`
  );
}

/**
 * The head that best fits a role: of those that clearly have it or, if none has it, of all.
 * @param {ScoredRole} role
 * @param {HeadScores} heads
 */
export function bestFor(role, heads) {
  const all = headEntries(heads[role]);
  const clear = all.filter(({ picture: [layer, head] }) => heads.roles[layer][head]?.[0] === role);
  const best = (clear.length ? clear : all).reduce((most, one) => (one.value > most.value ? one : most));
  return { ...best, isClear: clear.length > 0 };
}

/** What a head clearly does. @param {HeadScores["roles"][number][number]} has */
export const roleWords = (has) =>
  has ? `${has[0].replace("_", " ")}, ${has[1].toFixed(2)} on random characters` : "no clear role";

/** What the scores of the roles are. @param {number} clear the least score of a clear role */
export const aboutRoles = (clear) =>
  "The mean attention weight that the best head for each role gives to the role’s target, on random characters " +
  "that are repeated once. A head clearly has the role that it scores highest on, of these three, resting on the " +
  `first character and looking at itself, if the score is at least ${clear}, and three times that of attention ` +
  "spread evenly. In ten measured trainings on the sample text, of 1,358 to 1,721 steps each, a head for the " +
  "previous token had one every time: two characters say more about the next one than the last alone. A training " +
  "on a busy server may end before that, and induction needs far more steps.";

/** Seconds as minutes and seconds: "1:05". @param {number} seconds */
export const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;
