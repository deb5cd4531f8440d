// The questions of Ask by what they are about, in the order in which they are listed.
//
// A question is a module beside this one that exports a `Question` (question.d.ts), and a row here. The panel
// (ask_panel.mjs) does the rest: it asks the server when the text or the request changes, shows the progress, stops,
// keeps answers, and says what went wrong, in which precision was computed and what the number does not mean. Links
// restore the question with its choices. knockout/knockout.mjs is an example with an overlay of the grid (overlay.mjs)
// and a sorted list of heads (head_list.mjs).

import { mixingDesk } from "./desk/mixing_desk.mjs";
import { feeding } from "./feeding/feeding.mjs";
import { knockout } from "./knockout/knockout.mjs";
import { passages } from "./passages/passages.mjs";
import { patching } from "./patching/patching.mjs";
import { arithmetic } from "./prediction/arithmetic.mjs";
import { headLenses } from "./prediction/head_lenses.mjs";
import { layers } from "./prediction/layers.mjs";
import { whyToken } from "./prediction/why_token.mjs";
import { roles } from "./roles/roles.mjs";

/** @import { Question } from "./question.js" */

/** @type {Record<string, Question[]>} */
export const TOPICS = {
  "The selected token": [whyToken, layers, arithmetic],
  "The open head": [roles, headLenses, passages, feeding],
  "The whole text": [knockout, mixingDesk, patching],
};

export const QUESTIONS = Object.values(TOPICS).flat();
