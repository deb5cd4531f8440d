/** The bodies and answers of `/v1/lens/`. Made from web/ask by helpers/page_types/lens.py: do not edit. */

export interface HeadRole {
  label: string;
  scores: HeadScores;
  errors: LookScores;
  baseline: HeadScores;
}

export interface HeadScores {
  previous_token: number;
  first_token: number;
  self: number;
  duplicate_token: number;
  induction: number;
  copying: number;
  entropy: number;
}

export interface LookScores {
  previous_token: number;
  first_token: number;
  self: number;
  duplicate_token: number;
  induction: number;
}

export interface Precision {
  computed: string;
  served: string;
  largest_difference?: number | null;
}

export interface RolesAnswer {
  model: string;
  precision: Precision;
  threshold: number;
  copying_threshold: number;
  heads: HeadRole[][];
}

export interface RolesBody {
  model?: string | null;
}

export interface NamedToken {
  id: number;
  text: string;
}

export interface ReferenceSet {
  name: string;
  texts: number;
  tokens: number;
}

export interface KnockoutAnswer {
  model: string;
  precision: Precision;
  tokens: NamedToken[];
  method: string;
  reference: ReferenceSet | null;
  loss: number;
  delta: number[][];
  token_loss?: number[] | null;
  token_delta?: number[][][] | null;
}

export interface KnockoutBody {
  model?: string | null;
  prompt?: string | null;
  method?: "zero" | "mean" | "text_mean" | "resample" | null;
  per_token?: boolean | null;
  head_mask?: number[][] | null;
  reference?: string[] | null;
  tokens?: number[] | null;
}

export interface RemovalAnswer {
  model: string;
  precision: Precision;
  tokens: NamedToken[];
  method: string;
  reference: ReferenceSet | null;
  heads: number[][];
  loss: number;
  delta: number;
  token_loss: number[];
  token_delta: number[];
}

export interface RemovalBody {
  model?: string | null;
  heads: number[][];
  prompt?: string | null;
  method?: "zero" | "mean" | "text_mean" | "resample" | null;
  head_mask?: number[][] | null;
  reference?: string[] | null;
  tokens?: number[] | null;
}

export interface ProbableToken {
  id: number;
  text: string;
  probability: number;
}

export interface AttributionAnswer {
  model: string;
  precision: Precision;
  tokens: NamedToken[];
  position: number;
  token: NamedToken;
  against: NamedToken | null;
  logit: number;
  probability: number;
  heads: number[][];
  mlps: number[];
  embedding: number;
  biases: number;
  sum: number;
  difference: number;
  alternatives: ProbableToken[];
}

export interface AttributionBody {
  model?: string | null;
  prompt?: string | null;
  position?: number | null;
  token?: string | number | null;
  against?: string | number | null;
  head_mask?: number[][] | null;
  tokens?: number[] | null;
}

export interface Correlation {
  measures: [string, string];
  spearman: number | null;
}

export interface HeadSums {
  weight: number;
  norm: number;
  attribution: number;
  loss_change: number;
}

export interface KeyMeasures {
  id: number;
  text: string;
  position: number;
  weight: number;
  norm: number;
  attribution: number;
  loss_change: number;
}

export interface WithoutHead {
  loss_change: number;
  text_loss_change: number | null;
}

export interface HeadAnswer {
  model: string;
  precision: Precision;
  tokens: NamedToken[];
  position: number;
  token: NamedToken;
  logit: number;
  probability: number;
  layer: number;
  head: number;
  keys: KeyMeasures[];
  sums: HeadSums;
  correlations: Correlation[];
  without_head: WithoutHead;
}

export interface HeadBody {
  model?: string | null;
  prompt?: string | null;
  layer: number;
  head: number;
  position?: number | null;
  token?: string | number | null;
  head_mask?: number[][] | null;
  tokens?: number[] | null;
}

export interface LayerPrediction {
  id: number;
  text: string;
  probability: number;
  kl: number;
  answer: number;
  top: ProbableToken[];
}

