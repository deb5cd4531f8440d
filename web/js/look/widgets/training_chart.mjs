// Lines over the steps of a training run, below the slider over its snapshots and with the same axis.

/**
 * @typedef {object} Line
 * @property {string} name
 * @property {[step: number, value: number][]} points
 * @property {boolean} isLoss on a scale of its own, from its smallest to its largest value; else from 0 to 1
 */

const [WIDTH, HEIGHT, EDGE] = [320, 72, 6];
const STYLES = ["hs-line-loss", "hs-line-one", "hs-line-two"];

/** @param {string} name @param {Record<string, string | number>} attributes */
function shape(name, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  return element;
}

/**
 * @param {number} at the step that is marked
 * @param {number[]} kept the steps of the snapshots, in order, which stand at equal distances
 * @param {Line[]} lines
 */
export function trainingChart(at, kept, lines) {
  /** @param {number} step */
  const x = (step) => EDGE + ((WIDTH - 2 * EDGE) * placeAmong(kept, step)) / Math.max(kept.length - 1, 1);
  const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", preserveAspectRatio: "none" });
  svg.setAttribute("aria-label", `${lines.map(({ name }) => name).join(", ")} over the steps of training`);
  svg.append(shape("path", { d: `M${x(at)} 0V${HEIGHT}` }));
  const legend = document.createElement("p");
  legend.className = "hs-hint";
  lines.forEach(({ name, points, isLoss }, i) => {
    if (!points.length) return;
    const values = points.map(([, value]) => value);
    const [low, high] = isLoss ? [Math.min(...values), Math.max(...values)] : [0, 1];
    /** @param {number} value */
    const y = (value) => HEIGHT - EDGE - ((HEIGHT - 2 * EDGE) * (value - low)) / (high - low || 1);
    const path = points.map(([step, value]) => `${x(step).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
    svg.append(shape("polyline", { points: path, class: STYLES[i] }));
    const mark = document.createElement("span");
    mark.className = `hs-swatch ${STYLES[i]}`;
    legend.append(mark, `${lineWords({ name, points, isLoss }, kept[0])} `);
  });
  const ends = document.createElement("p");
  ends.className = "hs-hint hs-chart-ends";
  for (const step of [kept[0], kept[kept.length - 1]]) {
    const end = document.createElement("span");
    end.textContent = `step ${step.toLocaleString("en")}`;
    ends.append(end);
  }
  const figure = document.createElement("div");
  figure.append(svg, ends, legend);
  return figure;
}

/**
 * What a line shows, with its first and its last value; and from when on, where that is later than the first snapshot.
 * @param {Line} line with one point at least
 * @param {number} start the first step of the chart
 */
export function lineWords({ name, points, isLoss }, start) {
  const [[step, first], [, last]] = [points[0], points[points.length - 1]];
  const measured = step > start ? `, first measured at step ${step.toLocaleString("en")}` : "";
  return `${name} ${first.toFixed(2)} to ${last.toFixed(2)}${isLoss ? " nats" : ""}${measured}`;
}

/**
 * Where a step lies among those that were kept, in indices.
 * @param {number[]} kept
 * @param {number} step
 */
export function placeAmong(kept, step) {
  const next = kept.findIndex((one) => one >= step);
  if (next <= 0) return next < 0 ? kept.length - 1 : 0;
  return next - (kept[next] - step) / (kept[next] - kept[next - 1]);
}
