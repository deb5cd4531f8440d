/** The shapes that several modules share. Types only: browsers never load this file. */

import type { HeadRole } from "./lens.js";

/** A token as the server sends it; `logprob` is null where the model did not predict it. */
export interface Token {
  id: number;
  text: string;
  /** What it shows by itself, if it holds only a part of some character. */
  bytes?: string;
  logprob: number | null;
}

/** A cell of a picture; without a key, the whole row of the query. */
export interface Cell {
  query: number;
  key?: number | null;
}

/** A cell with both parts; `key` is null for a query that the model has not read yet. */
export interface Focus {
  query: number;
  key: number | null;
}

/** A picture: its layer, and its head or the column of the layer's mean or rollout. */
export type PictureId = [layer: number, column: number];

export type PointerState =
  | "loading"
  | "none"
  | "opening"
  | "linked"
  | "snapshot"
  | "read"
  | "saved"
  | "waiting"
  | "writing"
  | "done"
  | "stopped"
  | "failed";

/** A message of a conversation (web/page/chat.py), and its tokens in the prompt if they are known. */
export interface ChatMessage {
  role: "system" | "user" | "assistant";
  content: string;
  start: number | null;
  end: number | null;
}

/** A message as the page sends it: with its content, or the token ids of an answer. */
export type SentMessage = Pick<ChatMessage, "role"> & { content?: string; ids?: number[] };

/** A message in a link: its role and its tokens, then its content unless that is the text of those. */
export type LinkedMessage = [ChatMessage["role"], number | null, number | null, string?];

export interface BranchInfo {
  of: string;
  at: number;
  token: string;
  instead: string;
}

/** What the server points to (web/page/pointers.py): a run and its progress. `run` is "" if there is none. */
export interface Pointer {
  state: PointerState;
  run: string;
  tokens: number;
  rows: number;
  rate: number;
  n_prompt: number;
  earlier: string;
  /** What the vocabulary puts before every prompt, as the first tokens show it; older prepared first screens lack it. */
  before?: string;
  model: string;
  sha256: string;
  n_layer: number;
  n_head: number;
  n_kv_head?: number; // heads of keys and values, each shared by a group of heads; unknown for weights from elsewhere
  rotary?: boolean; // whether queries and keys are rotated by their positions
  qk_norm?: boolean; // whether each query and key is normalised
  windows?: (number | null)[]; // of each layer, how many tokens a query sees, itself included; null: all
  context_length: number;
  settings: Record<string, unknown>;
  notices: string[];
  head: PictureId | null;
  branch: BranchInfo | null;
  /** The messages that the prompt was made from; null if it is no conversation. */
  chat: ChatMessage[] | null;
  /** The ids of the special tokens in the text. */
  special: number[];
  note: string; // about who wrote the text
  why: string | null;
  written?: number;
  /** The tokens that are new since the previous pointer. */
  new?: Token[];
  /** When the newest token was written, in seconds since the epoch. */
  at?: number;
  suggested_heads: FittingHead[];
  training_step?: number;
  /** Whether the server is also training a GPT for a visitor, which slows it down. */
  training?: boolean;
  /** The run next to which a second text with the same prompt is shown. */
  beside: string;
  /** The factor of each head's context vectors, `[layer][head]`; null if none is scaled. */
  head_mask: number[][] | null;
}

/** The head that fits a role best in an opening, and its mean attention weight there. */
export interface FittingHead {
  role: "previous_token" | "induction" | "first_token";
  head: PictureId;
  score: number;
}

/** The snapshots that training kept of a model (web/serving/snapshots.py). */
export interface TrainingReport {
  steps: number[];
  /** Those that open without a download. */
  on_disk?: number[];
  /** The step whose weights the model has, if known; otherwise the last one. */
  kept?: number | null;
  history?: { step: number; train_loss: number; validation_loss: number }[];
  heads?: { step: number; induction: number[][]; previous_token: number[][] }[];
  /** Whether more scores of heads are being computed. */
  scoring?: boolean;
}

/** A model as the server describes it. */
export interface ModelInfo {
  name: string;
  /** In a word or two, what it writes; "" unless its checkpoint says so. */
  label: string;
  facts: string;
  about: string;
  /** Whether it has a chat template. */
  chat: boolean;
  /** The sampling settings that its checkpoint recommends, by name. */
  sampling: Record<string, number>;
  /** Whether its words begin with the space before them. */
  spaced: boolean;
  /** The training steps after which weights were kept. */
  steps: number[];
  /** When a lent model is deleted at the latest, in seconds since 1970; 0 for all others. */
  until: number;
}

