// What the other pages are told of the text in view.

import { isHead } from "../lib/heads.mjs";
import { baseName } from "../lib/words.mjs";

/** @import { LookView, ModelInfo } from "../types.js" */
/** @import { Mask } from "../lib/head_masks.mjs" */
/** @import { ShownText } from "./state/shown_text.mjs" */

const EXAMPLE = [{ role: "user", content: "What is attention?" }]; // for a model that has a chat template

/**
 * @param {ShownText} store
 * @param {ModelInfo | undefined} model
 * @param {{ store: ShownText, mask: Mask }} workspace of the text if it is shown alone
 * @returns {LookView | null} null where there is no text
 */
export function lookView(store, model, workspace) {
  const { pointer, tokens, open, selection, answer } = store;
  if (!pointer.run) return null;
  const { predictor } = selection;
  const messages = pointer.chat?.map(({ role, content }) => ({ role, content }));
  return {
    model: baseName(pointer.model),
    tokens: tokens.slice(0, pointer.context_length),
    before: pointer.before,
    n_prompt: pointer.n_prompt,
    n_read: predictor < 0 ? tokens.length : predictor + 1,
    settings: pointer.settings,
    sampling: model?.sampling ?? {},
    mask: workspace.store === store ? workspace.mask : pointer.head_mask,
    head: isHead(open, pointer) ? [open[0], open[1]] : [0, 0],
    messages: messages ?? (model?.chat ? EXAMPLE : null),
    asked: answer.lastAsked ?? null,
  };
}
