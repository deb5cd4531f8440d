// The second half of rung 8: how long each construction takes, measured on the server when the button is pressed.

import { make } from "../../../lib/dom.mjs";
import { milliseconds } from "../../../lib/numbers.mjs";
import { ask } from "../../server.mjs";
import { bars } from "../../widgets/chart.mjs";
import { slider } from "../../widgets/controls.mjs";
import { code, controls, paragraph } from "../../widgets/elements.mjs";
import { ALL_THREE, Stamp } from "../../../widgets/stamp.mjs";

const HEADS = [1, 2, 4, 8, 16, 32];
const TOKENS = [16, 64, 128, 256, 512];

export function headTimes() {
  const settings = { n_head: 8, n_tokens: 64 };
  const result = make("div", { class: "hl-row" });
  const status = make("p", { class: "hl-count", role: "status" });
  const stamp = new Stamp("the three constructions on the same random tokens", false, ALL_THREE);
  stamp.element.hidden = true;

  async function run() {
    measure.disabled = true;
    status.textContent = "Measuring ...";
    try {
      show(await ask("times", settings));
    } catch (error) {
      status.textContent = /** @type {Error} */ (error).message;
    }
    measure.disabled = false;
  }

  /** @param {any} times */
  function show({ constructions, stages, difference, rounds, n_embd, n_head, n_tokens }) {
    status.textContent =
      `${n_head} heads, ${n_embd} numbers a token, ${n_tokens} tokens: the fastest of ${rounds} runs or more, just ` +
      "now on this server. Times differ from machine to machine: compare the bars.";
    result.replaceChildren(
      timeBars("The same attention, built three ways", constructions),
      timeBars("Where the time of the weight splits goes", stages),
    );
    stamp.element.hidden = false;
    stamp.show(difference);
  }

  const measure = make("button", { type: "button", class: "hs-small hl-primary", onclick: run }, "Measure now");
  const heads = slider({
    label: "heads",
    values: HEADS,
    value: settings.n_head,
    change: (n_head) => Object.assign(settings, { n_head }),
  });
  const tokens = slider({
    label: "tokens",
    values: TOKENS,
    value: settings.n_tokens,
    change: (n_tokens) => Object.assign(settings, { n_tokens }),
  });
  return [
    paragraph(
      "With few tokens, many small products cost more than one large one: stacked heads are the slowest. With many ",
      "tokens the time goes into the attention weights, n_head × T × T numbers that softmax reads and writes several ",
      "times. Then stacked heads can be faster, since the weights of one head at a time fit into the processor's ",
      "cache.",
    ),
    paragraph(
      code("MultiHeadAttention"),
      " is the class that the GPT runs: one fused projection, and a fused softmax that never writes the weights to ",
      "memory.",
    ),
    controls(heads.element, tokens.element, measure),
    status,
    result,
    stamp.element,
  ];
}

/**
 * @param {string} name
 * @param {Record<string, number>} seconds
 */
const timeBars = (name, seconds) => bars(name, seconds, Math.max(...Object.values(seconds)), { format: milliseconds });
