// After all layers: logits and probabilities of the next token, and what each layer would have said.

import { make } from "../../../lib/dom.mjs";
import { exact, fixed, number } from "../../../lib/numbers.mjs";
import { visible } from "../../../lib/words.mjs";
import { bars } from "../../widgets/chart.mjs";

/** @typedef {{ id: number, text: string, logit: number, p: number }} Next */

/** The likeliest next tokens. @param {(stage: string, name: string, id: number) => void} explain */
export function nextTokens(explain) {
  const body = make("tbody");
  const titles = ["token", "logit", "probability", ""].map((name) => make("th", { scope: "col" }, name));
  const table = make("table", { class: "hl-next", "aria-label": "The likeliest next tokens" });
  table.append(make("thead", {}, make("tr", {}, ...titles)), body);
  const said = make("p", { class: "hl-count", role: "status" });

  /** @param {{ next: Next[], follower: number | null, surprise: number | null }} end */
  function update({ next, follower, surprise }) {
    const rows = next.map(({ id, text, logit, p }) => {
      /** @param {string} stage @param {string} value */
      const button = (stage, value) => {
        const name = `${stage === "logit" ? "Logit" : "Probability"} of “${visible(text)}”`;
        const onclick = () => explain(stage, name, id);
        return make("td", {}, make("button", { type: "button", onclick, title: name }, value));
      };
      const amount = make("span", { class: "hl-amount" });
      amount.style.setProperty("--part", String(p));
      const title = make("th", { scope: "row" }, visible(text), id === follower ? " ← follows here" : "");
      const cells = [button("logit", fixed(logit)), button("probability", exact(p)), make("td", {}, amount)];
      return make("tr", { class: id === follower ? "hl-follows" : "" }, title, ...cells);
    });
    body.replaceChildren(...rows);
    const likeliest = `Most likely: “${visible(next[0].text)}” with ${exact(next[0].p)}.`;
    const found = next.find(({ id }) => id === follower);
    said.textContent = found
      ? `${likeliest} In your sentence “${visible(found.text)}” follows: −ln ${exact(found.p)} = ` +
        `${fixed(surprise ?? 0)} nats.`
      : `${likeliest} The sentence ends here, so the model would draw one of these.`;
  }

  return { elements: [make("div", { class: "hl-scroll" }, table), said], update };
}

/**
 * Buttons for the layers, each with what the model would say if it ended before that layer.
 * @param {(layer: number) => void} choose
 */
export function layerPicker(choose) {
  const element = make("div", { class: "hl-layers", role: "group", "aria-label": "Layers" });
  /** @param {{ text: string, p: number, length: number }[]} guesses @param {number} chosen */
  function update(guesses, chosen) {
    const steps = guesses.map(({ text, p, length }, i) => {
      const said = make("small", {}, `“${visible(text)}” ${p.toFixed(2)}`);
      const isEnd = i === guesses.length - 1;
      const where = isEnd ? "after the last layer" : `that goes into layer ${i}`;
      const title = `The residual stream ${where} has length ${fixed(length, 2)}; read out, it would say “${text}”`;
      if (isEnd) return make("span", { class: "hl-end", title }, "end", said);
      const onclick = () => choose(i);
      return make(
        "button",
        { type: "button", title, "aria-pressed": String(i === chosen), onclick },
        `layer ${i}`,
        said,
      );
    });
    element.replaceChildren(...steps);
  }
  return { element, update };
}

/**
 * What blind guessing, pairs and this model cost.
 * @param {{ uniform: number, bigram: number | null, model: number | null }} story
 * @param {{ name: string, size: number }} model
 * @param {(...parts: Node[]) => void} open shows how a number comes about
 */
export function storyInNumbers({ uniform, bigram, model }, { name, size }, open) {
  const all = number(size);
  const lines = [{ label: `all ${all} tokens alike: ln ${all}`, value: uniform }];
  const why = [
    `Each of ${all} tokens gets the probability 1 / ${all}: −ln (1 / ${all}) = ln ${all} = ${fixed(uniform)}`,
  ];
  if (bigram !== null) {
    lines.push({ label: "a bigram model, held-out tenth", value: bigram });
    why.push(
      "The mean of −ln p over the 111,540 characters of the held-out tenth of tiny Shakespeare, by the table of " +
        `rung 3 after 10,000 steps: ${fixed(bigram, 3)}, measured here.`,
    );
  }
  if (model !== null) {
    lines.push({ label: `${name}, according to its model card`, value: model });
    why.push(
      `The mean of −ln p over held-out text, measured when ${name} was trained: ${fixed(model)}. At the end of this ` +
        "rung is the same −ln p for one token of your sentence.",
    );
  }
  return bars("Nats per token: less is better", lines, uniform, {
    format: (value) => fixed(value, 2),
    explain: (i) => open(make("p", {}, why[i])),
  });
}