export interface LogitLensAnswer {
  model: string;
  precision: Precision;
  tokens: NamedToken[];
  layers: LayerPrediction[][];
  decided: number[];
}

export interface LogitLensBody {
  model?: string | null;
  prompt?: string | null;
  top?: number | null;
  token?: string | number | null;
  head_mask?: number[][] | null;
  tokens?: number[] | null;
}

export interface LedgerErrors {
  weights: number;
  context: number;
  logit: number;
}

export interface LedgerStage {
  before: "normalised" | "rotated";
  query: number[];
  key: number[];
}

export interface LedgerAnswer {
  model: string;
  precision: Precision;
  tokens: NamedToken[];
  layer: number;
  head: number;
  position: [number, number];
  token: NamedToken;
  stages: LedgerStage[];
  frequencies: number[] | null;
  query: number[];
  key: number[];
  products: number[];
  score: number;
  scale: number;
  n_masked: number;
  n_before: number;
  scaled: number[];
  largest: number;
  exponentials: number[];
  denominator: number;
  weights: number[];
  mask: number;
  value: number[];
  weighted: number[];
  context: number[];
  reading: number[];
  terms: number[];
  part: number;
  parts: number[];
  head_part: number;
  rest: number;
  logit: number;
  probability: number;
  errors: LedgerErrors;
}

export interface LedgerBody {
  model?: string | null;
  prompt?: string | null;
  layer: number;
  head: number;
  query?: number | null;
  key?: number | null;
  token?: string | number | null;
  head_mask?: number[][] | null;
  tokens?: number[] | null;
}

export interface Patched {
  heads: number[][] | null;
  residual: number[][] | null;
  joint: number | null;
}

export interface SitePatched {
  name: string;
  hook: string;
  axes: string[];
  exact: unknown[] | null;
  estimate: unknown[] | null;
  correlation: number | null;
}

export interface PatchAnswer {
  model: string;
  precision: Precision;
  tokens: NamedToken[];
  corrupted_tokens: NamedToken[];
  answer: NamedToken;
  wrong: NamedToken;
  direction: string;
  clean: number;
  corrupted: number;
  heads: number[][] | null;
  residual: number[][] | null;
  joint: number | null;
  site: SitePatched | null;
  raw: Patched;
}

export interface PatchBody {
  model?: string | null;
  prompt?: string | null;
  corrupted?: string | null;
  answer?: string | number | null;
  wrong?: string | number | null;
  direction?: "denoise" | "noise" | null;
  heads?: number[][] | null;
  grid?: boolean | null;
  head_mask?: number[][] | null;
  site?: "resid_pre" | "hook_resid_pre" | "ln1_scale" | "ln1.hook_scale" | "ln1_normalized" | "ln1.hook_normalized" | "q" | "attn.hook_q" | "hook_q" | "k" | "attn.hook_k" | "hook_k" | "v" | "attn.hook_v" | "hook_v" | "rot_q" | "attn.hook_rot_q" | "hook_rot_q" | "rot_k" | "attn.hook_rot_k" | "hook_rot_k" | "attn_scores" | "attn.hook_attn_scores" | "hook_attn_scores" | "pattern" | "attn.hook_pattern" | "hook_pattern" | "z" | "attn.hook_z" | "hook_z" | "result" | "attn.hook_result" | "hook_result" | "ln1_post_scale" | "ln1_post.hook_scale" | "ln1_post_normalized" | "ln1_post.hook_normalized" | "attn_out" | "hook_attn_out" | "resid_mid" | "hook_resid_mid" | "ln2_scale" | "ln2.hook_scale" | "ln2_normalized" | "ln2.hook_normalized" | "mlp_pre" | "mlp.hook_pre" | "hook_pre" | "mlp_pre_linear" | "mlp.hook_pre_linear" | "hook_pre_linear" | "mlp_post" | "mlp.hook_post" | "hook_post" | "ln2_post_scale" | "ln2_post.hook_scale" | "ln2_post_normalized" | "ln2_post.hook_normalized" | "mlp_out" | "hook_mlp_out" | "resid_post" | "hook_resid_post" | null;
  positions?: "each" | "all" | null;
  neurons?: number[][] | null;
  method?: "exact" | "attribution" | "both" | null;
  tokens?: number[] | null;
  corrupted_tokens?: number[] | null;
}

