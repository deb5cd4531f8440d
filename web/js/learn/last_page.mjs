// After the last rung: what was learned, and how the predictions and exercises went.

import { make } from "../lib/dom.mjs";
import { EXERCISES } from "./exercises/exercises.mjs";
import { canTrain, heading, pageLink } from "./widgets/elements.mjs";

/** @import { Lessons } from "./lessons.mjs" */
/** @import { Rung } from "./rung.js" */

/** @param {Lessons} lessons @param {Rung[]} rungs */
export function lastPage(lessons, rungs) {
  const { progress } = lessons;
  const results = rungs.map((rung, i) => {
    const answered = progress.answers[i + 1];
    const tasks = EXERCISES[i].map((_, place) => progress.exercises[`${i + 1}.${place}`]);
    return {
      rung,
      number: i + 1,
      isSeen: progress.seen.includes(i + 1),
      predicted: answered === undefined ? null : answered === rung.question.right,
      done: tasks.filter((task) => task?.isRight).length,
      tasks: tasks.length,
    };
  });
  const predicted = results.filter((result) => result.predicted).length;
  const done = results.reduce((sum, result) => sum + result.done, 0);
  const tasks = results.reduce((sum, result) => sum + result.tasks, 0);
  const seen = results.filter((result) => result.isSeen).length;
  const summary =
    `You have seen ${seen} of ${rungs.length} rungs, predicted ${predicted} of ${rungs.length} results and solved ` +
    `${done} of ${tasks} exercises. This is kept in your browser and nowhere else.`;
  const items = results.map((result) => {
    const title = lessons.link(result.number, result.rung.name);
    const mark = { true: "predicted", false: "predicted otherwise", null: "not predicted" }[String(result.predicted)];
    const state = `${result.isSeen ? "seen" : "not seen yet"} · ${mark} · ${result.done} of ${result.tasks} exercises`;
    const item = make("li", { class: result.isSeen ? "hl-seen" : "" });
    item.append(make("b", {}, title), make("p", {}, result.rung.learned), make("small", {}, state));
    return item;
  });
  return [
    make("h2", { tabindex: -1 }, "What you know now"),
    make("p", { class: "hl-count", role: "status" }, summary),
    make("ol", { class: "hl-learned" }, ...items),
    heading("Where to go from here"),
    make(
      "ul",
      { class: "hl-onward" },
      make(
        "li",
        {},
        pageLink("look", "Write & Look"),
        ": all heads of a model while it writes, in the numbers that ",
        done === tasks ? "you can now compute by hand." : "these rungs compute step by step.",
      ),
      ...(canTrain()
        ? [
            make(
              "li",
              {},
              pageLink("train", "Train your own GPT"),
              ": a minute on a text of yours, and its heads form while you watch.",
            ),
          ]
        : []),
      make("li", {}, pageLink("use", "Use"), ": how to call the same model from a program."),
    ),
    make("nav", { class: "hl-steps", "aria-label": "Previous and next" }, ...footer(lessons, rungs.length)),
  ];
}

/** @param {Lessons} lessons @param {number} last */
const footer = (lessons, last) => [lessons.linkTo(last, (title) => `← ${title}`), lessons.startOver()];
