/** The parts of a question of Ask. Types only: browsers never load this file. */

import type { Beside, Overlay } from "../../types.js";
import type { AskRequest } from "../state/ask_server.mjs";
import type { ShownText } from "../state/shown_text.mjs";
import type { Mixer } from "../state/mixer.mjs";

/** What a question can read and do. */
export interface AskContext {
  readonly store: ShownText;
  /** Which heads are muted or scaled while the mixing desk is open. */
  readonly mixer: Mixer;
  /** What opens another text next to this one; null in a file. */
  readonly beside: Beside | null;
  /** The visitor's choices, with `defaults` for the rest. Letters, digits, - and _ only, since links contain them. */
  readonly choices: Record<string, string>;
  choose(changes: Record<string, string>): void;
  /** Show the answer in one plain sentence above everything else, followed by `more`. */
  conclude(words: string, more?: string): void;
  /** Colour the grid; null shows the attention. */
  overlay(overlay: Overlay | null): void;
}

/**
 * What is sent to the server, a sentence saying why there is nothing to ask, or null for a question that finds its
 * answer without the server.
 */
export type Asked = AskRequest | string | null;

export interface BuiltQuestion {
  /** The visitor's controls, between the sentence of the answer and its picture. */
  controls: Node[];
  /** The one picture of the answer, between its sentence and its caveat. */
  picture?: HTMLElement;
  /** The numbers of the answer: folded below its picture, in the picture's place where there is none. */
  element: HTMLElement;
  /** What is to be asked. A request that differs from the previous one is sent. */
  request(): Asked;
  /** Draw the answer for the current text, head, step and choices; called again whenever one of them changes. */
  draw(answer: any): void;
  /** Draw what is known before the answer, in the picture's place; null for nothing yet. */
  grow?(known: any): void;
}

export interface Question {
  /** Its name in links: that of its route, where it has one. */
  key: string;
  title: string;
  /** What the visitor learns, in plain words; shown in the list of questions. */
  hook: string;
  /** What is computed, briefly. */
  explanation: string;
  /** What the numbers do not mean, briefly. */
  caution: string;
  defaults: Record<string, string>;
  build(context: AskContext): BuiltQuestion;
}
