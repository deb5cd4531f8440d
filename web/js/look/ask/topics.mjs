// The questions of Ask by what they are about, in the order in which they are listed.
//
// A question is a module beside this one that exports a `Question` (question.d.ts), and a row here. The panel
// (ask_panel.mjs) does the rest: it asks the server when the text or the request changes, shows the progress, stops,
// keeps answers, and says what went wrong, in which precision was computed and what the number does not mean. Links
// restore the question with its choices. knockout/knockout.mjs is an example with an overlay of the grid (overlay.mjs)
// and a sorted list of heads (head_list.mjs).

import { arithmetic } from "./questions/arithmetic.mjs";
import { feeding } from "./questions/feeding.mjs";
import { headLenses } from "./questions/head_use.mjs";
import { knockout } from "./questions/knockout.mjs";
import { logitLens } from "./questions/logit_lens.mjs";
import { mixingDesk } from "./questions/mixing_desk.mjs";
import { passages } from "./questions/passages.mjs";
import { patching } from "./questions/patching.mjs";
import { roles } from "./questions/roles.mjs";
import { whyToken } from "./questions/why_token.mjs";

/** @import { Question } from "./question.js" */

/** @type {Record<string, Question[]>} */
export const TOPICS = {
  "The selected token": [whyToken, logitLens, arithmetic],
  "The open head": [roles, headLenses, passages, feeding],
  "The whole text": [knockout, mixingDesk, patching],
};

export const QUESTIONS = Object.values(TOPICS).flat();
