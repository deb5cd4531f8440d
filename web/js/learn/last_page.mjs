// The page after the last rung: a GPT in a few lines of formulas, what to do next, and the progress.

import { make } from "../lib/dom.mjs";
import { formula, fraction, root, row, sub, sup } from "../widgets/formula.mjs";
import { canTrain, heading, pageLink, paragraph } from "./widgets/elements.mjs";
import { writeStatement } from "./teach/statement.mjs";
import { makeCell, makeRow, makeTable } from "../widgets/table.mjs";

/** @import { Lessons } from "./main.mjs" */
/** @import { Rung } from "./rung.js" */

/** @param {Lessons} lessons @param {Rung<any>[]} rungs */
export function lastPage(lessons, rungs) {
  return [
    make("h2", { tabindex: -1 }, "What you know now"),
    paragraph(
      "A whole GPT. Click a part of its picture, or of the formulas, to open the rung that explains it. The small " +
        "numbers in the formulas are rungs.",
    ),
    wholeFormula(lessons, rungs),
    heading("Three things to do next"),
    nextSteps(),
    heading("How far you have come"),
    ...progressOf(lessons, rungs),
    make("nav", { class: "hl-steps", "aria-label": "Previous and next" }, ...footer(lessons, rungs.length)),
  ];
}

/** The forward pass and the loss, line by line. @param {Lessons} lessons @param {Rung<any>[]} rungs */
function wholeFormula(lessons, rungs) {
  /** @param {number} rung @param {...(string | Element)} contents */
  const of = (rung, ...contents) => {
    const link = lessons.link(rung, row(...contents), make("sup", {}, rung));
    link.title = `Rung ${rung}: ${rungs[rung - 1].name}`;
    return link;
  };
  const lines = formula(
    ["ids", "=", of(1, "the tokens of a text")],
    ["x", "=", of(2, sub("E", "ids"), "+", sub("P", "positions"))],
    ["Q", ",", "K", ",", "V", "=", of(6, "y", sub("W", "Q"), ",", "y", sub("W", "K"), ",", "y", sub("W", "V"))],
    [
      ...["Z", "=", of(5, "softmax"), "("],
      of(6, fraction(row("Q", sup("K", "T")), root("head_dim"))),
      ...["+", of(7, "mask"), ")", of(4, "V")],
    ],
    [
      ...["Attention", "(", "y", ")", "="],
      of(
        8,
        "[",
        sub("Z", "0"),
        ";",
        "…",
        ";",
        sub("Z", row("n_head", "−", "1")),
        "]",
        sub("W", "out"),
        "+",
        sub("b", "out"),
      ),
    ],
    ["x", "→", of(9, "x", "+", "Attention", "(", "LayerNorm", "(", "x", ")", ")")],
    ["x", "→", of(9, "x", "+", "MLP", "(", "LayerNorm", "(", "x", ")", ")")],
    ["p", "=", of(10, "softmax", "(", "LayerNorm", "(", "x", ")", sup("E", "T"), ")")],
    ["loss", "=", of(3, "−", " mean of ln ", sub("p", "next token"))],
  );
  // Screen readers do not announce links inside a formula.
  for (const line of lines.children) line.setAttribute("role", "group");
  return make("div", {}, lines);
}

function nextSteps() {
  /** Open Ask as well, if there is a text to ask about. */
  const openAsk = () => {
    /** @type {HTMLButtonElement | null} */
    const button = document.querySelector('.hs-ask-button[aria-expanded="false"]');
    setTimeout(() => button?.click());
  };
  const ask = pageLink("look", "Ask");
  ask.addEventListener("click", openAsk);
  /** @param {Node} link @param {string} words */
  const step = (link, words) => make("li", {}, link, make("p", {}, words));
  const train = canTrain()
    ? step(
        pageLink("train", "Train"),
        "Train a small GPT on your own text. Watch its loss, next to that of a bigram model, and see what its heads " +
          "come to look at.",
      )
    : step(
        pageLink("use", "Use"),
        "Call the same models from a program, and get their texts, their probabilities and every attention weight.",
      );
  return make(
    "ul",
    { class: "hl-onward" },
    train,
    step(
      ask,
      "What does a head do? Mute it, or replace its output with the one from another text, and see which words of " +
        "the text become less likely.",
    ),
    step(
      pageLink("look", "Look"),
      "Write a text and watch all heads at once. Open one: you can now compute every weight in it yourself.",
    ),
  );
}

/** Predictions and exercises, rung by rung. @param {Lessons} lessons @param {Rung<any>[]} rungs */
function progressOf(lessons, rungs) {
  const { progress } = lessons;
  const results = rungs.map((rung, i) => {
    const tasks = rung.exercises.map((exercise, place) => progress.answerTo(`${i + 1}.${place}`, exercise));
    return {
      rung,
      number: i + 1,
      isSeen: progress.seen.includes(i + 1),
      predicted: progress.answers[i + 1]?.isRight ?? null,
      tasks: tasks.map((task) => (task?.isRight ? "solved" : task ? "tried" : "open")),
    };
  });
  const predicted = results.filter((result) => result.predicted).length;
  const all = results.flatMap((result) => result.tasks);
  const done = all.filter((task) => task === "solved").length;
  const seen = results.filter((result) => result.isSeen).length;
  const summary =
    `You have seen ${seen} of ${rungs.length} rungs, predicted ${predicted} of ${rungs.length} results and solved ` +
    `${done} of ${all.length} exercises, not counting those on your sentence. This is stored in your browser only.`;
  const rows = results.map(({ rung, number, isSeen, predicted: right, tasks }) => {
    const verdict = right === null ? "–" : right ? "✓ right" : "wrong";
    const solved = tasks.filter((task) => task === "solved").length;
    const marks = tasks.map((task) => make("i", { class: `hl-task hl-task-${task}` }));
    const cells = [
      makeCell([make("b", {}, lessons.link(number, `${number}. ${rung.name}`)), make("p", {}, rung.learned)]),
      makeCell(isSeen ? verdict : "not seen yet", { title: "Your prediction" }),
      makeCell([...marks, ` ${solved} of ${tasks.length}`], {
        title: `${solved} of ${tasks.length} exercises solved`,
      }),
    ];
    return makeRow(cells, { class: isSeen ? "hl-seen" : "" });
  });
  const titles = ["topic", "prediction", "exercises"];
  const table = makeTable({ titles, rows }, { class: "hl-progress", "aria-label": "Your progress" });
  const stated = results.map(({ isSeen, predicted: isRight, tasks }) => {
    return { isSeen, predicted: isRight, solved: tasks.map((task) => task === "solved") };
  });
  const code = make("p", {}, "To hand in, a code of your progress, without your name: ");
  code.append(make("code", {}, writeStatement(rungs, stated)));
  return [make("p", { class: "hl-count", role: "status" }, summary), make("div", { class: "hl-scroll" }, table), code];
}

/** @param {Lessons} lessons @param {number} last */
const footer = (lessons, last) => [lessons.linkTo(last, (title) => `← ${title}`), lessons.startOver()];
