// "Show me the arithmetic": every number from one query and key to the logit of the next token.

import { make } from "../../../lib/dom.mjs";
import { exact, fixed, share } from "../../../lib/numbers.mjs";
import { visible } from "../../../lib/words.mjs";
import { Stamp } from "../../../widgets/stamp.mjs";
import { textBody, textProblem } from "../about_text.mjs";
import { askedPrediction, NO_HEAD, openHead, selectSomething } from "./asked.mjs";
import { largestError, ledgerSteps } from "./ledger.mjs";
import { signed } from "./signed_bar.mjs";

/** @import { Ledger } from "./answers.js" */
/** @import { AskContext, BuiltQuestion, Question } from "../question.js" */

const TOLERANCE = 1e-3; // of the logit, which is the largest of the numbers

/** @type {Question} */
export const arithmetic = {
  key: "arithmetic",
  title: "Show me the arithmetic",
  hook: "Every number from one cell to the next token’s probability.",
  explanation:
    "One cell of the open head, step by step: from query and key to the attention weight, and on to the logit " +
    "of the next token. Pin another cell to unfold that one.",
  caution:
    "These numbers say how the model computes this, not why it learned to. Key and value already contain what " +
    "earlier layers put there.",
  defaults: {},
  build,
};

/** @param {AskContext} context @returns {BuiltQuestion} */
function build({ store, conclude }) {
  /** @type {Ledger | null} */
  let shown = null;
  const sentence = make("p", { class: "hs-answer" });
  const steps = make("div", { class: "hs-steps" });
  const open = make("button", { type: "button", class: "hs-small" }, "Open every step");
  open.addEventListener("click", () => {
    for (const details of steps.querySelectorAll("details")) details.open = true;
    for (const more of /** @type {NodeListOf<HTMLElement>} */ (steps.querySelectorAll(".hl-more[aria-expanded=false]")))
      more.click();
  });
  const stamp = new Stamp("the attention weights, the context vector and the logit", true);
  return {
    controls: [],
    element: make("div", { class: "hs-answer-part" }, sentence, stamp.element, make("div", {}, open), steps),
    request() {
      const head = openHead(store);
      if (!head) return NO_HEAD;
      const problem = textProblem(store);
      if (problem) return problem;
      selectSomething(store);
      const { position: query, token } = askedPrediction(store);
      const key = store.locked.at(-1)?.key ?? null;
      return { route: "ledger", body: { ...textBody(store), layer: head[0], head: head[1], query, key, token } };
    },
    /** @param {Ledger} answer */
    draw(answer) {
      const { tokens, layer, head, position, weights, token, part, logit } = answer;
      const [from, to] = position.map((place) => `“${visible(tokens[place].text)}” (position ${place})`);
      const weight = exact(weights[position[1]]);
      sentence.textContent = `In L${layer} H${head}, ${from} looks at ${to} with the weight ${weight}.`;
      const name = `L${layer} H${head}`;
      const [query, key] = position.map((place) => `“${visible(tokens[place].text)}”`);
      conclude(
        `${query} gives ${share(weights[position[1]])} of its attention in ${name} to ${key}. What it takes there ` +
          `adds ${signed(part, 2)} to the logit of “${visible(token.text)}”, which is ${fixed(logit, 2)} in all.`,
      );
      stamp.show(largestError(answer), TOLERANCE);
      if (answer !== shown) steps.replaceChildren(...ledgerSteps(answer));
      shown = answer;
    },
  };
}
