// The states of a text, as the server's pointer names them.

/** @import { Pointer, PointerState } from "../types.js" */

/** While the server is about to write a text or writes it. @param {PointerState} state */
export const isBusy = (state) => state === "waiting" || state === "writing";

const GIVEN = ["opening", "linked", "snapshot", "read"];

/** A text that was not written just now: an opening, a linked one, or one read again. @param {PointerState} state */
export const isGiven = (state) => GIVEN.includes(state);

/**
 * Whether a visitor gave all of a text: one that a model wrote has a seed.
 * @param {Pick<Pointer, "state" | "settings">} text
 */
export const isOwn = ({ state, settings }) => isGiven(state) && typeof settings.seed !== "number";