export interface Deviations {
  q: number[][][][];
  k: number[][][][];
  v: number[][][][];
}

export interface CompositionAnswer {
  model: string;
  precision: Precision;
  deviations: Deviations;
  chance: number;
  centred: boolean;
  distance: number;
  q: number[][][][];
  k: number[][][][];
  v: number[][][][];
}

export interface CompositionBody {
  model?: string | null;
  centred?: boolean | null;
  distance?: number | null;
}

export interface PatchedPaths {
  corrupted_tokens: NamedToken[];
  answer: NamedToken;
  wrong: NamedToken;
  direction: string;
  clean: number;
  corrupted: number;
  receivers: [number, number][];
  direct: Record<"q" | "k" | "v" | "logits", number[][]>;
  mlps: Record<"q" | "k" | "v" | "logits", number[][]>;
  every: Record<"q" | "k" | "v" | "logits", number[][]>;
}

export interface PathsAnswer {
  model: string;
  precision: Precision;
  tokens: NamedToken[];
  layer: number;
  head: number;
  method: string;
  reference: ReferenceSet | null;
  patched: PatchedPaths | null;
  direct: Record<"q" | "k" | "v", number[][]>;
  mlps: Record<"q" | "k" | "v", number[][]>;
  every: Record<"q" | "k" | "v", number[][]>;
}

export interface PathsBody {
  model?: string | null;
  prompt?: string | null;
  layer: number;
  head: number;
  head_mask?: number[][] | null;
  method?: "zero" | "mean" | "text_mean" | "resample" | null;
  reference?: string[] | null;
  corrupted?: string | null;
  answer?: string | number | null;
  wrong?: string | number | null;
  direction?: "denoise" | "noise" | null;
  tokens?: number[] | null;
  corrupted_tokens?: number[] | null;
}

export interface PatchPathsAnswer {
  model: string;
  precision: Precision;
  tokens: NamedToken[];
  corrupted_tokens: NamedToken[];
  answer: NamedToken;
  wrong: NamedToken;
  direction: string;
  clean: number;
  corrupted: number;
  receivers: [number, number][];
  direct: Record<"q" | "k" | "v" | "logits", number[][]>;
  mlps: Record<"q" | "k" | "v" | "logits", number[][]>;
  every: Record<"q" | "k" | "v" | "logits", number[][]>;
}

export interface PatchPathsBody {
  model?: string | null;
  prompt?: string | null;
  corrupted?: string | null;
  layer?: number | null;
  head?: number | null;
  receivers?: number[][] | null;
  answer?: string | number | null;
  wrong?: string | number | null;
  direction?: "denoise" | "noise" | null;
  head_mask?: number[][] | null;
  tokens?: number[] | null;
  corrupted_tokens?: number[] | null;
}

export interface CutRoleScores {
  previous_token: number[][];
  duplicate_token: number[][];
  induction: number[][];
}

export interface RoleScore {
  previous_token: number;
  duplicate_token: number;
  induction: number;
}

export interface RolePathsAnswer {
  model: string;
  precision: Precision;
  layer: number;
  head: number;
  way: string;
  plain: RoleScore;
  uniform: number;
  direct: CutRoleScores;
  mlps: CutRoleScores;
  every: CutRoleScores;
}

export interface RolePathsBody {
  model?: string | null;
  layer: number;
  head: number;
  way?: "q" | "k" | null;
}

export interface EdgeInCircuit {
  lost: number;
  sender: [number, number | null];
  receiver: [number, number | null] | null;
  way: string | null;
}

