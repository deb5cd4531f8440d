// The text in which passages are searched for: that on the page and the prompts that come with Headscope, or another
// one, which is pasted, opened, or written by the model.

import { make } from "../../../lib/dom.mjs";
import { counted, thousands } from "../../../lib/numbers.mjs";
import { request } from "../../../lib/http.mjs";
import { countCharacters, promptText, unitOf } from "../../../lib/words.mjs";
import { vocabulary } from "../../state/run_fetcher.mjs";
import { shippedSets } from "../prompts/set_chooser.mjs";
import { preparedQuestion } from "../../state/prepared.mjs";
import { fileButton, smallButton } from "../../../widgets/controls.mjs";

/** @import { ShownText } from "../../state/shown_text.mjs" */

const MAX_BYTES = 1_000_000; // as the server has it (MAX_LONG_TEXT_BYTES in web/ask/question.py)
const WRITTEN_TOKENS = 1000; // tokens that the model writes

/** @param {number} bytes */
const tooMany = (bytes) => `${thousands(bytes)} bytes; at most 1,000,000 are read.`;

/**
 * @param {ShownText} store
 * @param {() => void} changed is called when another text is chosen
 */
export function textChoice(store, changed) {
  const asked = /** @type {{ text?: string } | undefined} */ (preparedQuestion()?.body);
  let text = asked?.text ?? ""; // of a file: what its answer is about
  let name = text && "the text that was read";
  if (!text) void useShipped();
  const area = make("textarea", { rows: 3, spellcheck: "false", placeholder: "Paste a text of up to 1 MB" });
  const file = fileButton("Text file", "text/*,.txt,.md,.json,.csv,.py", async (chosen) => {
    if (chosen.size <= MAX_BYTES) use(await chosen.text(), chosen.name);
    else status.textContent = `${chosen.name} has ${tooMany(chosen.size)}`;
  });
  const status = make("p", { class: "hs-hint", role: "status" });
  const read = smallButton("Read this", () => use(area.value, "the pasted text"));
  const write = smallButton("Let the model write", () => void writeFirst());
  const here = smallButton("The text on the page", () => use(promptText(store), "the text on the page"));

  /** @param {string} chosen @param {string} from */
  function use(chosen, from) {
    const bytes = new TextEncoder().encode(chosen).length;
    if (!chosen || bytes > MAX_BYTES) {
      status.textContent = chosen ? `The text has ${tooMany(bytes)}` : "";
      return;
    }
    [text, name] = [chosen, from];
    status.textContent = `${name[0].toUpperCase()}${name.slice(1)}: ${counted(countCharacters(chosen), "character")}.`;
    changed();
  }

  /** Something to see at once, and enough of it to conclude something. */
  async function useShipped() {
    const page = promptText(store);
    const prompts = await shippedPrompts(store).catch(() => []);
    if (text) return; // another one was chosen in the meantime
    if (prompts.length)
      use(
        [page, ...prompts].join("\n"),
        `the text on the page and ${prompts.length} short ones that come with Headscope`,
      );
    else use(page, "the text on the page");
  }

  async function writeFirst() {
    write.disabled = true;
    status.textContent = `The model is writing ${thousands(WRITTEN_TOKENS)} tokens.`;
    try {
      use(await writtenBy(store), "what the model wrote");
    } catch (error) {
      status.textContent = `The model could not write: ${/** @type {Error} */ (error).message}`;
    } finally {
      write.disabled = false;
    }
  }

  const buttons = make("span", { class: "hs-tabs-apart" }, read, file.button, write, here, file.field);
  const field = make("label", { class: "hs-field" }, make("span", {}, "text to read"), area);
  return {
    element: make("details", { class: "hs-change" }, make("summary", {}, "Read another text"), field, buttons, status),
    get text() {
      return text;
    },
    get name() {
      return name;
    },
  };
}

/**
 * The prompts that come with Headscope; for a model of characters, those whose characters it knows.
 * @param {ShownText} store
 */
async function shippedPrompts(store) {
  const prompts = (await shippedSets()).flatMap(({ rows }) => rows.map(({ prompt }) => prompt));
  if (unitOf(store) !== "letter") return prompts;
  const known = new Set(await vocabulary(store.pointer.sha256));
  return known.has("\n") ? prompts.filter((prompt) => [...prompt].every((letter) => known.has(letter))) : [];
}

/** A long text that the model writes after the prompt of the text on the page. @param {ShownText} store */
async function writtenBy({ ids, pointer }) {
  const body = {
    model: pointer.model,
    prompt: ids.slice(0, Math.max(pointer.n_prompt, 1)),
    max_tokens: WRITTEN_TOKENS,
    temperature: 0.8,
    context_shift: true,
  };
  const { choices } = await (await request("v1/completions", { body })).json();
  return choices[0].text;
}
