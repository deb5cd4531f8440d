// GELU and ReLU as curves.

import { chart } from "../../widgets/chart.mjs";

/** @param {{ x: number[], gelu: number[], relu: number[] }} curve */
export const bend = ({ x, gelu, relu }) =>
  chart({
    label: "GELU and ReLU between −4 and 4",
    x: { from: x[0], to: String(x.at(-1)), count: x.length },
    lines: { GELU: gelu, "ReLU, for comparison": relu },
    xName: "hidden number",
    yName: "after the bend",
  });
