/** What a rung of the ladder is made of. Types only: browsers never load this file. */

export interface Question {
  ask: string;
  options: string[];
  /** The index of the right option. */
  right: number;
  why: string;
}

/** What a visitor has set on a rung; sent to the server with the sentence. */
export type Settings = Record<string, any>;

/** The open rung, as its builder sees it. */
export interface Lesson {
  readonly sentence: string;
  readonly options: Settings;
  /** What the rung wants to find again when it is opened once more. */
  readonly kept: Record<string, any>;
  /** Change settings: the server recomputes the rung. */
  set(changes: Settings): Promise<void>;
}

export interface BuiltRung {
  text: Node[];
  formula: Node;
  picture: Node[];
  /** Show the server's answer. */
  update(data: any): void;
  /** Another rung is opened. */
  leave?(): void;
  /** Another model is chosen at the top of the page. */
  changeModel?(model: string | null): void;
}

export interface Rung {
  name: string;
  /** The first settings, which may depend on the sentence and the model. */
  options: (isBook: boolean, model: string | null) => Settings;
  question: Question;
  build(lesson: Lesson): BuiltRung;
}
