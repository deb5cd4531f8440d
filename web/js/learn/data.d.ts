/** The lessons' numbers. Inferred from answers by helpers/page_types/learn.py: do not edit. */

/** The names of the numbers of a lesson that are of this type. */
export type Named<Key extends keyof Data, Type> = {
  [Name in keyof Data[Key]]: Data[Key][Name] extends Type ? Name : never;
}[keyof Data[Key]] &
  string;

/** By the name that the lesson is asked for with. */
export interface Data {
  tokens: {
    training_text: string;
    words: {
      vocab_size: number;
      n: number;
      tokens: { text: string; id: number; known: boolean }[];
      decoded: string;
    };
    characters: {
      vocab_size: number;
      n: number;
      tokens: { text: string; id: number | null; known: boolean }[];
      problem: string;
    };
    pairs: {
      vocab_size: number;
      n: number;
      n_bytes: number;
      n_start: number;
      tokens: { text: string; id: number; known: boolean }[];
      merges: { pair: string[]; merged: string; occurrences: number }[];
      end_of_text: { pieces: number; id: number; allowed: boolean };
      start: string[][];
      steps: { pair: string[]; merged: string; rank: number; words: string[][] }[];
      cut: boolean;
    };
    model: {
      name: string;
      vocab_size: number;
      n: number;
      tokens: { text: string; id: number; known: boolean }[];
    } | null;
  };
  windows: {
    words: string[];
    note: string;
    n_words: number;
    ids: number[];
    vocabulary: [string, number][];
    vocab_size: number;
    token: number[][];
    position: number[][];
    x: number[][];
    context_length: number;
    stride: number;
    n_windows?: number;
    sentence?: string[];
    batch_size?: number;
    n_batches?: number;
    batches?: number[][];
    left_over?: number;
    tensors?: { inputs: number[][]; targets: number[][] }[];
    windows?: {
      inputs: { id: number; text: string }[];
      targets: { id: number; text: string }[];
    }[];
    problem?: string;
  };
  "untrained-bigram": {
    writer: string | null;
    most_characters: number;
    example: {
      stage: string;
      characters?: string[];
      n?: number;
      n_train?: number;
      n_held_out?: number;
      beginning?: string;
      ids?: number[];
      batch?: { inputs: number[][]; targets: number[][] };
      uniform?: number;
      floor?: number;
      loss?: number;
      held_out: number | number[];
      wrote?: string;
      frequent?: string[];
      snapshots?: {
        step: number;
        loss: number;
        held_out: number;
        logits: number[][];
        largest: number[];
        sums: number[];
        follows: number[][];
        wrote: string;
      }[];
      step?: number;
      steps?: number;
      every?: number;
      points?: number[];
      sentence?: { text: string; known: boolean; probability: number | null }[];
      n_sentence?: number;
    }[];
  };
  averages: {
    words: string[];
    note: string;
    lecture: boolean;
    x: number[][];
    weights: number[][];
    masked: (number | null)[][];
    edited_scores: number;
    softmax_weights: number[][];
    softmax_weight_terms: {
      scores: (number | null)[][];
      largest: number[];
      exponentials: number[][];
      sums: number[];
    };
    by_loop: number[][];
    by_matrix: number[][];
    by_softmax: number[][];
    terms: { left: number[][]; right: number[][]; products: number[][][] };
    softmax_terms: { left: number[][]; right: number[][]; products: number[][][] };
    error: number;
    toy: {
      kind: string;
      a: number[][];
      b: number[][];
      product: number[][];
      terms: { left: number[][]; right: number[][]; products: number[][][] };
    };
    vectors?: string;
    origin?: string;
    reduced?: string;
    choices?: string[];
    edited?: number;
  };
  "self-attention": {
    words: string[];
    note: string;
    x: number[][];
    vectors: string;
    origin: string;
    reduced: string;
    choices: string[];
    edited: number;
    pair: number[] | null;
    swapped: boolean;
    order_error: number;
    scores: number[][];
    score_terms: { left: number[][]; right: number[][]; products: number[][][] };
    loop_error: number;
    sums: number[];
    sum_normalised: number[][];
    negative: boolean;
    weights: number[][];
    weight_terms: {
      scores: number[][];
      largest: number[];
      exponentials: number[][];
      sums: number[];
    };
    context: number[][];
    context_terms: { left: number[][]; right: number[][]; products: number[][][] };
    factor: number;
    extreme: number;
    larger: number[][];
    naive: (number | null)[][];
    naive_terms: { exponentials: (number | null)[][]; sums: (number | null)[] };
    stable: number[][];
    stable_terms: {
      scores: number[][];
      largest: number[];
      exponentials: number[][];
      sums: number[];
    };
    error: number;
  };
  "trainable-weights": {
    words: string[];
    note: string;
    x: number[][];
    vectors: string;
    origin: string;
    reduced: string;
    choices: string[];
    edited: number;
    kind: string;
    matrices: { query: number[][]; key: number[][]; value: number[][] };
    set: string[];
    projections: {
      query: { left: number[][]; right: number[][]; products: number[][][] };
      key: { left: number[][]; right: number[][]; products: number[][][] };
      value: { left: number[][]; right: number[][]; products: number[][][] };
    };
    query: number[][];
    key: number[][];
    value: number[][];
    scale: number;
    scores: number[][];
    score_terms: { left: number[][]; right: number[][]; products: number[][][] };
    weights: number[][];
    weight_terms: {
      scores: number[][];
      largest: number[];
      exponentials: number[][];
      sums: number[];
    };
    context: number[][];
    context_terms: { left: number[][]; right: number[][]; products: number[][][] };
    trained: {
      model: string;
      n_layer: number;
      n_head: number;
      tokens: string[];
      n_tokens: number;
      largest_error: number;
      difference: number;
      heads: {
        layer: number;
        head: number;
        weights: number[][];
        scale: number;
        query: number[][];
        key: number[][];
        weight_terms: {
          scores: (number | null)[][];
          largest: number[];
          exponentials: number[][];
          sums: number[];
        };
        error: number;
        habits: {
          itself: number;
          "the token before": number;
          "the first token": number;
        };
      }[];
    } | null;
    random: {
      weights: number[][];
      score_terms: { left: number[][]; right: number[][]; products: number[][][] };
      weight_terms: {
        scores: number[][];
        largest: number[];
        exponentials: number[][];
        sums: number[];
      };
    }[];
    wide: number[][] | null;
    error: number;
    wide_terms?: {
      scores: number[][];
      largest: number[];
      exponentials: number[][];
      sums: number[];
    };
  };
  transfer: {
    stored: { query: number[][]; key: number[][]; value: number[][] };
    matrices: { query: number[][]; key: number[][]; value: number[][] };
    error: number;
  };
  scale: {
    head_dim: number;
    spread_terms: {
      unscaled: {
        n_scores: number;
        mean: number;
        squares: number;
        n_rows: number;
        largest: number;
      };
      scaled: {
        n_scores: number;
        mean: number;
        squares: number;
        n_rows: number;
        largest: number;
      };
    };
    at: {
      head_dim: number;
      unscaled: { variance: number; largest_weight: number };
      scaled: { variance: number; largest_weight: number };
    };
    curve: {
      head_dim: number;
      unscaled: { variance: number; largest_weight: number };
      scaled: { variance: number; largest_weight: number };
    }[];
    unscaled: number[];
    unscaled_terms: {
      scores: number[][];
      largest: number[];
      exponentials: number[][];
      sums: number[];
    };
    scaled: number[];
    scaled_terms: {
      scores: number[][];
      largest: number[];
      exponentials: number[][];
      sums: number[];
    };
    sharpness: number;
    diffuse: number[];
    softmax: number[];
    softmax_terms: {
      scores: number[][];
      largest: number[];
      exponentials: number[][];
      sums: number[];
    };
  };
  "causal-masking": {
    words: string[];
    note: string;
    x: number[][];
    vectors: string;
    origin: string;
    reduced: string;
    choices: string[];
    edited: number;
    kind: string;
    factor: number;
    scores: number[][];
    score_terms: { left: number[][]; right: number[][]; products: number[][][] };
    scale: number;
    all_weights: number[][];
    cut: number[][];
    left: number[];
    renormalised: number[][];
    masked: (number | null)[][];
    weights: number[][];
    all_terms: {
      scores: number[][];
      largest: number[];
      exponentials: number[][];
      sums: number[];
    };
    weight_terms: {
      scores: (number | null)[][];
      largest: number[];
      exponentials: number[][];
      sums: number[];
    };
    error: number;
    mask: number[][];
    added: null[][];
    dropout: number;
    dropped_from: string;
    before: number[][];
    drawn: number[][];
    keep_scale: number;
    dropped: number[][];
    row_sums: number[];
    batch: number[][][];
    batch_terms: { left: number[][]; right: number[][]; products: number[][][] };
    batch_error: number;
    lecture: {
      weights: number[][];
      terms: {
        scores: (number | null)[][];
        largest: number[];
        exponentials: number[][];
        sums: number[];
      };
      x: number[];
      out: number[];
    };
    peeking: { has_mask: boolean; in_training: number; writing: number }[];
  };
  "many-heads": {
    words: string[];
    note: string;
    x: number[][];
    vectors: string;
    origin: string;
    reduced: string;
    choices: string[];
    edited: number;
    stacked: number[][];
    merged: number[][];
    w_out: number[][];
    b_out: number[];
    output: number[][];
    output_terms: { left: number[][]; right: number[][]; products: number[][][] };
    wide: number[][];
    wide_terms: { left: number[][]; right: number[][]; products: number[][][] };
    split: number[][][];
    trained: {
      model: string;
      n_layer: number;
      n_head: number;
      tokens: string[];
      n_tokens: number;
      largest_error: number;
      difference: number;
      heads: {
        layer: number;
        head: number;
        weights: number[][];
        scale: number;
        query: number[][];
        key: number[][];
        weight_terms: {
          scores: (number | null)[][];
          largest: number[];
          exponentials: number[][];
          sums: number[];
        };
        error: number;
        habits: {
          itself: number;
          "the token before": number;
          "the first token": number;
        };
      }[];
    } | null;
    random: {
      weights: number[][];
      score_terms: { left: number[][]; right: number[][]; products: number[][][] };
      weight_terms: {
        scores: (number | null)[][];
        largest: number[];
        exponentials: number[][];
        sums: number[];
      };
    }[];
    values: number[][][];
    value_terms: { left: number[][]; right: number[][]; products: number[][][] }[];
    merged_terms: { left: number[][]; right: number[][]; products: number[][][] }[];
    error: number;
    torch_error: number;
    heads: number[][][];
    product: number[][][];
    product_terms: { left: number[][]; right: number[][]; products: number[][][] }[];
    product_error: number;
    d_out: number;
    splits_scores: (number | null)[][][];
    splits_score_terms: { left: number[][]; right: number[][]; products: number[][][] }[];
    splits_weights: number[][][];
    splits_weight_terms: {
      scores: (number | null)[][];
      largest: number[];
      exponentials: number[][];
      sums: number[];
    }[];
    context: number[][];
    context_terms: { left: number[][]; right: number[][]; products: number[][][] }[];
    projected: number[][];
    projected_terms: { left: number[][]; right: number[][]; products: number[][][] };
    projection: number[][];
    bias: number[];
  };
  times: {
    constructions: {
      "stacked heads": number;
      "weight splits": number;
      MultiHeadAttention: number;
    };
    stages: {
      "queries, keys, values": number;
      "attention scores": number;
      "scale, mask, softmax": number;
      "context vectors": number;
      "output projection": number;
    };
    difference: number;
    rounds: number;
    n_head: number;
    n_embd: number;
    n_tokens: number;
  };
  block: {
    words: string[];
    note: string;
    x: number[][];
    vectors: string;
    origin: string;
    reduced: string;
    choices: string[];
    edited: number;
    scale: number;
    scaled: number[][];
    mean: number[];
    variance: number[];
    eps: number;
    normed: number[][];
    norm_error: number;
    weights: number[][][];
    queries: number[][];
    keys: number[][];
    weight_terms: {
      scores: (number | null)[][];
      largest: number[];
      exponentials: number[][];
      sums: number[];
    };
    attended: number[][];
    attended_terms: { left: number[][]; right: number[][]; products: number[][][] };
    attended_bias: number[];
    resid_mid: number[][];
    resid_mid_mean: number[];
    resid_mid_variance: number[];
    mlp_input: number[][];
    hidden: number[][];
    hidden_terms: { left: number[][]; right: number[][]; products: number[][][] };
    hidden_bias: number[];
    activated: number[][];
    mlp_output: number[][];
    mlp_output_terms: { left: number[][]; right: number[][]; products: number[][][] };
    mlp_output_bias: number[];
    after: number[][];
    error: number;
    joined_error: number;
    ladder: {
      steps: number;
      seed: number;
      models: { name: string; train_loss: number; held_out_loss: number }[];
      peeking: { has_mask: boolean; in_training: number; writing: number }[];
    };
    curve: { x: number[]; gelu: number[]; relu: number[] };
  };
  "whole-model": {
    model: string;
    sha256: string;
    n_layer: number;
    n_head: number;
    n_embd: number;
    inner_dim: number;
    head_dim: number;
    vocab_size: number;
    scale: number;
    layer: number;
    head: number;
    query: number;
    note: string;
    ids: number[];
    tokens: string[];
    weights: number[];
    scores: number[];
    error: number;
    largest_error: number;
    embedding: { token: number[]; position: number[]; error: number };
    vectors: {
      x: number[];
      normed: number[];
      heads: number[];
      attended: number[];
      resid_mid: number[];
      mlp_input: number[];
      hidden: number[];
      activated: number[];
      mlp_output: number[];
      after: number[];
    };
    of_head: { query: number[]; key: number[]; value: number[]; context: number[] };
    errors: {
      normed: number;
      query: number;
      key: number;
      value: number;
      weights: number;
      heads: number;
      attended: number;
      resid_mid: number;
      mlp_input: number;
      hidden: number;
      activated: number;
      mlp_output: number;
      after: number;
    };
    end: {
      x: number[];
      normed: number[];
      norm_error: number;
      logits_error: number;
      probability_error: number;
      next: { id: number; text: string; logit: number; p: number }[];
      follower: number | null;
      surprise: number | null;
    };
    guesses: { id: number; text: string; p: number; length: number }[];
    thumbnails: number[][][];
    roles: { role: string; score: number }[][];
    story: { uniform: number; bigram: number; model: number };
    published: number[][];
    published_error: number;
  };
  kite: {
    model: string | null;
    chances?: { kite: number; new: number; string: number }[];
    notebook?: { layer: number; part: string; word: string; chance: number }[];
    best?: { text: string; p: number };
    heads?: { head: number[]; isMuted: boolean; weight: number }[];
    error?: number;
    largest_error?: number;
  };
  induction: {
    note: string;
    model: string;
    sha256: string;
    n_layer: number;
    n_head: number;
    ids: number[];
    tokens: string[];
    n: number;
    step: number;
    steps: number[];
    head: number[];
    fed_by: number[];
    muted: number[] | null;
    curve: {
      induction: number;
      previous_token: number;
      first_loss: number;
      second_loss: number;
    }[];
    read: {
      induction: number;
      first_loss: number;
      second_loss: number;
      losses: number[];
    };
    without: {
      induction: number;
      first_loss: number;
      second_loss: number;
      losses: number[];
    };
    weights: number[][];
    feeding: {
      head: number[];
      composition: number;
      without: number;
      previous_token: number;
    }[];
    chance: number;
    error: number;
  };
}
