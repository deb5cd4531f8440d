// What a head's weights do to tokens: the pairs with the largest entries in its OV and QK circuits, once opened.

import { make } from "../../lib/dom.mjs";
import { headName } from "../../lib/heads.mjs";
import { LatestRequest } from "../../lib/latest.mjs";
import { fixed } from "../../lib/numbers.mjs";
import { visible } from "../../lib/words.mjs";
import { askServer } from "../state/ask_server.mjs";
import { amountCell } from "./bars.mjs";
import { apart, distanceField, distanceIn } from "./distance_field.mjs";
import { openHead } from "./subject.mjs";
import { tabs } from "../../widgets/controls.mjs";
import { fillTable, makeCell, makeTable } from "../../widgets/table.mjs";

/** @import { TokenCircuitAnswer } from "../../lens.js" */
/** @import { Store } from "../state/store.mjs" */

const N_PAIRS = 12;

/** @typedef {"ov" | "qk"} Circuit */

/** @type {Record<Circuit, string>} */
const CIRCUITS = { ov: "what it writes (OV)", qk: "what it looks for (QK)" };
/** @type {Record<Circuit, { columns: [string, string, string], says: string }>} */
const WORDS = {
  ov: {
    columns: ["attended token", "token it promotes", "logit"],
    says:
      "It is 1 for a head that promotes each token that it looks at (copying), and −1 for one that suppresses it. " +
      "Logits are those before the final norm’s division.",
  },
  qk: {
    columns: ["query", "key", "attention score"],
    says: "It is 1 for a head in which each token looks for itself, and −1 for one in which it avoids itself.",
  },
};

/** @param {Store} store */
export function tokenPairs(store) {
  const request = new LatestRequest();
  let circuit = /** @type {Circuit} */ ("ov");
  let chosen = 0; // the distance, where positions are rotary
  let shown = "";
  const choice = tabs("Circuit", CIRCUITS, (key) => {
    circuit = key;
    void show();
  });
  const apartness = distanceField(store, (distance) => {
    chosen = distance;
    void show();
  });
  const controls = make("div", { class: "hs-controls" }, choice.element, apartness.element);
  const sentence = make("p", { class: "hs-hint", role: "status" });
  const table = makeTable({}, { class: "hs-answer-table", "data-table": "token-pairs" });
  const scroll = make("div", { class: "hs-answer-scroll" }, table);
  const summary = make("summary", {}, "What its weights do to tokens");
  const element = make("details", {}, summary, controls, sentence, scroll);
  element.addEventListener("toggle", () => void show());

  /** Show the pairs of the open head, if the visitor has opened them. */
  async function show() {
    const open = openHead(store);
    element.hidden = !open;
    if (!open || !element.open) return;
    choice.show(circuit);
    apartness.show(chosen, circuit === "qk");
    const [layer, head] = open.map(String);
    const { model, sha256 } = store.pointer;
    const asked = circuit === "qk" ? distanceIn(store, chosen) : 0;
    const key = [model, sha256, layer, head, circuit, asked].join();
    if (key === shown) return;
    shown = key;
    sentence.textContent = "Multiplying its matrices by the embeddings of all tokens…";
    table.replaceChildren();
    try {
      const query = { model, layer, head, circuit, top: String(N_PAIRS), distance: String(asked) };
      const answer = await request.send((signal) => askServer({ route: "token-circuit", query }, { signal }));
      if (answer) draw(answer);
    } catch (error) {
      shown = "";
      sentence.textContent = /** @type {Error} */ (error).message;
    }
  }

  /** @param {TokenCircuitAnswer} answer */
  function draw({ layer, head, pairs, eigenvalue_score, distance }) {
    const { columns, says } = WORDS[circuit];
    const score = `The eigenvalue score of ${headName([layer, head])} is ${fixed(eigenvalue_score, 2)}.`;
    const place = circuit === "qk" && store.pointer.rotary ? ` Scores are those ${apart(distance)}.` : "";
    sentence.textContent = `${score} ${says}${place}`;
    const most = Math.max(...pairs.map(({ value }) => Math.abs(value)), 1e-9);
    fillTable(table, {
      name: `The largest of all pairs of tokens: ${CIRCUITS[circuit]}`,
      titles: columns,
      rows: pairs.map(({ source, target, value }) => [
        makeCell(`“${visible(source.text)}”`),
        `“${visible(target.text)}”`,
        amountCell(value, most, fixed(value, 2)),
      ]),
    });
  }

  return { element, show };
}
