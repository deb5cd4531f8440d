// The exercises of all rungs.

import { ATTENTION } from "./attention.mjs";
import { MODEL } from "./model.mjs";
import { TEXT } from "./text.mjs";

/** @type {import("../rung.js").Exercise[][]} by rung */
export const EXERCISES = [...TEXT, ...ATTENTION, ...MODEL];
