// What a head's weights do to tokens: the pairs with the largest entries in its OV and QK circuits, once opened.

import { make } from "../../lib/dom.mjs";
import { spokenHead } from "../../lib/heads.mjs";
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
/** @import { ShownText } from "../state/shown_text.mjs" */

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

export class TokenPairs {
  /** @param {ShownText} store */
  constructor(store) {
    this.store = store;
    this.request = new LatestRequest();
    /** @type {Circuit} */
    this.circuit = "ov";
    this.chosen = 0; // the distance, where positions are rotary
    this.shown = "";
    this.choice = tabs("Circuit", CIRCUITS, (key) => {
      this.circuit = key;
      void this.show();
    });
    this.apartness = distanceField(store, (distance) => {
      this.chosen = distance;
      void this.show();
    });
    const controls = make("div", { class: "hs-controls" }, this.choice.element, this.apartness.element);
    this.sentence = make("p", { class: "hs-hint", role: "status" });
    this.table = makeTable({}, { class: "hs-answer-table", "data-table": "token-pairs" });
    const scroll = make("div", { class: "hs-answer-scroll" }, this.table);
    const summary = make("summary", {}, "What its weights do to tokens");
    this.element = make("details", {}, summary, controls, this.sentence, scroll);
    this.element.addEventListener("toggle", () => void this.show());
  }

  /** Show the pairs of the open head, if the visitor has opened them. */
  async show() {
    const open = openHead(this.store);
    this.element.hidden = !open;
    if (!open || !this.element.open) return;
    this.choice.show(this.circuit);
    this.apartness.show(this.chosen, this.circuit === "qk");
    const [layer, head] = open.map(String);
    const { model, sha256 } = this.store.pointer;
    const asked = this.circuit === "qk" ? distanceIn(this.store, this.chosen) : 0;
    const key = [model, sha256, layer, head, this.circuit, asked].join();
    if (key === this.shown) return;
    this.shown = key;
    this.sentence.textContent = "Multiplying its matrices by the embeddings of all tokens…";
    this.table.replaceChildren();
    try {
      const query = { model, layer, head, circuit: this.circuit, top: String(N_PAIRS), distance: String(asked) };
      const answer = await this.request.send((signal) => askServer({ route: "token-circuit", query }, { signal }));
      if (answer) this.draw(answer);
    } catch (error) {
      this.shown = "";
      this.sentence.textContent = /** @type {Error} */ (error).message;
    }
  }

  /** @param {TokenCircuitAnswer} answer */
  draw({ layer, head, pairs, eigenvalue_score, distance }) {
    const { columns, says } = WORDS[this.circuit];
    const score = `The eigenvalue score of ${spokenHead([layer, head])} is ${fixed(eigenvalue_score, 2)}.`;
    const place = this.circuit === "qk" && this.store.pointer.rotary ? ` Scores are those ${apart(distance)}.` : "";
    this.sentence.textContent = `${score} ${says}${place}`;
    const most = Math.max(...pairs.map(({ value }) => Math.abs(value)), 1e-9);
    fillTable(this.table, {
      name: `The largest of all pairs of tokens: ${CIRCUITS[this.circuit]}`,
      titles: columns,
      rows: pairs.map(({ source, target, value }) => [
        makeCell(`“${visible(source.text)}”`),
        `“${visible(target.text)}”`,
        amountCell(value, most, fixed(value, 2)),
      ]),
    });
  }
}
