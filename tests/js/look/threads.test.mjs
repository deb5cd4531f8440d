// Threads over texts of many shapes, sampled point by point: none crosses a word.

import assert from "node:assert/strict";
import { test } from "node:test";
import { linesOf, threadPaths } from "../../../web/js/look/stage/threads.mjs";

/** Numbers from 0 to 1, the same in every run. @param {number} seed */
function numbers(seed) {
  let state = seed;
  return () => (state = (state * 16807) % 2147483647) / 2147483647;
}

/** Tokens set in lines. @param {{ n: number, width: number, em: number, lead: number, seed: number }} text */
function layOut({ n, width, em, lead, seed }) {
  const random = numbers(seed);
  let [left, line] = [0, 0];
  return Array.from({ length: n }, () => {
    const wide = em * (0.3 + 3 * random());
    if (left + wide > width) [left, line] = [0, line + 1];
    const middle = lead * (line + 0.5);
    const box = { left, right: left + wide, top: middle - em * 0.52, bottom: middle + em * 0.5 };
    left += wide + em * 0.25;
    return box;
  });
}

/** Points along a path of moves, lines and cubic curves. @param {string} path @returns {[x: number, y: number][]} */
function pointsOf(path) {
  /** @type {[number, number][]} */
  const points = [];
  let at = /** @type {[number, number]} */ ([0, 0]);
  for (const [, command, rest] of path.matchAll(/([MLC])([^MLC]*)/g)) {
    const values = rest.split(/[ ,]+/).map(Number);
    assert.ok(values.every(Number.isFinite), path);
    if (command === "M") at = [values[0], values[1]];
    else {
      const ends = command === "L" ? [...at, values[0], values[1], values[0], values[1]] : [...at, ...values];
      const steps = 200;
      for (let i = 0; i <= steps; i++) {
        const t = i / steps;
        const [a, b, c, d] = [(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t ** 3];
        if (command === "L") points.push([at[0] + t * (values[0] - at[0]), at[1] + t * (values[1] - at[1])]);
        else
          points.push([
            a * ends[0] + b * ends[2] + c * ends[4] + d * ends[6],
            a * ends[1] + b * ends[3] + c * ends[5] + d * ends[7],
          ]);
      }
      at = /** @type {[number, number]} */ (values.slice(-2));
    }
    points.push(at);
  }
  return points;
}

const TEXTS = [
  { n: 30, width: 1290, em: 40, lead: 104 },
  { n: 60, width: 900, em: 32, lead: 80 },
  { n: 34, width: 358, em: 22, lead: 52 },
  { n: 7, width: 1290, em: 40, lead: 104 },
  { n: 90, width: 300, em: 28, lead: 72 },
];

for (const [at, text] of TEXTS.entries()) {
  test(`no thread crosses a word: text ${at}`, () => {
    for (let seed = 1; seed < 12; seed++) {
      const boxes = layOut({ ...text, seed });
      const random = numbers(seed + 100);
      const query = seed % 3 ? boxes.length - 1 : Math.floor(random() * boxes.length);
      const strands = Array.from({ length: 144 }, (_, head) => {
        const gain = random() ** 6;
        return { head, key: Math.floor(random() * (query + 1)), width: 0.75 + 3.75 * gain, matters: gain > 0.1 };
      });
      const room = { width: text.width, gutter: 16 + 32 * random(), street: text.lead - text.em * 1.02 };
      const paths = threadPaths(boxes, query, strands, room);
      const highest = boxes[0].top - room.street;
      for (const [i, path] of paths.entries()) {
        const points = pointsOf(path);
        const [start, end] = [points[0], /** @type {[number, number]} */ (points.at(-1))];
        const [from, to] = [boxes[query], boxes[strands[i].key]];
        assert.ok(start[0] >= from.left && start[0] <= from.right && Math.abs(start[1] - from.top) < 0.1);
        assert.ok(end[0] >= to.left - 0.1 && end[0] <= to.right + 0.1);
        for (const [x, y] of points) {
          assert.ok(x > -room.gutter && x < text.width + room.gutter && y > highest, `${x} ${y}: ${path}`);
          const crossed = boxes.findIndex(
            (box) => x > box.left + 0.1 && x < box.right - 0.1 && y > box.top + 0.1 && y < box.bottom - 0.1,
          );
          assert.equal(crossed, -1, `seed ${seed}: from ${query} to ${strands[i].key} over ${crossed}: ${path}`);
        }
      }
    }
  });
}

test("a line begins where a token stands below all of the line before", () => {
  const boxes = [0, 0, 50, 52, 100].map((top) => ({ left: 0, right: 9, top, bottom: top + 20 }));
  assert.deepEqual(linesOf(boxes), [0, 0, 1, 1, 2]);
});

test("threads leave a word in the order of where they go, side by side", () => {
  const boxes = layOut({ n: 20, width: 2000, em: 40, lead: 104, seed: 3 });
  const strands = [15, 2, 9].map((key, head) => ({ head, key, width: 2, matters: true }));
  const starts = threadPaths(boxes, 19, strands, { width: 2000, gutter: 40, street: 60 }).map(
    (path) => pointsOf(path)[0],
  );
  assert.ok(starts[1][0] < starts[2][0] && starts[2][0] < starts[0][0]);
});
