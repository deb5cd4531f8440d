// Which heads feed this one? By their weights, by cutting paths in this text, and by what becomes of its role.

import { make, tabs } from "../../../lib/dom.mjs";
import { textBody, textProblem } from "../about_text.mjs";
import { HeadList } from "../head_list.mjs";
import { readComposition, readCuts, readRole, SPREADS } from "./measures.mjs";
import { trainingTable } from "./training.mjs";

/** @import { Place } from "../../../types.js" */
/** @import { AskContext, BuiltQuestion, Question } from "../question.js" */
/** @import { Way } from "./measures.mjs" */

const BY = { weights: "weights", cut: "cut in this text", role: "cut, its role" };
const WAYS = { q: "queries", k: "keys", v: "values" };
const ROUTES = { every: "every path", direct: "direct path" };
const HELP = {
  weights:
    "Composition scores (Elhage et al. 2021): how much of what the earlier head can write lies in the directions " +
    "that this one reads. The gain of the layer norms is folded in, their subtraction of the mean is not. Arcs are " +
    `drawn from ${SPREADS} spreads above random heads on. MLPs in between are no part of the score.`,
  cut:
    "What the earlier head writes is replaced by its mean over this text, as this head’s queries, keys or values " +
    "alone see it. Every path: also by way of the layers between; direct path: only through the residual stream.",
  role:
    "As before, on random tokens that are repeated once, where an induction head looks at what came after the same " +
    "token. If the score falls without an earlier head, this head depends on it.",
};

/** @type {Question} */
export const feeding = {
  key: "feeding",
  title: "Which heads feed this one?",
  hook: "Which earlier heads it builds on.",
  explanation: "A head reads what heads of earlier layers wrote into the residual stream. Whose, and does it matter?",
  caution:
    "A high score of the weights only says that one head could read the other. Whether it does in a text shows when " +
    "the path is cut; and a cut that changes little may be made up for by other heads.",
  defaults: { by: "weights", way: "k", route: "every" },
  build,
};

/** @param {AskContext} context @returns {BuiltQuestion} */
function build({ store, choices, choose, conclude, overlay }) {
  const by = tabs("Judged by", BY, (value) => choose({ by: value }));
  const ways = tabs("Into its", WAYS, (way) => choose({ way }));
  const routes = tabs("Which path", ROUTES, (route) => choose({ route }));
  const help = make("p", { class: "hs-hint" });
  const sentence = make("p", { class: "hs-answer" });
  const list = new HeadList(store, "Earlier heads by how much they feed the open one");
  const training = trainingTable(store);
  /** What is chosen, each a value that there is. */
  const chosen = () => ({
    by: /** @type {keyof typeof BY} */ (choices.by in BY ? choices.by : "weights"),
    way: /** @type {Way} */ (
      choices.way in WAYS && !(choices.by === "role" && choices.way === "v") ? choices.way : "k"
    ),
    route: /** @type {keyof typeof ROUTES} */ (choices.route in ROUTES ? choices.route : "every"),
  });

  return {
    controls: [by.element, ways.element, routes.element],
    element: make("div", { class: "hs-patching" }, sentence, list.element, training.element, help),
    request() {
      const { by: measure, way, route } = chosen();
      by.show(measure);
      ways.show(way);
      routes.show(route);
      routes.element.hidden = measure === "weights";
      const valueButton = /** @type {HTMLButtonElement} */ (ways.element.lastElementChild);
      valueButton.disabled = measure === "role"; // what a head looks at does not depend on its values
      help.textContent = HELP[measure];
      const { n_layer, n_head, model } = store.pointer;
      const [layer, head] = store.open;
      if (layer >= n_layer || head >= n_head) return "Open a head: means and rollouts are fed by all.";
      if (layer === 0) return "Heads of layer 0 read the embeddings alone. Open a head of a later layer.";
      /** @type {Record<string, string>} */
      const query = measure === "weights" ? { model } : { model, layer: String(layer), head: String(head), way };
      if (measure !== "cut") return { route: measure === "weights" ? "composition" : "role-paths", query };
      return textProblem(store, 2) || { route: "paths", body: { ...textBody(store), layer, head } };
    },
    draw(answer) {
      const { by: measure, way, route } = chosen();
      const open = store.open;
      const role = measure === "role" ? readRole(answer, route) : null;
      const reading = role ?? (measure === "cut" ? readCuts(answer, way, route) : readComposition(answer, open, way));
      const { rows, title, short, long, ramp, ends } = reading;
      sentence.textContent = reading.sentence;
      conclude(reading.plain);
      list.show(reading.column, rows);
      void training.show(role ? { later: open, earlier: rows[0].place, way } : null);
      const most = Math.max(...rows.map(({ value }) => Math.abs(value)), 1e-9);
      /** @type {(number | null)[][]} */
      const values = Array.from({ length: store.pointer.n_layer }, () =>
        Array.from({ length: store.pointer.n_head }, () => null),
      );
      for (const { place, value } of rows) values[place[0]][place[1]] = value;
      const valueOf = (/** @type {Place} */ [layer, head]) => values[layer][head] ?? 0;
      const arcs = reading.arcs.map((from) => ({ from, to: open, part: Math.max(valueOf(from) / most, 0) }));
      overlay({ title, values, most, ramp, short, long, ends, arcs });
    },
  };
}
