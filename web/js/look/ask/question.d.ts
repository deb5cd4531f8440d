/** What a question of Ask is made of. Types only: browsers never load this file. */

import type { PictureId } from "../../types.js";
import type { Questions } from "./lens.js";
import type { Store } from "../state/store.mjs";
import type { Mixer } from "./mixer.mjs";

/** A line on the grid from one head to another; `part` of the greatest width, from 0 to 1. */
export interface Arc {
  from: PictureId;
  to: PictureId;
  part: number;
}

/** A number for every head, shown in the grid instead of the attention. */
export interface Overlay {
  /** What the numbers are, with their unit. */
  title: string;
  /** `[layer][head]`; null for a head that has none. */
  values: (number | null)[][];
  /** The value with the strongest colour. */
  most: number;
  /** `change`: from -most to most, with the middle at 0. Any other ramp: from 0 to most. */
  ramp: "change" | "looks";
  /** A value in the few characters that a tile has room for. */
  short(value: number): string;
  /** The same in full, with its unit. */
  long(value: number): string;
  /** What the ends of the ramp mean, in a few words: left and right. */
  ends: [string, string];
  /** Lines over the tiles. */
  arcs?: Arc[];
}

/** What a question is told about, and what it may do. */
export interface AskContext {
  readonly store: Store;
  /** Which heads are muted or scaled while the mixing desk is open. */
  readonly mixer: Mixer;
  /** What was chosen for it, `defaults` where nothing was. Letters, digits, - and _ only, since links hold it. */
  readonly choices: Record<string, string>;
  choose(changes: Record<string, string>): void;
  /** Show the answer in one plain sentence above everything else, followed by `more`. */
  conclude(words: string, more?: string): void;
  /** Colour the grid; null leaves it to the attention. */
  overlay(overlay: Overlay | null): void;
}

/** What the server is asked: a name below `v1/lens/` with the body of a POST, or with the query of a GET. */
export type AskRequest = {
  [Name in keyof Questions]: Questions[Name] extends { method: "POST"; body: infer Body }
    ? { route: Name; body: Body; query?: undefined }
    : { route: Name; body?: undefined; query: { [field in keyof Questions[Name]["body"]]?: string } };
}[keyof Questions];

export interface BuiltQuestion {
  /** What a visitor can choose, above the answer. */
  controls: Node[];
  /** The answer. */
  element: HTMLElement;
  /**
   * What to ask the server now, a sentence saying why there is nothing to ask, or null for a question that finds its
   * answer itself. A request that differs from the previous one is sent.
   */
  request(): AskRequest | string | null;
  /** Draw the answer, for the text, head, step and choices of now; called again whenever one of them changes. */
  draw(answer: any): void;
}

export interface Question {
  /** Its name in links. */
  key: string;
  title: string;
  /** What a visitor gets to know, in plain words: in the list of questions. */
  hook: string;
  /** What is computed, in one line. */
  explanation: string;
  /** What the number does not mean, in one line. */
  caution: string;
  defaults: Record<string, string>;
  build(context: AskContext): BuiltQuestion;
}
