// The way of one token through a layer, as strips of numbers with what was compared with the model.

import { make } from "../../../lib/dom.mjs";
import { Stamp } from "../../../widgets/stamp.mjs";
import { Strip } from "./strip.mjs";

/** @typedef {{ stage: string, name: string, words: string, error?: string }} Stage */

/** @type {Stage[]} */
export const STAGES = [
  { stage: "x", name: "Residual stream", words: "what the layer is given" },
  { stage: "normed", name: "Layer norm", words: "what attention reads", error: "normed" },
  { stage: "query", name: "Query of the head", words: "what the token looks for", error: "query" },
  { stage: "key", name: "Key of the head", words: "what it is found by", error: "key" },
  { stage: "value", name: "Value of the head", words: "what it gives when it is found", error: "value" },
  { stage: "context", name: "Context vector of the head", words: "attention weights · values" },
  { stage: "heads", name: "All heads side by side", words: "one context vector after the other", error: "heads" },
  { stage: "attended", name: "Output projection", words: "what attention adds", error: "attended" },
  { stage: "middle", name: "Residual stream + attention", words: "the first sum", error: "middle" },
  { stage: "normed_again", name: "Layer norm again", words: "what the MLP reads", error: "normed_again" },
  { stage: "hidden", name: "Hidden numbers of the MLP", words: "four times as many", error: "hidden" },
  { stage: "activated", name: "After GELU", words: "negative ones nearly vanish", error: "activated" },
  { stage: "thought", name: "Output of the MLP", words: "what the MLP adds", error: "thought" },
  { stage: "after", name: "Residual stream after the layer", words: "the second sum", error: "after" },
];

/** The part of the diagram that shows a stage. @type {Record<string, import("../../widgets/diagram.mjs").Part>} */
export const PART_OF = {
  token: "embedding",
  position: "embedding",
  x: "norm",
  normed: "norm",
  query: "attention",
  key: "attention",
  value: "attention",
  context: "attention",
  heads: "attention",
  attended: "attention",
  middle: "add",
  normed_again: "norm_again",
  hidden: "mlp",
  activated: "mlp",
  thought: "mlp",
  after: "add_again",
  last_x: "last_norm",
  last_norm: "last_norm",
  logit: "unembedding",
  probability: "softmax",
};

/** The stages that a stage is made of. @type {Record<string, string[]>} */
export const SOURCES = {
  x: ["token", "position"],
  normed: ["x"],
  query: ["normed"],
  key: ["normed"],
  value: ["normed"],
  context: ["value"],
  heads: ["context"],
  attended: ["heads"],
  middle: ["x", "attended"],
  normed_again: ["middle"],
  hidden: ["normed_again"],
  activated: ["hidden"],
  thought: ["activated"],
  after: ["middle", "thought"],
  last_norm: ["last_x"],
  logit: ["last_norm"],
};

/** @param {(strip: Strip, index: number) => void} choose */
export function stagesOf(choose) {
  const strips = STAGES.map(({ stage, name }) => new Strip(stage, name, choose));
  const stamp = new Stamp(
    "every stage of this layer for every token, against what the model's own modules return",
    true,
  );
  const items = STAGES.map(({ words }, i) => {
    const error = make("small", { class: "hl-stage-error" });
    return { error, element: make("li", {}, strips[i].element, make("p", { class: "hl-stage" }, words, error)) };
  });
  /** @param {any} data */
  function update({ vectors, of_head: head, errors, largest_error: most, head: which, head_dim: size }) {
    STAGES.forEach(({ stage, error }, i) => {
      const values = vectors[stage] ?? head[stage];
      const note = stage === "heads" ? `numbers ${which * size} to ${(which + 1) * size - 1} are this head's` : "";
      strips[i].show(values, note);
      const found = error ? errors[error] : null;
      items[i].error.textContent =
        found === null ? "" : ` · differs from the model by at most ${found.toExponential(1).replace("-", "−")}`;
    });
    stamp.show(Math.max(.../** @type {number[]} */ (Object.values(errors))), most);
  }
  return {
    strips,
    elements: [make("ol", { class: "hl-stages" }, ...items.map(({ element }) => element)), stamp.element],
    update,
  };
}
