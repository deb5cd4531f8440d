/** The parts of a rung of the ladder. Types only: browsers never load this file. */

import type { Data } from "./data.js";
import type { Diagram } from "./widgets/diagram.mjs";
import type { Stop } from "./widgets/steps.mjs";

export interface Prediction {
  ask: string;
  options: string[];
  /** The index of the right option. */
  right: number;
  why: string;
  /** What tells it from a question in the same words about something else. */
  about?: string;
}

/**
 * A task after the picture. After the first wrong answer the hint is shown; from the second on, the visitor can ask
 * for the worked answer.
 */
export type Exercise = {
  hint: string;
  /** Another one, after a second wrong answer. */
  second?: string;
  /** The title of the step that it follows; without one it stands at the end, folded. */
  after?: string;
  /** Whether it asks for something on the page, so that no worksheet has it. */
  onScreen?: true;
  /** Whether it is about what only ``deeper`` explains, so that no worksheet has it. */
  extra?: true;
} & (
  | ({ kind: "choice"; /** To each option, empty for the right one. */ replies?: string[] } & Prediction)
  | {
      kind: "many";
      ask: string;
      options: string[];
      right: number[];
      /** To each option, if it is chosen wrongly or left out. */
      replies: string[];
      why: string;
    }
  | {
      kind: "number";
      ask: string;
      right: number;
      alsoRight?: number[];
      tolerance: number;
      /** What known mistakes lead to, and what to say of each. */
      mistakes?: { number: number; reply: string }[];
      why: string;
    }
  | { kind: "order"; ask: string; steps: string[]; why: string }
);

/** The visitor's latest answer, and whether it was right. */
export interface Answered {
  answer: number | number[];
  isRight: boolean;
  /** How many answers were wrong. */
  wrong: number;
  /** The visitor has asked for the worked answer. */
  isShown?: boolean;
}

/** The visitor's settings on a rung; sent to the server with the sentence. */
export type Settings = Record<string, any>;

/** The open rung, as its builder sees it. */
export interface Lesson {
  readonly sentence: string;
  readonly options: Settings;
  /** Settings of all rungs: where the numbers of the words come from, and those that the visitor has changed. */
  readonly shared: Settings;
  /** State that the rung keeps while others are open. */
  readonly kept: Record<string, any>;
  /** Change settings: the server recomputes the rung. */
  set(changes: Settings): Promise<void>;
  /** Change what all rungs share. */
  share(changes: Settings): Promise<void>;
  /** Sentence, model and shared settings, which every request about the sentence has. */
  readonly about: Settings;
  /** These and the settings of the rung, as they are sent to the server. */
  readonly body: Settings;
  /** The picture of a whole GPT in the margin. */
  readonly diagram: Diagram;
  /** The number of the rung. */
  readonly rung: number;
  /** Use another sentence on all rungs. */
  read(sentence: string): void;
  /** The numbers have changed without `set` or `share`. */
  renew(): void;
  /** Open another rung. */
  go(rung: number): void;
  /** Ask another question as the prediction before the picture. An answer to the one before does not count. */
  rephrase(prediction: Prediction): void;
}

/** `Numbers`: those that the server sends. */
export interface BuiltRung<Numbers> {
  formula: Node;
  /** What its module draws; the rung's content names each part where it is to be. */
  parts: Record<string, Node | Node[]>;
  /** Explains a number of the parts. */
  explanation?: Node;
  /** Show the server's answer. */
  update(data: Numbers): void;
  /** The way of one number through the rung, from a word to the result. */
  play?(): Stop[];
  /** The settings of its notebook, where they are not those of the lesson. */
  notebook?(): object;
  /** Called when another rung is opened. */
  leave?(): void;
}

/** `Key` names its numbers and its source code on the server. */
/** A paragraph, a heading (after “# ”), or parts that the rung's module draws, by name. */
export type Entry =
  string | { show: string } | { row: string[] } | { controls: string[] } | { remarks: string; items: string[] };

export interface Step {
  title: string;
  text: Entry[];
  /** The names of the parts of the figure that are shown with it. */
  show: string[];
  /** Which of the rung's stops the followed number has reached; a negative number counts from the last. */
  follow?: number;
  /** The name of the part that it is about, unless that is the table of the followed number. */
  about?: string;
}

/** What the page for teachers says of a rung. */
export interface ForTeachers {
  /** What a student can do afterwards. */
  goals: string[];
  /** A question to the class, and what a good answer says. */
  discuss: { ask: string; answer: string };
  misconceptions: { belief: string; instead: string }[];
}

/** A table of the worksheet, for the student's own sentence. */
export interface SheetTable {
  /** A matrix of the rung's numbers ("a.b" is within "a"), or a table that ``teach/worksheet_tables.mjs`` makes. */
  table: string;
  /** What it shows, and what to fill in. */
  text: string;
  /**
   * Rows of a matrix that are left blank, counted from 0; "unlike" is the row of the word whose numbers `x` resemble no
   * other word's, so that its row resembles no other row.
   */
  blank?: number[] | "unlike";
  /** Whether the blank rows are all that is printed, so that more fits on the page. */
  alone?: true;
  /** What its rows are called, if not the words. */
  rows?: "numbers";
}

/** The words of a rung: what its file in content/ holds. */
export interface Content {
  name: string;
  /** What its main path and its exercises take. */
  minutes: number;
  /** For a visitor with little time. */
  core: boolean;
  /** The lesson of the rung, in one sentence. */
  learned: string;
  /** What its notebook does, if not print the numbers of the page. */
  notebookDoes?: string;
  /** Absent if it is made from the server's answer: see ``rephrase``. */
  prediction?: Prediction;
  /** The main path: what is read, and the parts of the figure that stand beside it. */
  steps: Step[];
  /** The question that leads to the next rung. */
  next: string;
  /** All that the figure can show, in its order. */
  figure: Entry[];
  /** What is not on the main path, folded. */
  deeper: { topics: string; parts: Entry[] };
  /** What stands after it. */
  after?: Entry[];
  teacher: ForTeachers;
  worksheet: SheetTable[];
  /** The keys of a calculator that the worksheet needs. */
  calculator?: string;
  exercises: Exercise[];
}

export interface Rung<Key extends keyof Data> extends Content {
  key: Key;
  /** The first settings. */
  options: () => Settings;
  /**
   * The first values of what the visitor chooses apart from the options. They are in `kept`; a link for a class fixes
   * them, too.
   */
  choices?: () => Settings;
  /** The options that mean nothing for another sentence. */
  ofSentence?: string[];
  /** A task about the numbers that the rung shows; null if there are too few. */
  own(data: Data[Key], lesson: Pick<Lesson, "sentence" | "kept">): Exercise | null;
  /** Show the picture before the server has answered, because only a button starts the computation. */
  waitsForClick?: boolean;
  /** Whether its numbers are those of a loaded model, so that its notebook needs the model's folder. */
  followsModel?: boolean;
  build(lesson: Lesson): BuiltRung<Data[Key]>;
}