/** A pointer as the server sends it: fields that do not apply are left out. */
export type SentPointer = Partial<Pointer> & { state: PointerState; ids?: number[] };

/** The header of a frame (model/drawing/frame.py). */
export interface FrameHeader {
  rows: number;
  factor: number;
  first: number;
  start: number;
  pictures: number;
  tokens: string[];
  ids: number[];
  logprobs: (number | null)[];
  bytes?: Record<number, string>;
}

export interface Frame {
  header: FrameHeader;
  metrics: Float32Array;
  thumbnails: Uint8Array;
}

export type ScaleName = "sqrt" | "linear" | "log" | "row";
export type ModeName = "matrix" | "text" | "lines";
export type MetricName = "entropy" | "distance" | "first" | "previous";

/** The visitor's options for the view; defaults in lib/options.mjs. */
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
  off: string;
  details: boolean;
}

export type ScaleOptions = Pick<Options, "scale" | "threshold" | "hideFirst">;

/** A setting of the page, from the server's table of options (`CONTROLS` in web/page/link.py); the seed has no slider. */
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
  open: PictureId;
  settings: Record<string, unknown>;
}

/** The data that a link is made from. */
export interface LinkState extends LinkedText {
  locked: Cell[];
  step: number | null;
  options: Options;
  chat?: LinkedMessage[];
  /** The text it is compared with. */
  second?: LinkedText | null;
}

/** The browser's part of a link, with the parameters that could not be read. */
export interface LinkedView {
  options: Partial<Options>;
  open: PictureId | null;
  /** The open picture of the second text. */
  openSecond: PictureId | null;
  locked: Cell[];
  step: number | null;
  unreadable: string[];
}

/** The data from which the server can recompute the run of a text. */
export interface KnownText {
  sha256: string;
  ids: number[];
  n_prompt: number;
  head_mask: number[][] | null;
}

/** A continuation that leaves a text (`parse_branch` in web/page/writer.py). */
export interface Branch {
  of: string;
  model: string;
  sha256: string;
  n_prompt: number;
  /** The last one is the other token. */
  ids: number[];
  instead: number | null;
}

/** What writes texts: the page. */
export interface Writing {
  /** Write a second text from a token on, shown next to this one. */
  branch(data: Branch): void;
  /** Write a second text from the same prompt, shown next to this one. */
  writeAnother(): void;
  /** Write the current text as it is and with heads scaled, side by side: from its prompt, or its first tokens. */
  writeScaled(mask: number[][] | null, n_given?: number): void;
  /** Write another text in the place of this one; or, in a conversation, its next answer. */
  writeText(text: string, isMessage: boolean): void;
  /** Let the model read another text in the place of this one. Rejects where it cannot. */
  readText(text: string): Promise<void>;
  /** Let the model write on from the end of this text. */
  goOn(): void;
  /** Stop the texts that are being written, with what is shown of them. */
  stop(): void;
}

/** The sampling settings of the next text. */
export interface Sliders {
  readonly values: Record<string, number>;
  /** Call back whenever one is moved. */
  on(callback: () => void): void;
}

/** What shows another text next to this one. */
export interface Beside {
  readonly writing: Writing;
  readonly rereads: {
    /** Read this text with a mask, next to the text as it is. */
    withMask(head_mask: number[][] | null): void;
    /** Read a text next to this one; `why` is the answer of Ask that led to it. */
    ofText(ids: number[], why: string): void;
  };
}

/** A text in an HTML file (model/drawing/drawing.py). Strings that hold numbers are compressed, in base64. */
export interface SavedText {
  pointer: SentPointer;
  /** Whether the weights are float32, and not half precision. */
  exact: boolean;
  frame: string;
  /** How many keys each query sees, the later ones too; 0 if it sees those up to itself. */
  n_keys: number;
  /** Of all heads, each as a lower triangle or a rectangle. */
  weights: string;
  /** 0 for attention without its model: there are no logits. */
  vocab_size: number;
  /** The texts of tokens by id. */
  vocabulary: Record<string, string>;
  /** All logits, with sliders for the next-token bars; else ids and log-probabilities of the likeliest tokens. */
  logits?: string;
  controls?: Control[];
  likeliest?: string;
  logprobs?: string;
}

/** What was on the page when a text was saved there. */
export interface SavedView {
  options: Options;
  open: PictureId;
  locked: Cell[];
  step: number | null;
  roles: Roles | null;
  attribution: import("./look/state/prepared.mjs").KnownAttribution | null;
  answered: Answered | null;
  isOnStage?: boolean; // whether the answer was open on the stage
}

