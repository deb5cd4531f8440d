/** The shapes that several modules share. Types only: browsers never load this file. */

/** A token as the server sends it; `logprob` is null where the model did not predict it. */
export interface Token {
  id: number;
  text: string;
  logprob: number | null;
}

/** A cell of a picture; without a key it means the whole row of the query. */
export interface Cell {
  query: number;
  key?: number | null;
}

/** A cell with both its parts; `key` is null for a query that the model has not read yet. */
export interface Focus {
  query: number;
  key: number | null;
}

/** A picture: its layer, and its head or the column of the layer's mean or rollout. */
export type Place = [layer: number, column: number];

export type PointerState =
  | "loading"
  | "none"
  | "opening"
  | "linked"
  | "snapshot"
  | "read"
  | "waiting"
  | "writing"
  | "done"
  | "stopped"
  | "failed";

export interface BranchInfo {
  of: string;
  at: number;
  token: string;
  instead: string;
}

/** Where the server points (web/page/pointer.py): a run and how far it is. Without a run, `run` is "". */
export interface Pointer {
  state: PointerState;
  run: string;
  tokens: number;
  rows: number;
  rate: number;
  n_prompt: number;
  earlier: string;
  model: string;
  sha256: string;
  n_layer: number;
  n_head: number;
  context_length: number;
  settings: Record<string, unknown>;
  notices: string[];
  head: Place | null;
  branch: BranchInfo | null;
  note: string; // about who wrote the text
  why: string | null;
  written?: number;
  /** The tokens that the pointer before did not have. */
  new?: Token[];
  /** When the newest token was written, in seconds since the epoch. */
  at?: number;
  suggested_heads: FittingHead[];
  training_step?: number;
  /** Whether the server trains a GPT for a visitor meanwhile, which slows it down. */
  training?: boolean;
  /** The run that another text with the same prompt is shown beside. */
  beside: string;
  /** What each head's context vectors were multiplied by, `[layer][head]`; null where nothing was changed. */
  head_mask: number[][] | null;
}

/** The head of an opening that fits a role best, and its mean attention weight there. */
export interface FittingHead {
  role: "previous_token" | "induction" | "first_token";
  head: Place;
  score: number;
}

/** What training kept of a model (web/serving/snapshots.py). */
export interface TrainingReport {
  steps: number[];
  /** The step whose weights are the model's, where that is known; else they are the last. */
  kept?: number | null;
  history?: { step: number; train_loss: number; validation_loss: number }[];
  heads?: { step: number; induction: number[][]; previous_token: number[][] }[];
}

/** A model as the server describes it. */
export interface ModelInfo {
  name: string;
  facts: string;
  about: string;
  /** The training steps after which weights were kept. */
  steps: number[];
}

/** A pointer as the server sends it, which leaves out what it has nothing to say about. */
export type SentPointer = Partial<Pointer> & { state: PointerState };

/** The header of a frame (web/runs/frame.py). */
export interface FrameHeader {
  rows: number;
  factor: number;
  first: number;
  start: number;
  pictures: number;
  tokens: string[];
  ids: number[];
  logprobs: (number | null)[];
}

export interface Frame {
  header: FrameHeader;
  metrics: Float32Array;
  thumbnails: Uint8Array;
}

export type ScaleName = "sqrt" | "linear" | "log" | "row";
export type ModeName = "matrix" | "text" | "lines";
export type MetricName = "entropy" | "distance" | "first" | "previous";

/** What a visitor chooses about how to look; defaults in lib/options.mjs. */
export interface Options {
  mode: ModeName;
  heads: "whole" | "step";
  scale: ScaleName;
  hideFirst: boolean;
  threshold: number;
  metric: MetricName;
  sorted: "" | "high" | "low";
  least: number;
  most: number;
  ask: string;
  askWith: string;
  summaries: boolean;
  surprise: boolean;
}

export type ScaleOptions = Pick<Options, "scale" | "threshold" | "hideFirst">;

/** A setting of the page, from the server's table of options (web/page/controls.py); the seed has no slider. */
export interface Control {
  name: string;
  /** Its name in links. */
  word: string;
  label?: string;
  help: string;
  least?: number;
  most?: number;
  step?: number;
  start?: number;
}

/** A text as a link holds it. */
export interface LinkedText extends KnownText {
  model: string;
  open: Place;
  settings: Record<string, unknown>;
}

/** What a link is made from. */
export interface LinkState extends LinkedText {
  locked: Cell[];
  step: number | null;
  options: Options;
  /** The text that it is compared with. */
  second?: LinkedText | null;
}

/** The browser's part of a link, with the words that could not be read. */
export interface LinkedView {
  options: Partial<Options>;
  open: Place | null;
  /** The picture that is open of a second text. */
  openSecond: Place | null;
  locked: Cell[];
  step: number | null;
  unreadable: string[];
}

/** The tokens of a text that the server needs to recompute its run. */
export interface KnownText {
  sha256: string;
  ids: number[];
  n_prompt: number;
  head_mask: number[][] | null;
}

/** What a workspace asks of the page. */
export interface TextActions {
  /** Write another text from a token on, beside this one. */
  branch(data: object): void;
  /** End a text that is no longer shown. */
  halt(run: string): void;
  /** Write another text from the same prompt, beside this one. */
  another(run: string): void;
  /** Compare the text with another one, or with itself, read by another model or snapshot, or with heads scaled. */
  readAgain(reading: Reading): void;
  /** Compare the text with one that is given; why that cannot be read, or "". */
  readText(text: string): Promise<string>;
  /** Write the text at hand with all heads and with heads scaled, side by side; null where one is written at a time. */
  writeScaled: (mask: number[][] | null) => void;
  /** Read the text on the right once more, with heads scaled. */
  scaleHeads(mask: number[][] | null): void;
  /** The models that are served. */
  models(): ModelInfo[];
  /** Choose the heads to mute with the grid. */
  startMuting(): void;
}

/** Who reads a text once more: a model or NAME@STEP, and what scales its heads. */
export interface Reading {
  model: string;
  head_mask: number[][] | null;
  /** Another text, all of which was given: the one at hand without. */
  ids?: number[];
  n_prompt?: number;
}

/** As much of a text as a scrubber needs, or of two texts with one clock. */
export interface ScrubSource {
  readonly pointer: { readonly run: string };
  readonly playback: Pick<
    import("./look/state/playback.mjs").Playback,
    "skip" | "isBehind" | "isPaused" | "pause" | "setSpeed"
  >;
  readonly isGrowing: boolean;
  readonly length: number;
  readonly step: number | null;
  readonly firstStep: number;
  readonly chosen: number | null;
  goto(step: number | null): void;
  on(topics: string, callback: () => void): void;
}

/** As much of a store as a matrix needs. */
export interface MatrixSource {
  readonly view: { readonly options: Options };
  readonly tokens: Token[];
  readonly weights: import("./lib/triangle.mjs").HeadWeights;
  readonly count: number;
  readonly openName: string;
  readonly step: number | null;
  readonly focus: Focus | null;
  readonly queries: number[];
  readonly locked?: Cell[]; // their numbers are written in full
  point(cell: Cell | null): void;
  lock(cell: Cell | null, more?: boolean): void;
  on(topics: string, callback: () => void): void;
}