export interface HeadInCircuit {
  layer: number;
  head: number;
  lost: number;
  position: number;
  minimality: number;
  lost_there: number;
  reads: NamedToken;
  key: number;
  weight: number;
  promoted: NamedToken[];
}

export interface LeftOut {
  row: number;
  error: string;
}

export interface MLPInCircuit {
  layer: number;
  lost: number;
  position: number;
  minimality: number;
  lost_there: number;
  promoted: NamedToken[];
}

export interface PairInCircuit {
  row: number;
  answer: NamedToken;
  wrong: NamedToken;
  clean: number;
  corrupted: number;
  kept: number;
}

export interface CircuitAnswer {
  model: string;
  precision: Precision;
  kept: number;
  without_heads: number;
  incompleteness: number;
  route: string;
  heads: HeadInCircuit[];
  mlps: MLPInCircuit[];
  edges: EdgeInCircuit[];
  pairs: PairInCircuit[];
  left_out: LeftOut[];
}

export interface CircuitBody {
  model?: string | null;
  prompts: (string | { prompt: string | number[]; corrupted?: string | number[] | null; answer?: string | number | null; wrong?: string | number | null })[];
  method?: "exact" | "attribution" | null;
  ablation?: "resample" | "mean" | "zero" | null;
  mlps?: boolean | null;
  head_mask?: number[][] | null;
}

export interface TokenPair {
  source: NamedToken;
  target: NamedToken;
  value: number;
}

export interface TokenCircuitAnswer {
  model: string;
  precision: Precision;
  circuit: string;
  layer: number;
  head: number;
  side: string | null;
  distance: number;
  eigenvalues: [number, number][];
  eigenvalue_score: number;
  earlier_layer: number | null;
  earlier_head: number | null;
  pairs: TokenPair[];
}

export interface TokenCircuitBody {
  model?: string | null;
  layer: number;
  head: number;
  circuit?: "ov" | "qk" | null;
  earlier_layer?: number | null;
  earlier_head?: number | null;
  side?: "q" | "k" | null;
  distance?: number | null;
  token?: number | null;
  top?: number | null;
}

export interface ExcitedAt {
  position: number;
  activation: number;
  start: number;
  activations: number[];
  tokens: NamedToken[];
}

export interface WrittenToken {
  id: number;
  text: string;
  logit: number;
}

export interface NeuronAnswer {
  model: string;
  precision: Precision;
  layer: number;
  neuron: number;
  n_tokens: number;
  highest: ExcitedAt[];
  lowest: ExcitedAt[];
  mean: number;
  positive: number;
  promotes: WrittenToken[];
  suppresses: WrittenToken[];
  norm: number;
}

export interface NeuronBody {
  model?: string | null;
  text: string;
  layer: number;
  neuron: number;
  top?: number | null;
}

export interface DifferenceAnswer {
  model: string;
  precision: Precision;
  tokens: NamedToken[];
  pairs: [number, number][];
  heads: number[][];
  most: number[][];
  other_model: string;
  other_tokens: NamedToken[];
  largest: [number, number][];
}

export interface DifferenceBody {
  model?: string | null;
  prompt?: string | null;
  other?: string | null;
  other_model?: string | null;
  head_mask?: number[][] | null;
  tokens?: number[] | null;
  other_tokens?: number[] | null;
}

export interface Bins {
  weight: number[];
  norm: number[];
}

export interface HeadMap {
  points: [number, number][][];
  explained: [number, number];
  axes: number[][];
  features: string[];
}

export interface HeadPassages {
  weight: Measured;
  norm: Measured;
  everywhere: number[];
  metrics: number[];
}

export interface Measured {
  histogram: number[];
  passages: Passage[];
  share: number[];
}

export interface Passage {
  value: number;
  query: number;
  key: number;
  window: number;
}

export interface TextWindow {
  start: number;
  tokens: number[];
}

export interface PassagesAnswer {
  model: string;
  precision: Precision;
  n_tokens: number;
  patterns: string[];
  metrics: string[];
  bins: Bins;
  heads: HeadPassages[][];
  windows: TextWindow[];
  texts: Record<string, string>;
  map: HeadMap;
}

