// How the heads take on their roles: for each role the score of the head that fits it best, at each snapshot.

import { make } from "../../lib/dom.mjs";
import { CLEAR_ROLE, isClearRole } from "../../lib/metrics.mjs";
import { legend, LineChart } from "./line_chart.mjs";

/** @import { SnapshotEvent, StartEvent, TrainEvent } from "../types.js" */

const ROLES = /** @type {const} */ ({
  previous_token: { name: "previous token", css: "ht-role-1", help: "looks at the character before" },
  duplicate_token: { name: "duplicate token", css: "ht-role-2", help: "looks at the same character, further back" },
  induction: { name: "induction", css: "ht-role-3", help: "looks at what followed the same character, further back" },
});
const ROLE_ENTRIES = /** @type {[keyof typeof ROLES, (typeof ROLES)[keyof typeof ROLES]][]} */ (Object.entries(ROLES));
const ALIKE = { name: "attention spread evenly", css: "ht-uniform" };

/** The layer and head with the highest of `scores[layer][head]`, and that score. @param {number[][]} scores */
export function strongest(scores) {
  let best = { layer: 0, head: 0, score: -1 };
  scores.forEach((row, layer) => row.forEach((score, head) => score > best.score && (best = { layer, head, score })));
  return best;
}

export class ScoresPanel {
  /** @type {SnapshotEvent[]} */
  #snapshots = [];
  /** @type {StartEvent | null} */
  #start = null;

  constructor() {
    this.chart = new LineChart("Highest score of any head for each role");
    this.best = make("ul", { class: "ht-best" });
    const hint =
      "The mean attention weight of the best head on what its role looks at, on random characters that are repeated " +
      `once. A role counts from ${CLEAR_ROLE} on. In a minute of training, at most a head for the character before ` +
      "usually gets there, on a long text; induction heads take longer than a training here.";
    const top = make("div", { class: "hs-top" }, make("h2", {}, "Roles of heads"));
    this.element = make("section", { class: "hs-panel ht-scores", "aria-label": "Roles of heads" }, top);
    this.element.append(this.chart.element, legend([...ROLE_ENTRIES.map(([, role]) => role), ALIKE]), this.best);
    this.element.append(make("p", { class: "hs-hint" }, hint));
    new ResizeObserver(() => this.#draw()).observe(this.chart.element);
  }

  reset() {
    this.#snapshots = [];
    this.#start = null;
    this.chart.element.replaceChildren();
    this.best.replaceChildren();
  }

  /** @param {TrainEvent} event */
  take(event) {
    if (event.kind === "start") this.#start = event;
    else if (event.kind === "snapshot" && event.heads) {
      this.#snapshots.push(event);
      this.#draw();
    }
  }

  #draw() {
    const last = this.#snapshots.at(-1);
    if (!this.#start || !last?.heads) return;
    const lines = ROLE_ENTRIES.map(([role, { name, css }]) => ({
      name,
      css,
      points: this.#snapshots.flatMap((snapshot) =>
        snapshot.heads
          ? [/** @type {[number, number]} */ ([snapshot.seconds, strongest(snapshot.heads[role]).score])]
          : [],
      ),
    }));
    const highest = Math.max(...lines.flatMap(({ points }) => points.map(([, value]) => value)));
    const { heads } = last;
    const { uniform } = heads;
    const levels = [{ name: "", css: "ht-uniform", value: uniform }];
    const range = { last: Math.max(this.#start.seconds, last.seconds), low: 0, high: Math.max(0.2, highest * 1.15) };
    this.chart.draw(lines, levels, range);
    const rows = ROLE_ENTRIES.map(([role, { name, help }]) => {
      const { layer, head, score } = strongest(heads[role]);
      const best = `L${layer} H${head} comes closest with ${score.toFixed(3)}`;
      const found = isClearRole(score, uniform) ? `L${layer} H${head}, ${score.toFixed(3)}` : `none yet; ${best}`;
      return make("li", {}, make("b", {}, name), ` (${help}): ${found}`);
    });
    this.best.replaceChildren(...rows);
  }
}
