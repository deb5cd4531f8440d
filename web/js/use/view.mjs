// What the examples are filled with: the model, text, head and question that *Look* shows.

import { LatestRequest } from "../lib/latest.mjs";
import { request } from "../lib/http.mjs";
import { chosenModel, viewOfLook } from "../lib/page_events.mjs";
import { promptText } from "../lib/words.mjs";

/** @import { Fields } from "../calls/call.mjs" */
/** @import { LookView } from "../types.js" */

/** @typedef {{ prompt?: string, tokens?: number[] }} Text as a body has it: one of the two */

/**
 * @typedef {object} Shown
 * @property {string} model "" where none is known
 * @property {{ prompt: string | number[], text: string }} written what the text began with
 * @property {Fields} options it is written with
 * @property {Text} read the text up to the word in view
 * @property {string} text the same
 * @property {number[][] | null} mask
 * @property {[layer: number, head: number]} head
 * @property {{ role: string, content: string }[] | null} messages null for a model without a chat template
 * @property {LookView["asked"]} asked the question that was answered last
 * @property {boolean} withKey
 * @property {boolean} withTools whether the server answers MCP clients
 * @property {boolean} withTraining
 */

const ANYTHING = "Once upon a time";

/** Settings with these values are left out, since they change nothing. @type {Fields} */
const NEUTRAL = {
  top_k: 0,
  top_p: 1,
  min_p: 0,
  presence_penalty: 0,
  frequency_penalty: 0,
  repetition_penalty: 1,
};

/** The options of a completion. @param {LookView} view @returns {Fields} */
function optionsOf({ settings, mask, sampling }) {
  const { max_new_tokens: max_tokens = 50, temperature = 0.8, seed = 1 } = /** @type {Fields} */ (settings);
  const rest = Object.entries(NEUTRAL)
    .map(([name, neutral]) => [name, settings[name] ?? neutral])
    .filter(([name, value]) => value !== NEUTRAL[name] || name in sampling);
  return { max_tokens, temperature, ...Object.fromEntries(rest), seed, ...(mask ? { head_mask: mask } : {}) };
}

/** @param {LookView["tokens"]} tokens */
const idsOf = (tokens) => tokens.map(({ id }) => id);

/** Text where the model reads it as these tokens, else the tokens. */
class Prompts {
  #latest = new LatestRequest();
  /** @type {Map<string, Text>} */
  #known = new Map();

  /**
   * @param {LookView} view
   * @param {number} n how many of its tokens
   * @returns {Promise<Text | undefined>} undefined if another one was asked for meanwhile
   */
  async of({ model, tokens, before }, n) {
    const ids = idsOf(tokens.slice(0, n));
    const key = JSON.stringify([model, ids]);
    const known = this.#known.get(key);
    if (known) return known;
    const prompt = promptText({ tokens, pointer: { before } }, n);
    const found = await this.#latest.send(async (signal) => {
      try {
        const answer = await (await request("v1/tokenize", { body: { model, prompt }, signal })).json();
        return String(answer.tokens) === String(ids) ? { prompt } : { tokens: ids };
      } catch (error) {
        if (signal.aborted) throw error;
        return { tokens: ids };
      }
    });
    if (found) this.#known.set(key, found);
    return found ?? undefined;
  }
}

const prompts = new Prompts();

/**
 * @param {Pick<Shown, "withKey" | "withTools" | "withTraining">} server
 * @returns {Promise<Shown | null>} null if this was called again meanwhile
 */
export async function shownNow(server) {
  const view = viewOfLook();
  if (!view?.tokens.length) {
    const model = chosenModel() ?? "";
    const written = { prompt: ANYTHING, text: ANYTHING };
    const options = { max_tokens: 50, temperature: 0.8, seed: 1 };
    const rest = { head: /** @type {[number, number]} */ ([0, 0]), mask: null, messages: null, asked: null };
    return { model, written, options, read: { prompt: ANYTHING }, text: ANYTHING, ...rest, ...server };
  }
  const read = await prompts.of(view, view.n_read);
  if (!read) return null;
  const { model, mask, head, asked, n_prompt, settings, tokens, messages } = view;
  const pointer = { before: view.before };
  const text = promptText({ tokens, pointer }, n_prompt);
  const prompt = settings.prompt === text ? text : idsOf(tokens.slice(0, n_prompt));
  const written = { prompt, text };
  const shownText = promptText({ tokens, pointer }, view.n_read);
  return { model, written, options: optionsOf(view), read, text: shownText, mask, head, messages, asked, ...server };
}
