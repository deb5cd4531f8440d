// Exercise 1 of the chapter, on rung 6: weights of linear layers are put into parameters until both say the same.

import { make } from "../../../lib/dom.mjs";
import { LatestRequest } from "../../../lib/latest.mjs";
import { ask } from "../../server.mjs";
import { choice } from "../../widgets/controls.mjs";
import { code, controls, paragraph, rowOf } from "../../widgets/elements.mjs";
import { HeatTable } from "../../../widgets/heat_table.mjs";

/** @import { Lesson } from "../../rung.js" */

const ROLES = ["query", "key", "value"];
const CLOSE = 1e-6;

/** @param {Lesson} lesson */
export function transferWeights(lesson) {
  const { kept } = lesson;
  /** @type {Record<string, string>} */
  const transfer = (kept.transfer ??= { query: "own", key: "own", value: "own" });
  const request = new LatestRequest();
  const verdict = make("p", { class: "hl-count", role: "status" });
  const columns = ROLES.map((role) => {
    const stored = new HeatTable({ name: `W_${role}.weight`, axes: "of nn.Linear, as it is stored: 2 × 3" });
    const own = new HeatTable({ name: `W_${role}`, axes: "of the parameters: 3 × 2" });
    const pick = choice({
      label: "put in",
      options: { own: "nothing", reshaped: ".reshape(3, 2)", transposed: ".T" },
      value: transfer[role],
      change(key) {
        transfer[role] = key;
        load();
      },
    });
    return { role, stored, own, element: make("div", {}, stored.element, controls(pick.element), own.element) };
  });

  async function load() {
    try {
      const data = await request.send((signal) => ask("transfer", { ...lesson.body, transfer }, signal));
      if (!data) return;
      for (const { role, stored, own } of columns) {
        stored.show({ rows: ["0", "1"], columns: ["0", "1", "2"], values: data.stored[role] });
        own.show({ rows: ["0", "1", "2"], columns: ["0", "1"], values: data.matrices[role] });
      }
      const isSolved = data.error < CLOSE;
      const said = isSolved ? "Solved: both outputs are the same" : "The two outputs differ";
      verdict.replaceChildren(make("b", {}, said), `, by ${data.error.toExponential(2).replace("-", "−")} at most`);
    } catch (error) {
      verdict.textContent = /** @type {Error} */ (error).message;
    }
  }

  return {
    elements: [
      paragraph(
        "Parameters and linear layers differ only in their numbers and in how these are stored. Set the three " +
          "matrices ",
        "of ",
        code("SelfAttentionV1"),
        " from the layers of ",
        code("SelfAttentionV2"),
        " so that both give the same context vectors.",
      ),
      rowOf(...columns.map(({ element }) => element)),
      verdict,
    ],
    load,
  };
}