export interface PassagesBody {
  model?: string | null;
  text: string;
}

export interface RoleGrids {
  previous_token: number[][];
  first_token: number[][];
  self: number[][];
  duplicate_token: number[][];
  induction: number[][];
}

export interface TextRolesAnswer {
  model: string;
  precision: Precision;
  tokens: NamedToken[];
  scores: RoleGrids;
  uniform: LookScores;
  queries: LookScores;
}

export interface TextRolesBody {
  model?: string | null;
  prompt?: string | null;
  head_mask?: number[][] | null;
  tokens?: number[] | null;
}

export interface PromptsAnswer {
  model: string;
  precision: Precision;
  columns: string[];
  n: number;
  mean: Record<string, unknown>;
  standard_error: Record<string, unknown>;
  tokens?: NamedToken[] | null;
  rows: Record<string, unknown>[];
}

export interface KnockoutPromptsBody {
  model?: string | null;
  prompts: (string | { prompt: string | number[]; corrupted?: string | number[] | null; answer?: string | number | null; wrong?: string | number | null })[];
  method?: "zero" | "mean" | "text_mean" | "resample" | null;
  head_mask?: number[][] | null;
  reference?: string[] | null;
}

export interface RemovalPromptsBody {
  model?: string | null;
  prompts: (string | { prompt: string | number[]; corrupted?: string | number[] | null; answer?: string | number | null; wrong?: string | number | null })[];
  heads: number[][];
  method?: "zero" | "mean" | "text_mean" | "resample" | null;
  head_mask?: number[][] | null;
  reference?: string[] | null;
}

export interface AttributionPromptsBody {
  model?: string | null;
  prompts: (string | { prompt: string | number[]; corrupted?: string | number[] | null; answer?: string | number | null; wrong?: string | number | null })[];
  head_mask?: number[][] | null;
}

export interface HeadPromptsBody {
  model?: string | null;
  prompts: (string | { prompt: string | number[]; corrupted?: string | number[] | null; answer?: string | number | null; wrong?: string | number | null })[];
  layer: number;
  head: number;
  head_mask?: number[][] | null;
}

export interface LogitLensPromptsBody {
  model?: string | null;
  prompts: (string | { prompt: string | number[]; corrupted?: string | number[] | null; answer?: string | number | null; wrong?: string | number | null })[];
  head_mask?: number[][] | null;
}

export interface PatchPromptsBody {
  model?: string | null;
  prompts: (string | { prompt: string | number[]; corrupted?: string | number[] | null; answer?: string | number | null; wrong?: string | number | null })[];
  direction?: "denoise" | "noise" | null;
  heads?: number[][] | null;
  head_mask?: number[][] | null;
  site?: "resid_pre" | "hook_resid_pre" | "ln1_scale" | "ln1.hook_scale" | "ln1_normalized" | "ln1.hook_normalized" | "q" | "attn.hook_q" | "hook_q" | "k" | "attn.hook_k" | "hook_k" | "v" | "attn.hook_v" | "hook_v" | "rot_q" | "attn.hook_rot_q" | "hook_rot_q" | "rot_k" | "attn.hook_rot_k" | "hook_rot_k" | "attn_scores" | "attn.hook_attn_scores" | "hook_attn_scores" | "pattern" | "attn.hook_pattern" | "hook_pattern" | "z" | "attn.hook_z" | "hook_z" | "result" | "attn.hook_result" | "hook_result" | "ln1_post_scale" | "ln1_post.hook_scale" | "ln1_post_normalized" | "ln1_post.hook_normalized" | "attn_out" | "hook_attn_out" | "resid_mid" | "hook_resid_mid" | "ln2_scale" | "ln2.hook_scale" | "ln2_normalized" | "ln2.hook_normalized" | "mlp_pre" | "mlp.hook_pre" | "hook_pre" | "mlp_pre_linear" | "mlp.hook_pre_linear" | "hook_pre_linear" | "mlp_post" | "mlp.hook_post" | "hook_post" | "ln2_post_scale" | "ln2_post.hook_scale" | "ln2_post_normalized" | "ln2_post.hook_normalized" | "mlp_out" | "hook_mlp_out" | "resid_post" | "hook_resid_post" | null;
  positions?: "each" | "all" | null;
  neurons?: number[][] | null;
  method?: "exact" | "attribution" | "both" | null;
}

