// How a text goes on with its heads as they are and with some of them changed, as one sentence that forks.

import { make, setFlag } from "../../lib/dom.mjs";
import { request } from "../../lib/http.mjs";
import { LatestRequest } from "../../lib/latest.mjs";
import { encodeMask, maskWords } from "../../lib/head_masks.mjs";
import { capitalised, plainly, shownText } from "../../lib/words.mjs";
import { ForkDrawing } from "../../widgets/fork_drawing.mjs";

/** @import { Mask } from "../../lib/head_masks.mjs" */
/** @import { ShownText } from "../state/shown_text.mjs" */
/** @import { BranchWord } from "../../widgets/fork_drawing.mjs" */

const MOST_TOKENS = 8;
const PAUSE = 300; // milliseconds, in case only the pointer passes a word

/**
 * Tokens that a model writes, with their log-probabilities.
 * @typedef {{ tokens: string[], token_logprobs: number[] }} Ending
 */

/** The number of tokens that two endings begin with alike. @param {Ending} a @param {Ending} b */
export function sharedTokens(a, b) {
  const differs = a.tokens.findIndex((token, at) => token !== b.tokens[at]);
  return differs < 0 ? a.tokens.length : differs;
}

export class Endings {
  #request = new LatestRequest();
  #wanted = "";

  /** @param {ShownText} store */
  constructor(store) {
    this.store = store;
    this.drawing = new ForkDrawing({
      a: "How the text goes on as it is",
      b: "How it goes on with these changes",
    });
    this.rule = make("p", { class: "hs-hint" });
    this.element = make("div", { class: "hs-endings", hidden: true }, this.drawing.element, this.rule);
  }

  /**
   * @param {Mask} mask of the changed heads
   * @param {number} position of the last token that is read
   */
  async show(mask, position) {
    const { pointer, ids } = this.store;
    const n = Math.min(MOST_TOKENS, pointer.context_length - position - 1);
    this.element.hidden = n < 1;
    const wanted = [pointer.run, position, encodeMask(mask)].join();
    if (wanted === this.#wanted || n < 1) return;
    this.#wanted = wanted;
    setFlag(this.element, "aria-busy", true);
    const body = {
      model: pointer.model,
      prompt: ids.slice(0, position + 1),
      max_tokens: n,
      temperature: 0,
      logprobs: 1,
    };
    try {
      const written = await this.#request.send(
        (signal) => Promise.all([pointer.head_mask, mask].map((head_mask) => ending({ ...body, head_mask }, signal))),
        PAUSE,
      );
      if (!written) return; // a newer request is under way, or none is wanted any more
      this.#draw(written[0], written[1], mask, position);
    } catch (error) {
      this.drawing.draw("", "", null);
      this.rule.textContent = `Could not write on: ${/** @type {Error} */ (error).message}`;
    }
    setFlag(this.element, "aria-busy", false);
  }

  /** Nothing is changed. */
  hide() {
    this.#request.abort();
    this.#wanted = "";
    this.element.hidden = true;
  }

  /** @param {Ending} a @param {Ending} b @param {Mask} mask @param {number} position */
  #draw(a, b, mask, position) {
    const { pointer, tokens } = this.store;
    const shared = sharedTokens(a, b);
    const words = [...tokens.slice(0, position + 1).map(shownText), ...a.tokens.slice(0, shared)];
    const isSame = shared === a.tokens.length && shared === b.tokens.length;
    const branches = { a: branchWords(a, shared), b: branchWords(b, shared) };
    this.drawing.names.a.textContent = capitalised(maskWords(pointer.head_mask) || "with all heads");
    this.drawing.names.b.textContent = capitalised(maskWords(mask) || "with all heads");
    this.drawing.draw(words.slice(0, -1).join(""), words.at(-1) ?? "", isSame ? null : branches);
    this.rule.textContent = isSame
      ? `With this change and without it, the same ${shared} tokens follow: the likeliest at every step.`
      : "Both sides take the likeliest token at every step.";
  }
}

/** @param {Ending} ending @param {number} from @returns {BranchWord[]} */
function branchWords({ tokens, token_logprobs }, from) {
  if (from === tokens.length) return [{ text: "the end of the text", part: null }];
  return tokens.slice(from).map((token, i) => ({ text: plainly(token), part: Math.exp(token_logprobs[from + i]) }));
}

/** @param {object} body @param {AbortSignal} signal @returns {Promise<Ending>} */
async function ending(body, signal) {
  const { choices } = await (await request("v1/completions", { body, signal })).json();
  return choices[0].logprobs;
}
