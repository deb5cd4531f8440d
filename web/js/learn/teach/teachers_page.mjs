// The page for teachers. All it says of a rung is in the rung's file in content/.

import { make } from "../../lib/dom.mjs";
import { makeRow, makeTable } from "../../widgets/table.mjs";
import { canTrain, heading, paragraph } from "../widgets/elements.mjs";
import { answerTo } from "./answer_key.mjs";
import { handedIn } from "./handed_in.mjs";
import { PLANS } from "../content/plans.mjs";

/** @import { Lessons } from "../main.mjs" */
/** @import { Content } from "../rung.js" */

const TRAINING =
  "Thirty students can open one link within the same minute. If all of them press “Train”, they wait for each other: " +
  "a server trains one model at a time, unless it was started to train more (--max-trainings). Each takes 20 seconds " +
  "and some more to start, so the last of thirty waits for more than ten minutes. It is quicker to train one model " +
  "for all and to lend it: below the trained model, “Lend it to a class” gives a link.";

/** @param {Lessons} lessons @param {Content[]} rungs */
export function teachersPage(lessons, rungs) {
  return [
    make("h2", { tabindex: -1 }, "For teachers"),
    paragraph(
      "One question leads from rung 1 to rung 11: why did the model write “kite”? Students need a browser and " +
        "nothing else: no account, and their answers stay in their browser. At the end of each rung, “Copy a link " +
        "for a class” fixes a sentence and its settings for everyone, and “Worksheet to print” gives the rung’s " +
        "tables for that sentence on one page, with blanks to fill in, and their key on another.",
    ),
    ...PLANS.flatMap((plan) => planOf(lessons, rungs, plan)),
    ...(canTrain() ? [heading("A class that trains"), paragraph(TRAINING)] : []),
    ...handedIn(rungs),
    heading("Rung by rung"),
    paragraph("The minutes are those of a student who works alone, exercises included; ● marks the core."),
    ...rungs.map((rung, i) => ofRung(lessons, rung, i + 1)),
  ];
}

/** @param {Lessons} lessons @param {number} rung @param {string} text */
function pageLink(lessons, rung, text) {
  const link = lessons.link(rung, text);
  link.classList.add("hl-page-link");
  return link;
}

/** @param {Lessons} lessons @param {Content[]} rungs @param {import("../content/plans.mjs").Plan} plan */
function planOf(lessons, rungs, { minutes, stops, end }) {
  const rows = stops.map((stop) => {
    const link = pageLink(lessons, stop.rung, `${stop.rung}. ${rungs[stop.rung - 1].name}`);
    return makeRow([`${stop.minutes} min`, link, stop.what]);
  });
  rows.push(makeRow([`${end.minutes} min`, "End", end.what]));
  const table = makeTable({ name: `Plan for ${minutes} minutes`, rows }, { class: "hl-plan" });
  return [heading(`A plan for ${minutes} minutes`), make("div", { class: "hl-scroll" }, table)];
}

/** @param {Lessons} lessons @param {Content} content @param {number} rung */
function ofRung(lessons, { name, minutes, core, teacher, prediction, exercises }, rung) {
  const { goals, discuss, misconceptions } = teacher;
  const title = `${rung}. ${name}, ${minutes} min${core ? " ●" : ""}`;
  const beliefs = misconceptions.map(({ belief, instead }) => makeRow([`“${belief}”`, instead]));
  const key = [...(prediction ? [prediction] : []), ...exercises];
  return make(
    "details",
    { class: "hl-fold hl-of-rung" },
    make("summary", {}, title),
    make("h4", {}, "Afterwards, students can"),
    make("ul", {}, ...goals.map((goal) => make("li", {}, goal))),
    make("h4", {}, "To discuss"),
    paragraph(make("b", {}, discuss.ask), " ", discuss.answer),
    make("h4", {}, "What students may believe, and what is so"),
    makeTable({ name: "Misconceptions", rows: beliefs }, { class: "hl-plan" }),
    make("h4", {}, "Answer key"),
    make("ol", { class: "hl-key" }, ...key.map((question) => make("li", {}, ...answerTo(question)))),
    paragraph(pageLink(lessons, rung, "Open this rung")),
  );
}
