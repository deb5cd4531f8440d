// A link between two heads over the training steps: the score with and without it.

import { make } from "../../../lib/dom.mjs";
import { spokenHead } from "../../../lib/heads.mjs";
import { fixed, thousands } from "../../../lib/numbers.mjs";
import { onEnd } from "../../../lib/reactive.mjs";
import { baseName } from "../../../lib/words.mjs";
import { askServer } from "../../state/ask_server.mjs";
import { trainingOf } from "../../state/snapshots.mjs";
import { smallButton } from "../../../widgets/controls.mjs";
import { fillTable, makeRow, makeTable } from "../../../widgets/table.mjs";

/** @import { RolePathsAnswer } from "../../../lens.js" */
/** @import { PictureId } from "../../../types.js" */
/** @import { ShownText } from "../../state/shown_text.mjs" */

/** @typedef {"previous_token" | "duplicate_token" | "induction"} Role */

/** The roles whose scores are measured with paths cut. */
export const ROLES = { previous_token: "previous-token", duplicate_token: "duplicate-token", induction: "induction" };

/** The role with the highest score. @param {Pick<RolePathsAnswer, "plain">} answer @returns {Role} */
export const bestRole = ({ plain }) =>
  /** @type {Role[]} */ (Object.keys(ROLES)).reduce((best, role) => (plain[role] > plain[best] ? role : best));

/** @typedef {{ model: string, later: PictureId, earlier: PictureId, way: string }} Link */

export class TrainingTable {
  /** @param {ShownText} store */
  constructor(store) {
    this.store = store;
    /** @type {AbortController | null} */
    this.controller = null;
    this.button = smallButton("");
    this.progress = make("span", { class: "hs-hint", role: "status" });
    this.table = makeTable({}, { class: "hs-answer-table", hidden: true });
    this.element = make("div", { hidden: true }, this.button, " ", this.progress, this.table);
    /** @type {Link | null} */
    this.link = null;
    this.shown = "";
    this.button.addEventListener("click", () => (this.controller ? this.stop() : void this.measure()));
    this.label();
    onEnd(() => this.stop());
  }

  stop() {
    this.controller?.abort();
    this.controller = null;
    this.label();
  }

  label() {
    this.button.textContent = this.controller ? "Stop" : "Measure at every training step";
    if (!this.controller) this.progress.textContent = "";
  }

  /** The answer of one step. @param {string} model @param {AbortSignal} signal */
  ask(model, signal) {
    const { later, way } = /** @type {Link} */ (this.link);
    const query = { model, layer: String(later[0]), head: String(later[1]), way };
    return askServer({ route: "role-paths", query }, { signal });
  }

  async measure() {
    if (!this.link) return;
    const { signal } = (this.controller = new AbortController());
    const { model, earlier } = this.link;
    this.label();
    fillTable(this.table, { titles: ["step", "score", `without ${spokenHead(earlier)}`, "only its direct path cut"] });
    try {
      const { steps } = await trainingOf(model);
      const last = await this.ask(model, signal);
      const role = bestRole(last);
      this.table.hidden = false;
      for (const [i, step] of steps.entries()) {
        this.progress.textContent = `${i} of ${steps.length} steps`;
        const answer = await this.ask(`${model}@${step}`, signal);
        const [layer, column] = earlier;
        const scores = [answer.plain[role], answer.every[role][layer][column], answer.direct[role][layer][column]];
        const row = makeRow([thousands(step), ...scores.map((score) => fixed(score, 3))]);
        this.table.tBodies[0].append(row);
      }
      this.stop();
    } catch (error) {
      if (signal.aborted) return;
      this.stop();
      this.progress.textContent = /** @type {Error} */ (error).message;
    }
  }

  /**
   * Offer to measure the link over the training steps, if the model has kept any.
   * @param {{ later: PictureId, earlier: PictureId, way: string } | null} next
   */
  async show(next) {
    const model = baseName(this.store.pointer.model);
    const key = JSON.stringify([model, next]);
    if (key === this.shown) return;
    this.shown = key;
    this.stop();
    this.link = next && { ...next, model };
    this.table.hidden = this.element.hidden = true;
    if (!next) return;
    try {
      const { steps } = await trainingOf(model);
      if (key === this.shown) this.element.hidden = !steps.length;
    } catch {
      if (key === this.shown) this.shown = ""; // the next answer asks again
    }
  }
}
