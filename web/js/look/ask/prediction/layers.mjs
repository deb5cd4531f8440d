// "What did each layer think?": the logit lens.

import { make } from "../../../lib/dom.mjs";
import { visible } from "../../../lib/words.mjs";
import { textBody, textProblem } from "../about_text.mjs";
import { askedPrediction, selectSomething } from "./asked.mjs";
import { ReadingsTable, shortName } from "./readings.mjs";

/** @import { LogitLens } from "./answers.js" */
/** @import { AskContext, BuiltQuestion, Question } from "../question.js" */

/** @type {Question} */
export const layers = {
  key: "layers",
  title: "What did each layer think?",
  hook: "What the model would say, if it ended after each layer.",
  explanation:
    "The logit lens: after each layer, the residual stream is read out as if that layer were the last " +
    "(nostalgebraist 2020). Each cell is its most probable next token; a stronger colour is a higher probability.",
  caution:
    "The final layer norm and the output head were trained for the last layer alone, so what they read from an early " +
    "layer need not be what it is about. Where the head is tied to the embeddings, the first readings often repeat " +
    "the token itself.",
  defaults: {},
  build,
};

/**
 * When the prediction at a position is decided, in plain words.
 * @param {LogitLens} answer
 * @param {number} position
 */
function decidedPlain({ tokens, layers: readings, decided }, position) {
  const last = readings.length - 1;
  const when = decided[position];
  const [after, next] = [tokens[position].text, readings[last][position].text].map((text) => `“${visible(text)}”`);
  if (!when) return `After ${after}, ${next} is the most probable token from the embedding on: no layer changes that.`;
  const which = when === last ? `only in ${shortName(when)}, the last layer` : `in ${shortName(when)}`;
  const rest = when === last ? "" : `; the layers after it, up to ${shortName(last)}, do not change that`;
  return `After ${after}, the model settles on ${next} ${which}${rest}.`;
}

/** @param {AskContext} context @returns {BuiltQuestion} */
function build({ store, conclude }) {
  const sentence = make("p", { class: "hs-answer" });
  const table = new ReadingsTable(store);
  return {
    controls: [],
    element: make("div", { class: "hs-answer-part" }, sentence, table.element),
    request() {
      const problem = textProblem(store);
      if (problem) return problem;
      selectSomething(store);
      return { route: "logit-lens", body: { ...textBody(store), top: 8 } };
    },
    /** @param {LogitLens} answer */
    draw(answer) {
      const n_layer = answer.layers.length - 1;
      const late = answer.decided.filter((reading) => reading === n_layer).length;
      const count = answer.tokens.length;
      sentence.textContent = `${late} of ${count} next tokens are decided only in the last layer.`;
      const { position } = askedPrediction(store);
      conclude(decidedPlain(answer, position));
      table.show(answer, position);
    },
  };
}