/** A question of Ask as it was sent, and its answer. */
export interface Answered {
  asked: import("./look/state/ask_server.mjs").AskRequest;
  answer: unknown;
}

/** What *Look* shows, as the other pages may know it. */
export interface LookView {
  model: string;
  tokens: readonly Token[];
  before: Pointer["before"];
  n_prompt: number;
  /** How many tokens are read up to the word in view. */
  n_read: number;
  settings: Record<string, unknown>;
  /** The model's own, by name. */
  sampling: Record<string, number>;
  mask: number[][] | null;
  head: [layer: number, head: number];
  /** The messages in view, or an example; null for a model without a chat template. */
  messages: { role: string; content: string }[] | null;
  /** The question that was answered last. */
  asked: { route: string; body?: Record<string, any>; query?: Record<string, string | undefined> } | null;
}

/** How a text is read again: by which model (or NAME@STEP), and with which heads scaled. */
export interface ReadAgain {
  model: string;
  head_mask: number[][] | null;
  /** Another text, all of it given; the current one if left out. */
  ids?: number[];
  n_prompt?: number;
}

/** A line on the grid from one head to another; `part` of the greatest width, from 0 to 1. */
export interface Arc {
  from: PictureId;
  to: PictureId;
  part: number;
}

/** A number for every head, shown in the grid instead of the attention. */
export interface Overlay {
  /** The name of the numbers, with their unit. */
  title: string;
  /** `[layer][head]`; null for a head without a number. */
  values: (number | null)[][];
  /** The value with the strongest colour. */
  most: number;
  /** `change`: from -most to most, with the middle at 0. Any other ramp: from 0 to most. */
  ramp: "change" | "looks";
  /** A value, short enough for a tile. */
  short(value: number): string;
  /** A value in full, with its unit. */
  long(value: number): string;
  /** What the left and right ends of the ramp mean, in a few words. */
  ends: [string, string];
  /** `[layer][head]`: standard errors of the values, drawn as rings. */
  errors?: number[][];
  /** Lines over the tiles. */
  arcs?: Arc[];
}

/** The roles of a head: where it looks. */
export type RoleName = "previous_token" | "first_token" | "self" | "duplicate_token" | "induction";

/** What the heads of a model do (model/lens/head_roles.py), `[layer][head]`. */
export type Roles = HeadRole[][];

/** The part of a shown text that a scrubber uses; two compared texts provide it together, with one clock. */
export interface ScrubSource {
  readonly pointer: { readonly run: string };
  readonly playback: Pick<import("./look/state/playback.mjs").Playback, "skip" | "isPaused" | "pause" | "setSpeed">;
  readonly isGrowing: boolean;
  readonly length: number;
  readonly firstReplayed: number;
  readonly progress: unknown[]; // all that changes while the text is written and shown
}

/** The part of a selection that a scrubber uses. */
export interface Clock {
  readonly step: number | null;
  readonly chosen: number | null;
  readonly leading: Cell | null;
  goto(step: number | null): void;
}

/** The part of a shown text that a matrix uses. */
export interface MatrixSource {
  readonly view: { readonly options: Options };
  readonly tokens: Token[];
  readonly weights: import("./lib/triangle.mjs").HeadWeights;
  readonly count: number;
  readonly openName: string;
  readonly drawn: unknown[]; // all that changes more than the marks
}

/** What a matrix draws, and says of its cells. */
export interface MatrixCells {
  /** How many tokens are drawn. */
  readonly count: number;
  /** Where n tokens lie in `width` CSS pixels. */
  place(
    context: import("./lib/drawing/axes.mjs").Context,
    n: number,
    width: number,
  ): import("./lib/drawing/axes.mjs").Layout;
  /** The triangle or rectangle as an image, `size` CSS pixels wide. */
  paint(n: number, size: number): HTMLCanvasElement | OffscreenCanvas;
  /** The number of a cell, in full if it is locked, and what is said after it. */
  read(query: number, key: number, isLocked: boolean): { text: string; data: object; then: (string | Node)[] };
  /** A cell in one sentence. */
  say(query: number, key: number): string;
  /** The number shown for a token. */
  nameOf(position: number): string;
}

/** The part of a selection that a matrix uses. */
export interface MatrixSelection {
  readonly step: number | null;
  readonly focus: Focus | null;
  readonly queries: number[];
  readonly locked?: Cell[]; // their numbers are written in full
  point(cell: Cell | null): void;
  lock(cell: Cell | null, more?: boolean): void;
}