export interface PathsPromptsBody {
  model?: string | null;
  prompts: (string | { prompt: string | number[]; corrupted?: string | number[] | null; answer?: string | number | null; wrong?: string | number | null })[];
  layer: number;
  head: number;
  head_mask?: number[][] | null;
  direction?: "denoise" | "noise" | null;
}

export interface TextRolesPromptsBody {
  model?: string | null;
  prompts: (string | { prompt: string | number[]; corrupted?: string | number[] | null; answer?: string | number | null; wrong?: string | number | null })[];
  head_mask?: number[][] | null;
}

export interface DifferencePromptsBody {
  model?: string | null;
  prompts: (string | { prompt: string | number[]; corrupted?: string | number[] | null; answer?: string | number | null; wrong?: string | number | null })[];
  other_model?: string | null;
  head_mask?: number[][] | null;
}

/** By what follows `/v1/lens/`. */
export interface Questions {
  roles: { method: "GET"; body: RolesBody; answer: RolesAnswer };
  knockout: { method: "POST"; body: KnockoutBody; answer: KnockoutAnswer };
  removal: { method: "POST"; body: RemovalBody; answer: RemovalAnswer };
  attribution: { method: "POST"; body: AttributionBody; answer: AttributionAnswer };
  head: { method: "POST"; body: HeadBody; answer: HeadAnswer };
  "logit-lens": { method: "POST"; body: LogitLensBody; answer: LogitLensAnswer };
  ledger: { method: "POST"; body: LedgerBody; answer: LedgerAnswer };
  patch: { method: "POST"; body: PatchBody; answer: PatchAnswer };
  composition: { method: "GET"; body: CompositionBody; answer: CompositionAnswer };
  paths: { method: "POST"; body: PathsBody; answer: PathsAnswer };
  "patch-paths": { method: "POST"; body: PatchPathsBody; answer: PatchPathsAnswer };
  "role-paths": { method: "GET"; body: RolePathsBody; answer: RolePathsAnswer };
  circuit: { method: "POST"; body: CircuitBody; answer: CircuitAnswer };
  "token-circuit": { method: "GET"; body: TokenCircuitBody; answer: TokenCircuitAnswer };
  neuron: { method: "POST"; body: NeuronBody; answer: NeuronAnswer };
  difference: { method: "POST"; body: DifferenceBody; answer: DifferenceAnswer };
  passages: { method: "POST"; body: PassagesBody; answer: PassagesAnswer };
  "text-roles": { method: "POST"; body: TextRolesBody; answer: TextRolesAnswer };
  "knockout/prompts": { method: "POST"; body: KnockoutPromptsBody; answer: PromptsAnswer };
  "removal/prompts": { method: "POST"; body: RemovalPromptsBody; answer: PromptsAnswer };
  "attribution/prompts": { method: "POST"; body: AttributionPromptsBody; answer: PromptsAnswer };
  "head/prompts": { method: "POST"; body: HeadPromptsBody; answer: PromptsAnswer };
  "logit-lens/prompts": { method: "POST"; body: LogitLensPromptsBody; answer: PromptsAnswer };
  "patch/prompts": { method: "POST"; body: PatchPromptsBody; answer: PromptsAnswer };
  "paths/prompts": { method: "POST"; body: PathsPromptsBody; answer: PromptsAnswer };
  "text-roles/prompts": { method: "POST"; body: TextRolesPromptsBody; answer: PromptsAnswer };
  "difference/prompts": { method: "POST"; body: DifferencePromptsBody; answer: PromptsAnswer };
}
