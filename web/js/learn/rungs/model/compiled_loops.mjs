// A part of rung 10: the attention that writes on a CPU, as the loops that are compiled.

import { make } from "../../../lib/dom.mjs";
import { formula, row, sub, sum } from "../../../widgets/formula.mjs";
import { code, paragraph } from "../../widgets/elements.mjs";
import { openLines } from "../../widgets/source_lines.mjs";

const COMPILED = 11; // as the server counts the loops, after the rungs

export function compiledLoops() {
  const scores = formula(
    [sub("s", "j"), "=", sum("d"), sub("q", "d"), sub("k", row("j", "d"))],
    [sub("w", "j"), "=", "softmax", "(", "scale", "·", "s", ")", sub("", "j")],
    [sub("z", "d"), "=", sum("j"), sub("w", "j"), sub("v", row("j", "d"))],
  );
  const words = make("div", {});
  words.append(
    scores,
    paragraph(
      "For one new token and one head: the first loop multiplies the query by all keys so far, ",
      code("softmax"),
      " makes weights of the scores in place, and the second loop adds up the values. ",
      code("multiply"),
      " is the dot product, for as many columns at once as the processor has lanes. No mask: there is no future yet.",
    ),
    paragraph(
      "torch computes the same with a call for every small operation, and on a small model the calls take longer than ",
      "the numbers. Compiled as one piece, the pass writes several times as fast; how much depends on model and ",
      "machine. docs/performance.md has the figures, and ",
      code("python -m bench.decode"),
      " measures them again.",
    ),
  );
  const details = make("details", { class: "hl-remarks" });
  details.append(
    make("summary", {}, "The attention that writes: compiled loops"),
    paragraph(
      "The classes of this ladder are for reading. On a CPU, texts are written by the same forward pass in plain ",
      "loops, which Numba compiles to machine code. This is its attention, from the files that run here:",
    ),
    make("div", { class: "hl-loops" }, words, openLines(COMPILED)),
  );
  return details;
}
