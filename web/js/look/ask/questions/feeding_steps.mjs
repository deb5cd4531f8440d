// A link between two heads over the training steps: the score with and without it.

import { make } from "../../../lib/dom.mjs";
import { headName } from "../../../lib/heads.mjs";
import { request } from "../../../lib/http.mjs";
import { fixed } from "../../../lib/numbers.mjs";
import { baseName } from "../../../lib/words.mjs";
import { askServer } from "../../state/ask_server.mjs";
import { smallButton } from "../../../widgets/controls.mjs";
import { fillTable, makeRow, makeTable } from "../../../widgets/table.mjs";

/** @import { RolePathsAnswer } from "../../../lens.js" */
/** @import { PictureId } from "../../../types.js" */
/** @import { Store } from "../../state/store.mjs" */

/** @typedef {"previous_token" | "duplicate_token" | "induction"} Role */

/** The roles whose scores are measured with paths cut. */
export const ROLES = { previous_token: "previous-token", duplicate_token: "duplicate-token", induction: "induction" };

/** The role with the highest score. @param {Pick<RolePathsAnswer, "plain">} answer @returns {Role} */
export const bestRole = ({ plain }) =>
  /** @type {Role[]} */ (Object.keys(ROLES)).reduce((best, role) => (plain[role] > plain[best] ? role : best));

/** @type {Map<string, number[]>} the training steps whose weights were kept, by model */
const known = new Map();

/** The training steps that can be asked about; a failed request is not remembered. @param {string} model */
export async function stepsOf(model) {
  const cached = known.get(model);
  if (cached) return cached;
  const response = await request(`look/steps/${encodeURIComponent(model)}`);
  /** @type {{ steps: number[] }} */
  const { steps } = await response.json();
  known.set(model, steps);
  return steps;
}

/** @param {Store} store */
export function trainingTable(store) {
  /** @type {AbortController | null} */
  let controller = null;
  const button = smallButton("");
  const progress = make("span", { class: "hs-hint", role: "status" });
  const table = makeTable({}, { hidden: true });
  const element = make("div", { class: "hs-residual", hidden: true }, button, " ", progress, table);
  /** @type {{ model: string, later: PictureId, earlier: PictureId, way: string } | null} */
  let link = null;
  let shown = "";
  button.addEventListener("click", () => (controller ? stop() : void measure()));

  function stop() {
    controller?.abort();
    controller = null;
    label();
  }

  function label() {
    button.textContent = controller ? "Stop" : "Measure at every training step";
    if (!controller) progress.textContent = "";
  }

  /** The answer of one step. @param {string} model @param {AbortSignal} signal */
  function ask(model, signal) {
    const { later, way } = /** @type {NonNullable<typeof link>} */ (link);
    const query = { model, layer: String(later[0]), head: String(later[1]), way };
    return askServer({ route: "role-paths", query }, { signal });
  }

  async function measure() {
    if (!link) return;
    const { signal } = (controller = new AbortController());
    const { model, earlier } = link;
    label();
    fillTable(table, { titles: ["step", "score", `without ${headName(earlier)}`, "only its direct path cut"] });
    try {
      const steps = await stepsOf(model);
      const last = await ask(model, signal);
      const role = bestRole(last);
      table.hidden = false;
      for (const [i, step] of steps.entries()) {
        progress.textContent = `${i} of ${steps.length} steps`;
        const answer = await ask(`${model}@${step}`, signal);
        const [layer, column] = earlier;
        const scores = [answer.plain[role], answer.every[role][layer][column], answer.direct[role][layer][column]];
        const row = makeRow([step.toLocaleString("en"), ...scores.map((score) => fixed(score, 3))]);
        table.tBodies[0].append(row);
      }
      stop();
    } catch (error) {
      if (signal.aborted) return;
      stop();
      progress.textContent = /** @type {Error} */ (error).message;
    }
  }

  /**
   * Offer to measure the link over the training steps, if the model has kept any.
   * @param {{ later: PictureId, earlier: PictureId, way: string } | null} next
   */
  const show = async (next) => {
    const model = baseName(store.pointer.model);
    const key = JSON.stringify([model, next]);
    if (key === shown) return;
    shown = key;
    stop();
    link = next && { ...next, model };
    table.hidden = element.hidden = true;
    if (!next) return;
    try {
      const steps = await stepsOf(model);
      if (key === shown) element.hidden = !steps.length;
    } catch {
      if (key === shown) shown = ""; // the next answer asks again
    }
  };
  label();
  return { element, show };
}
