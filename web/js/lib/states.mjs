// The states of a text, as the server's pointer names them.

/** @import { PointerState } from "../types.js" */

/** While the server is about to write a text or writes it. @param {PointerState} state */
export const isBusy = (state) => state === "waiting" || state === "writing";

const GIVEN = ["opening", "linked", "snapshot", "read"];

/** A text that was not written just now: an opening, a linked one, or one read again. @param {PointerState} state */
export const isGiven = (state) => GIVEN.includes(state);
