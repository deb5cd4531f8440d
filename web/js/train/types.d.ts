/** The server's messages about trainings (web/training). Browsers never load this file. */

import type { RoleName } from "../types.js";

/** A model size that can be trained here (web/training/training_request.py). */
export interface Size {
  name: string;
  n_layer: number;
  n_head: number;
  n_embd: number;
  context_length: number;
  seconds: number;
  n_parameters: number;
  /** On a text with fewer characters the model overfits within the training time. */
  enough: number;
}

/** The answer of `train/state`. */
export interface TrainState {
  sizes: Size[];
  writers: string[];
  /** How many characters a model writes as a training text. */
  writes: number;
  max_bytes: number;
  minutes: number;
  at_work: number;
  waiting: number;
  mine: { name: string; state: string; size: string } | null;
}

/** A role whose scores are shown. */
export type ScoredRole = "previous_token" | "duplicate_token" | "induction";

/** The scores of every head for a role, `[layer][head]`. */
export interface HeadScores {
  previous_token: number[][];
  duplicate_token: number[][];
  induction: number[][];
  uniform: number;
  /** The role that each head clearly has and its score, null without one (`clear_role`, model/lens/head_roles.py). */
  roles: ([role: RoleName, score: number] | null)[][];
}

export interface StartEvent {
  kind: "start";
  n_parameters: number;
  n_layer: number;
  n_head: number;
  vocab_size: number;
  seconds: number;
  train_tokens: number;
  validation_tokens: number;
  watched_tokens: number;
  uniform: number;
  bigram: number;
  tokens: string[];
}

export interface LossEvent {
  kind: "loss";
  step: number;
  seconds: number;
  validation_loss: number;
  train_loss: number | null;
}

export interface SnapshotEvent {
  kind: "snapshot";
  step: number;
  seconds: number;
  heads: HeadScores | null;
  /** Base64 of the lower triangle of each head, one byte a weight. */
  cells: string;
}

export interface EndEvent {
  kind: "end";
  step: number;
  seconds: number;
  /** The loss of the kept weights on all held-out characters. */
  loss: number;
  /** The loss of a bigram model, on the same tokens. */
  bigram: number;
  /** The step whose weights are kept. */
  kept: number;
  stopped: boolean;
  text: string;
}

export interface StateEvent {
  kind: "state";
  state: "waiting" | "starting" | "writing" | "training" | "finishing" | "done" | "failed";
  name: string;
  place?: number;
  why?: string;
  /** With which programs use the model, once it is trained. */
  token?: string;
}

export type TrainEvent =
  | StateEvent
  | StartEvent
  | LossEvent
  | SnapshotEvent
  | { kind: "writing"; written: number; of: number; text: string }
  | { kind: "step"; step: number; seconds: number; loss: number }
  | { kind: "sample"; step: number; text: string }
  | { kind: "finishing"; step: number }
  /** The secret with which the model is lent, "" once it is withdrawn; until when, in seconds since 1970. */
  | { kind: "loan"; loan: string; until: number }
  /** The server is about to end, and takes the training along. */
  | { kind: "closing" }
  | EndEvent;
