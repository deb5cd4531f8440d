// The second half of rung 6: random queries and keys, with the scale and without.

import { make } from "../look/dom.mjs";
import { Newest } from "./ask.mjs";
import { bars, chart } from "./chart.mjs";
import { fixed, number } from "./numbers.mjs";
import { code, controls, heading, paragraph, rowOf, slider } from "./parts.mjs";

const DIMS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
const SHARPNESS = [1, 2, 4, 8, 16];

export function scalePart(lesson) {
  const asked = { head_dim: 16, sharpness: 8 };
  const newest = new Newest();
  const take = (changes) => {
    Object.assign(asked, changes);
    return load(80);
  };
  const dims = slider({ label: "head_dim", values: DIMS, value: asked.head_dim, change: (head_dim) => take({ head_dim }) });
  const sharp = slider({ label: "scores ×", values: SHARPNESS, value: asked.sharpness, change: (sharpness) => take({ sharpness }) });
  const said = make("p", { class: "hl-count", role: "status" });
  const [variance, sharper, softmax, diffuse] = ["hl-row", "", "hl-row", "hl-row"].map((name) => make("div", { class: name }));

  async function load(pause = 0) {
    try {
      const data = await newest.ask("scale", asked, pause);
      if (data) show(data);
    } catch (error) {
      said.textContent = error.message;
    }
  }

  function show(data) {
    const { unscaled, scaled } = data.at;
    said.textContent = `head_dim ${data.head_dim}: the scores have variance ${number(unscaled.variance, 2)}, divided by √${data.head_dim} it is ${number(scaled.variance, 2)}. Of a query's 256 keys the largest weight is ${fixed(unscaled.largest_weight)} without the division, ${fixed(scaled.largest_weight)} with it.`;
    const spread = { "without the division": unscaled.variance, [`divided by √${data.head_dim}`]: scaled.variance };
    const entries = Object.entries(spread).map(([label, value]) => ({ label, value }));
    variance.replaceChildren(bars("Variance of the scores", entries, Math.max(...Object.values(spread)), (value) => fixed(value, 2)));
    sharper.replaceChildren(
      chart({
        label: "The largest attention weight of a query, on average, for each head_dim",
        x: data.curve.map(({ head_dim }) => String(head_dim)),
        lines: {
          "without the division": data.curve.map((point) => point.unscaled.largest_weight),
          "divided by √head_dim": data.curve.map((point) => point.scaled.largest_weight),
        },
        mark: data.curve.findIndex(({ head_dim }) => head_dim === data.head_dim),
        below: 0,
        xName: "head_dim",
        yName: "largest attention weight",
      }),
    );
    const keys = (weights) => weights.map((weight, i) => ({ label: `key ${i}`, value: weight }));
    softmax.replaceChildren(bars("One query, without the division", keys(data.unscaled), 1), bars("The same query, divided by √head_dim", keys(data.scaled), 1));
    const named = (weights) => weights.map((weight, i) => ({ label: number(data.diffuse[i] * data.sharpness, 1), value: weight }));
    diffuse.replaceChildren(bars(`softmax of these scores × ${data.sharpness}`, named(data.softmax), 1));
  }

  let started = false;
  return {
    elements: [
      heading("Why divide by √head_dim?"),
      paragraph("A score is a sum of ", code("head_dim"), " products, so it spreads more the longer the vectors are. A softmax of widely spread scores puts nearly all weight on one key, and then hardly anything can be learned from the others. Dividing by √head_dim keeps the spread where it was."),
      controls(dims.element),
      said,
      variance,
      sharper,
      softmax,
      paragraph("The same with five fixed scores: the larger they are, the sharper their softmax."),
      controls(sharp.element),
      diffuse,
    ],
    start() {
      if (!started) load();
      started = true;
    },
  };
}
