// The questions of Ask by what they are about, in the order in which they are listed. The line under the sentence
// offers the first three about what is selected.
//
// A question is a module in questions/ that exports a `Question` (question.d.ts), and an entry here. The panel
// (ask_panel.mjs) does the rest: it asks the server when the text or the request changes, shows the progress, stops,
// keeps answers, and shows errors, the precision and the caution. Links restore the question with its choices.
// questions/knockout.mjs is an example: numbers on the tiles (panels/overlay.mjs) and a list of heads (head_list.mjs).

import { attribution } from "./questions/attribution.mjs";
import { circuit } from "./questions/circuit.mjs";
import { feeding } from "./questions/feeding.mjs";
import { oneHead } from "./questions/one_head.mjs";
import { knockout } from "./questions/knockout.mjs";
import { ledger } from "./questions/ledger.mjs";
import { logitLens } from "./questions/logit_lens.mjs";
import { many } from "./questions/many.mjs";
import { mixingDesk } from "./questions/mixing_desk.mjs";
import { passages } from "./questions/passages.mjs";
import { patching } from "./questions/patching.mjs";
import { roles } from "./questions/roles.mjs";

/** @import { Question } from "./question.js" */

/** @type {Record<"word" | "head" | "text" | "prompts", Question[]>} */
export const QUESTIONS_BY_TOPIC = {
  word: [attribution, logitLens, ledger],
  head: [roles, oneHead, feeding, passages],
  text: [knockout, mixingDesk, patching],
  prompts: [many, circuit],
};

export const QUESTIONS = Object.values(QUESTIONS_BY_TOPIC).flat();
