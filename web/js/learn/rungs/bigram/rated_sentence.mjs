// The visitor's sentence as a bigram model sees it: how surprising each character is.

import { exact, fixed } from "../../../lib/numbers.mjs";
import { visible } from "../../../lib/words.mjs";
import { named, result } from "../../../widgets/arithmetic.mjs";
import { paragraph } from "../../widgets/elements.mjs";

/** @import { Arithmetic } from "../../../widgets/arithmetic.mjs" */

/**
 * @param {{ text: string, known: boolean, probability: number | null }[]} tokens
 * @param {Arithmetic} arithmetic that shows how a number comes about
 */
export function ratedSentence(tokens, arithmetic) {
  const nats = tokens.flatMap(({ probability: p }) => (p === null ? [] : [-Math.log(p)]));
  const chips = tokens.map(({ text, known, probability: p }, i) => {
    if (p === null) return { text, known, below: "–" };
    const pair = [named(visible(text)), " after ", named(visible(tokens[i - 1].text))];
    const open = () =>
      arithmetic.open(
        paragraph(...pair, `: its probability in the table is ${exact(p)}. Its surprise:`),
        paragraph(`−ln ${exact(p)} `, result(fixed(-Math.log(p)))),
      );
    return { text, known, below: `${fixed(p, 3)} · ${fixed(-Math.log(p), 2)}`, open };
  });
  const sum = nats.reduce((total, value) => total + value, 0);
  const loss = nats.length
    ? ` Their mean, ${fixed(sum)} / ${nats.length} = ${fixed(sum / nats.length)}, is the loss on your sentence.`
    : "";
  const summary =
    "Your sentence as the model sees it: below each character is its probability p after the one before it, and its " +
    `surprise −ln p in nats.${loss} Outlined characters are not in the text it learned from.`;
  return { chips, summary };
}
