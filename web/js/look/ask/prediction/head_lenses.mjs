// "Which tokens does this head use?": four measures of one head, how well they agree, and the head as a whole.

import { make } from "../../../lib/dom.mjs";
import { exact, fixed } from "../../../lib/numbers.mjs";
import { visible } from "../../../lib/words.mjs";
import { textBody, textProblem } from "../about_text.mjs";
import { agreement, agreementPlain, correlation } from "./agreement.mjs";
import { askedPrediction, NO_HEAD, openHead, selectSomething } from "./asked.mjs";
import { KeysTable, MEASURES, NAMES } from "./keys_table.mjs";
import { signed } from "./signed_bar.mjs";

/** @import { HeadLenses } from "./answers.js" */
/** @import { AskContext, BuiltQuestion, Question } from "../question.js" */

/** @type {Question} */
export const headLenses = {
  key: "head",
  title: "Which tokens does this head use?",
  hook: "Where it looks, and whether that makes a difference.",
  explanation:
    "Four measures of what the open head takes from each token: where it looks, how much it moves, what that adds to " +
    "the next token’s logit, and what happens when that one edge is cut.",
  caution:
    "Attention is not explanation: a large weight may move next to nothing. Cutting an edge is measured at this " +
    "position only, and several edges cut together may do more, or less, than one by one.",
  defaults: {},
  build,
};

/** @param {AskContext} context @returns {BuiltQuestion} */
function build({ store, conclude }) {
  /** @type {HeadLenses | null} */
  let shown = null;
  const sentence = make("p", { class: "hs-answer" });
  const verdict = make("p", { class: "hs-answer" });
  const whole = make("p", { class: "hs-hint" });
  const keys = new KeysTable(store);
  const onclick = () => store.view.set({ ask: "arithmetic", askWith: "" });
  const next = make("button", { type: "button", class: "hs-small", onclick });
  keys.buttons.append(next);
  const correlations = make("div", { class: "hs-answer-scroll" });
  const rule = "A weight and a norm have no sign, so beside them the size of the other two counts.";
  const agreeing = make("details", {}, make("summary", {}, "How well the measures agree"), correlations);
  agreeing.append(make("p", { class: "hs-hint" }, rule));
  return {
    controls: [],
    element: make("div", { class: "hs-answer-part" }, sentence, verdict, keys.element, whole, agreeing),
    request() {
      const head = openHead(store);
      if (!head) return NO_HEAD;
      const problem = textProblem(store);
      if (problem) return problem;
      selectSomething(store);
      const { position, token } = askedPrediction(store);
      return { route: "head", body: { ...textBody(store), layer: head[0], head: head[1], position, token } };
    },
    /** @param {HeadLenses} answer */
    draw(answer) {
      conclude(agreementPlain(answer));
      if (answer !== shown) {
        shown = answer;
        const { tokens, position, layer, head, token, probability, without_head } = answer;
        sentence.textContent =
          `L${layer} H${head} at “${visible(tokens[position].text)}” (position ${position}), where ` +
          `“${visible(token.text)}” has probability ${exact(probability)}.`;
        verdict.textContent = agreement(answer);
        keys.show(answer);
        correlations.replaceChildren(correlationTable(answer));
        const text = without_head.text_loss_change;
        const rest = text === null ? "" : `, and that of the whole text by ${signed(text, 4)} per token`;
        const change = `${signed(without_head.loss_change, 3)} nats${rest}`;
        const length = `The vector that the whole head adds here has the length ${fixed(answer.sums.norm, 3)}.`;
        whole.textContent = `${length} Removing the head everywhere changes the loss of this token by ${change}.`;
      }
      const pinned = store.locked.at(-1)?.key ?? null;
      const key = pinned === null ? "its strongest key" : `“${visible(answer.tokens[pinned].text)}”`;
      next.textContent = `Show the arithmetic behind ${key}`;
      keys.mark(store.focus?.query === answer.position ? store.focus.key : null);
    },
  };
}

/**
 * How well the measures agree, pair by pair.
 * @param {HeadLenses} answer
 */
function correlationTable(answer) {
  const columns = NAMES.slice(1);
  const rows = NAMES.slice(0, -1).map((one, i) => {
    const cells = columns.map((other, j) => {
      const value = j >= i ? correlation(answer, one, other) : null;
      return make("td", {}, j < i ? "" : value === null ? "–" : signed(value));
    });
    return make("tr", {}, make("th", { scope: "row" }, MEASURES[one].title), ...cells);
  });
  const titles = columns.map((name) => make("th", { scope: "col" }, MEASURES[name].title));
  const table = make("table", { class: "hs-answer-table", "data-table": "correlations" });
  table.append(
    make("caption", {}, "Spearman’s rank correlation over the keys"),
    make("thead", {}, make("tr", {}, make("td", {}), ...titles)),
    make("tbody", {}, ...rows),
  );
  return table;
}
