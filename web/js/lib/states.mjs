// The states of a text, as the server's pointer names them.

/** @import { PointerState } from "../types.js" */

/** While the server is about to write a text or writes it. @param {PointerState} state */
export const isBusy = (state) => state === "waiting" || state === "writing";

/** A text shown on opening the page or a model, or from a link. @param {PointerState} state */
export const isGiven = (state) => state === "opening" || state === "linked";
