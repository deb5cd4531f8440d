/** What the server answers to the questions about one predicted token (web/api/lens/prediction_schema.py). */

export interface NamedToken {
  id: number;
  text: string;
}

interface TextAnswer {
  model: string;
  tokens: NamedToken[];
  precision: { computed: string; served: string; largest_difference?: number };
}

interface PredictionAnswer extends TextAnswer {
  position: number;
  token: NamedToken;
  logit: number;
  probability: number;
}

export interface Attribution extends PredictionAnswer {
  against: NamedToken | null;
  alternatives: (NamedToken & { probability: number })[];
  /** [layer][head] */
  heads: number[][];
  mlps: number[];
  embedding: number;
  biases: number;
  sum: number;
  difference: number;
}

export type MeasureName = "weight" | "norm" | "attribution" | "loss_change";
export type Measures = Record<MeasureName, number>;

export interface KeyMeasures extends NamedToken, Measures {
  position: number;
}

export interface HeadLenses extends PredictionAnswer {
  layer: number;
  head: number;
  keys: KeyMeasures[];
  sums: Measures;
  correlations: { measures: string[]; spearman: number | null }[];
  without_head: { loss_change: number; text_loss_change: number | null };
}

export interface Reading extends NamedToken {
  probability: number;
  /** From the reading to the model's answer, in nats. */
  kl: number;
  /** The probability of the token that the model answers. */
  answer: number;
  top: (NamedToken & { probability: number })[];
}

export interface LogitLens extends TextAnswer {
  /** [n_layer + 1][position] */
  layers: Reading[][];
  decided: number[];
}

/** Vectors have head_dim numbers, rows one for each key up to the query. */
export interface Ledger extends TextAnswer {
  layer: number;
  head: number;
  position: [query: number, key: number];
  token: NamedToken;
  query: number[];
  key: number[];
  products: number[];
  score: number;
  scale: number;
  n_masked: number;
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
  errors: Record<string, number>;
}
