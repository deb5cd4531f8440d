// The turns of a conversation in its text: whose words a token belongs to, where the chat template knows.

import { make } from "../../lib/dom.mjs";

/** @import { ChatMessage, Pointer } from "../../types.js" */

/** @typedef {{ role: ChatMessage["role"], start: number, end: number }} Turn */

export class Turns {
  /** @type {Turn[]} */
  #turns = [];

  /** @param {Pick<Pointer, "chat" | "n_prompt">} text */
  constructor({ chat, n_prompt }) {
    const known = (chat ?? []).filter(({ start }) => start !== null);
    if (known.length) {
      this.#turns = [.../** @type {Turn[]} */ (known), { role: "assistant", start: n_prompt, end: Infinity }];
    }
  }

  /** The role whose turn begins with a token; undefined for any other token. @param {number} position */
  roleAt(position) {
    return this.#turns.find(({ start }) => start === position)?.role;
  }

  /** Whether the template wrote a token: it belongs to no turn. @param {number} position */
  isMarker(position) {
    return this.#turns.length > 0 && !this.#turns.some(({ start, end }) => start <= position && position < end);
  }
}

/**
 * The label at the beginning of a turn, on a line of its own turn. It has no text, so that the text stays unchanged.
 * @param {ChatMessage["role"]} role
 * @param {boolean} isFirst whether the text begins with it
 */
export const roleLabel = (role, isFirst) =>
  make("span", {
    class: isFirst ? "hs-role" : "hs-role hs-on-new-line",
    role: "img",
    "aria-label": `Turn: ${role}`,
    "data-role": role,
  });
