// Where does this head fire? Its strongest passages in a long text, what they share, and a map of all heads.

import { make, tabs } from "../../../lib/dom.mjs";
import { counted, exact } from "../../../lib/numbers.mjs";
import { pictureName } from "../../../lib/words.mjs";
import { openText } from "../../address.mjs";
import { headMap } from "./head_map.mjs";
import { histogram, passageEntry, sharedPlain, sharedRows } from "./passage_list.mjs";
import { textChoice } from "./source.mjs";

/** @import { AskContext, BuiltQuestion, Question } from "../question.js" */
/** @import { Measure, Passage } from "./passage_list.mjs" */

const MEASURES = { weight: "by attention weight", norm: "by its output" };
const WHAT = { weight: "largest attention weight off the first token", norm: "norm of the head’s output" };

/** @type {Question} */
export const passages = {
  key: "passages",
  title: "Where does this head fire?",
  hook: "The places in a long text where it is strongest, and what they share.",
  explanation:
    "A text of up to 1 MB is read, and the passages are kept on which each head acts most strongly: by its largest " +
    "attention weight off the first token, or by the norm of what it adds to the residual stream.",
  caution:
    "The strongest passages show a head at its most extreme, not what it does most of the time; compare the counts " +
    "with what the head looks at from all tokens of the text, which is not how often such tokens occur in it. " +
    "A strong weight moves little if the value behind it is small.",
  defaults: { measure: "weight" },
  build,
};

/** @param {AskContext} context @returns {BuiltQuestion} */
function build({ store, choices, choose, conclude, overlay }) {
  const measures = tabs("Strongest", MEASURES, (measure) => choose({ measure }));
  const source = textChoice(store, () => store.emit("view"));
  const sentence = make("p", { class: "hs-answer" });
  const list = make("ol", { class: "hs-passages" });
  const shares = make("ul", { class: "hs-shares" });
  const bars = make("div", {});
  const map = headMap(store);
  const measure = () => /** @type {Measure} */ (choices.measure in MEASURES ? choices.measure : "weight");

  return {
    controls: [...source.controls, measures.element],
    element: make("div", { class: "hs-patching" }, sentence, list, shares, bars, map.element),
    request() {
      measures.show(measure());
      const { run, model } = store.pointer;
      if (!run) return "There is no text yet.";
      const { text } = source;
      return text ? { route: "passages", body: { model, text } } : "Paste a text, open a file, or let the model write.";
    },
    draw(answer) {
      const by = measure();
      const [layer, head] = store.open;
      const found = answer.heads[layer]?.[head];
      const name = pictureName(store.open, store.pointer);
      map.show(answer.map);
      /** @type {number[][]} */
      const values = answer.heads.map((/** @type {any[]} */ row) =>
        row.map((each) => each[by].passages[0]?.value ?? 0),
      );
      overlay({
        title: `Each head’s ${WHAT[by]}, where it is strongest`,
        values,
        most: Math.max(...values.flat(), 1e-9),
        ramp: "looks",
        short: (value) => value.toFixed(value < 9.95 ? 2 : 0).replace(/^0/, ""),
        long: exact,
        ends: ["weak", "strong"],
      });
      for (const part of [list, shares, bars]) part.hidden = !found;
      const text = `${counted(answer.n_tokens, "token")} of ${source.name}`;
      if (!found) {
        conclude("");
        sentence.textContent = `Read ${text}. Open a head: means and rollouts have no passages.`;
        return;
      }
      const top = found[by].passages;
      sentence.textContent = `Where ${name} fires most strongly in ${text}, by the ${WHAT[by]}:`;
      const open = (/** @type {Passage} */ passage) => openPassage(answer, passage);
      list.replaceChildren(...top.map((/** @type {Passage} */ passage) => passageEntry(passage, answer, open)));
      const shared = sharedRows(answer, found, by);
      conclude(sharedPlain(name, shared));
      const rows = shared.map(
        (
          /** @type {{ name: string, count: number, n: number, everywhere: number }} */ { name, count, n, everywhere },
        ) =>
          make(
            "li",
            {},
            make("b", {}, `${count} of ${n}`),
            `: the looked-at token ${name} `,
            make("span", {}, `(${(100 * everywhere).toFixed(0)} % over the whole text)`),
          ),
      );
      shares.replaceChildren(...rows);
      bars.replaceChildren(histogram(found[by].histogram, answer.bins[by], WHAT[by]));
    },
  };

  /** @param {any} answer @param {Passage} passage */
  function openPassage(answer, { query, key, window }) {
    const { start, tokens } = answer.windows[window];
    openText(store, { ids: tokens, n_prompt: tokens.length, locked: [{ query: query - start, key: key - start }] });
  }
}
