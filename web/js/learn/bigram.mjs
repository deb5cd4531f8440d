// Rung 3: a bigram model learns while one watches.

import { make } from "../look/dom.mjs";
import { counted, visible } from "../look/words.mjs";
import { lines, post } from "./ask.mjs";
import { chart } from "./chart.mjs";
import { Chips } from "./chips.mjs";
import { formula, row, sub } from "./formula.mjs";
import { Heat } from "./heat.mjs";
import { fixed, number } from "./numbers.mjs";
import { choice, code, controls, paragraph, rowOf, slider } from "./parts.mjs";

const STEPS = [200, 500, 1000, 2000, 5000, 10000];

export const bigram = {
  name: "The bigram model",
  options: {},
  question: {
    ask: "An untrained bigram model guesses the next of 65 characters. Is its loss above or below that of guessing all alike, ln 65 = 4.17?",
    options: ["Below", "Exactly that", "Above"],
    right: 2,
    why: "Its table is random, so it is sure of things for no reason, and being sure and wrong costs more than not knowing.",
  },
  build(lesson) {
    const { kept } = lesson; // the text, the settings and the last training outlive a look at another rung
    const asked = (kept.asked ??= { steps: 2000, learning_rate: 0.01 });
    const text = make("textarea", { id: "hl-lesson-text", rows: 5, oninput: () => (kept.text = text.value) });
    text.value = kept.text ?? "";
    const go = make("button", { type: "button", class: "hs-small hl-primary", onclick: () => run() }, "Train it");
    const stop = make("button", { type: "button", class: "hs-small", disabled: true, onclick: () => controller?.abort() }, "Stop");
    const steps = slider({ label: "steps", values: STEPS, value: asked.steps, say: number, change: (value) => (asked.steps = value) });
    const rate = choice({ label: "learning rate", options: { 0.001: "0.001", 0.01: "0.01" }, value: String(asked.learning_rate), change: (value) => (asked.learning_rate = Number(value)) });
    const bar = make("progress", { max: 1, value: 0, "aria-label": "Training" });
    const said = make("p", { class: "hl-count", role: "status" }, "Not trained yet.");
    const curve = make("div");
    const before = make("pre", { class: "hl-wrote", tabindex: 0, "aria-label": "Its writing before training" });
    const after = make("pre", { class: "hl-wrote", tabindex: 0, "aria-label": "Its writing after training" });
    const wrote = make("div", { class: "hl-row", hidden: true }, make("div", {}, make("h4", {}, "It writes, untrained"), before), make("div", {}, make("h4", {}, "It writes, trained"), after));
    const follows = new Heat({ name: "What follows what", axes: "after this ↓ comes that →, its probability; the most frequent characters", digits: 2 });
    follows.element.hidden = true;
    const sentence = new Chips();
    sentence.element.hidden = true;
    let controller = null;
    let replaying = false;
    const numbers = {};

    function draw() {
      const { points, every, uniform, floor, steps: all } = numbers;
      const shown = { "training loss": points };
      const to = number(all);
      curve.replaceChildren(
        chart({ label: `Loss over ${to} steps`, x: { from: 0, to, count: Math.ceil(all / every) }, lines: shown, levels: { "all characters alike": uniform, "counted pairs, the floor": floor }, xName: "step", yName: "loss in nats" }),
      );
    }

    const stages = {
      writing({ model, text: now }) {
        said.textContent = `${model} writes the text: ${counted(now.length, "character")} ...`;
        text.value = kept.text = kept.written = now; // which is not the visitor's own text
        text.scrollTop = text.scrollHeight;
      },
      before(data) {
        Object.assign(numbers, data, { points: [], every: 1, steps: kept.steps });
        before.textContent = data.wrote;
        wrote.hidden = false;
        follows.element.hidden = sentence.element.hidden = true; // until there is something new to see
        after.textContent = "…";
      },
      training({ step, steps: all, every, points }) {
        numbers.points.push(...points);
        Object.assign(numbers, { every, steps: all });
        bar.value = step / all;
        said.textContent = `Step ${number(step)} of ${number(all)}: the loss is ${fixed(numbers.points.at(-1) ?? numbers.loss)}, untrained it was ${fixed(numbers.loss)}.`;
        if (!replaying) draw();
      },
      after(data) {
        after.textContent = data.wrote;
        said.textContent = `Done. Loss on the whole text: ${fixed(numbers.loss)} untrained, ${fixed(data.loss)} now; all ${numbers.characters.length} characters alike would be ${fixed(numbers.uniform)}, and no bigram model can be below ${fixed(numbers.floor)}.`;
        const names = data.frequent.map(visible);
        follows.show({ rows: names, columns: names, values: data.follows });
        follows.element.hidden = false;
        const chips = data.sentence.map(({ text, known, probability }) => ({ text, known, below: probability === null ? "–" : fixed(probability, 3) }));
        const isNew = kept.sentence !== lesson.sentence;
        if (isNew) sentence.show([], 0, "Your sentence is another one now: train again, and see what this model makes of it.");
        else sentence.show(chips, data.n_sentence, "Your sentence as it sees it: below each character its probability after the one before it; outlined is what its text did not have.");
        sentence.element.hidden = false;
      },
      failed({ why }) {
        said.textContent = why;
      },
    };

    const stopped = () => `Stopped${numbers.points?.length ? `, the last loss was ${fixed(numbers.points.at(-1))}` : ""}.`;

    async function run() {
      controller = new AbortController();
      go.disabled = true;
      stop.disabled = false;
      bar.value = 0;
      const own = text.value === kept.written ? "" : text.value;
      Object.assign(kept, { told: [], steps: asked.steps, sentence: lesson.sentence });
      said.textContent = own ? "Beginning ..." : "Waiting for the writer ...";
      try {
        for await (const line of lines(await post("bigram", { ...asked, lesson: own, sentence: lesson.sentence }, controller.signal))) {
          if (line.stage !== "writing") kept.told.push(line);
          stages[line.stage](line);
        }
      } catch (error) {
        said.textContent = controller.signal.aborted ? stopped() : error.message;
      }
      go.disabled = false;
      stop.disabled = true;
    }

    /** What was told of the last training, once more. */
    function replay() {
      if (!kept.told?.length) return;
      replaying = true;
      for (const line of kept.told) stages[line.stage](line);
      replaying = false;
      if (numbers.points.length) draw();
      if (["before", "training"].includes(kept.told.at(-1).stage)) said.textContent = stopped();
    }

    replay();
    return {
      text: [
        paragraph("The smallest language model: a table with a row for each character, and in it the ", make("dfn", {}, "logits"), " of what comes next. It looks at one character and no further back. Trained on a text, its row for “q” learns that “u” follows."),
        paragraph("Its ", make("dfn", {}, "loss"), " is how surprised it is on average by the character that came, in nats. The floor can be counted without training: how often each pair occurs gives the best table there can be, and its loss."),
      ],
      formula: formula(["loss", "=", "−", " mean of ln ", "p", row("(", sub("x", "t+1"), "|", sub("x", "t"), ")")]),
      picture: [make("label", { for: "hl-lesson-text" }, make("b", {}, "Text to learn from")), text, controls(steps.element, rate.element, go, stop), bar, said, curve, wrote, rowOf(follows.element), sentence.element, paragraph("The text is cut at random into batches of 32 windows of 8 characters; ", code("AdamW"), " changes the table after each.")],
      update({ writer }) {
        text.placeholder = `Leave this empty, and ${writer ?? "a model"} writes a text on the spot. Or paste your own.`;
      },
      leave: () => controller?.abort(),
    };
  },
};
