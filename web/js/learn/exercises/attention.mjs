// Exercises on averages, attention, weights, masks and heads.

/** @type {import("../rung.js").Exercise[][]} rungs 4 to 8 */
export const ATTENTION = [
  [
    {
      kind: "number",
      ask: "Three tokens with the numbers 2, 6 and 6. What is the average at the third one?",
      right: 4.6667,
      tolerance: 0.01,
      hint: "At the third token all three have come: add them up and divide by how many there are.",
      why: "(2 + 6 + 6) / 3, the left column of the toy product with its rows divided by their sums.",
    },
    {
      kind: "choice",
      ask: "What does an average of all tokens so far not know?",
      options: ["Which tokens there were", "In which order they came", "How many there were of each"],
      right: 1,
      hint: "Compare the averages of (2, 6) and of (6, 2).",
      why: "Change the order of the past and its average stays the same. Positions have to come with the vectors.",
    },
  ],
  [
    {
      kind: "choice",
      ask:
        "Find the mistake: somebody works out “Hello shiny sun” by hand, and gets 2.405 for “shiny” · “shiny” and " +
        "the weights 0.13, 0.66 and 0.21. Choose “Hello shiny sun” above: what is the score?",
      options: ["2.4050", "1.3569", "1.2487"],
      right: 1,
      hint: "A word's score with itself is the sum of its own squares: 0.53² + 0.34² + 0.98².",
      why:
        "0.53² + 0.34² + 0.98² = 0.2809 + 0.1156 + 0.9604 = 1.3569, so the weights are 0.2291, 0.4063 and 0.3646. " +
        "Weights that are much too sharp are a hint that a score is wrong.",
    },
    {
      kind: "order",
      ask: "Put the steps from words to a context vector into their order.",
      steps: [
        "dot products of the query with all keys",
        "subtract the largest score of the row",
        "exponentials",
        "divide by their sum",
        "average the values with these weights",
      ],
      hint: "First two words are compared, then the row is made into weights, and only then something is averaged.",
      why: "Score, stable softmax, weighted average: every attention in this ladder has these steps.",
    },
    {
      kind: "number",
      ask: "Two keys have the scores 0 and 0. Which weight does each get?",
      right: 0.5,
      tolerance: 0.001,
      hint: "exp(0) is 1. Divide each exponential by the sum of both.",
      why: "Equal scores make equal weights: exp(0) / (exp(0) + exp(0)).",
    },
  ],
  [
    {
      kind: "many",
      ask:
        "Find the mistakes: choose “a reader's code, with mistakes” among the matrices, which prints 0.2867 and " +
        "0.3880 for the first word. How does it differ from the book?",
      options: [
        "Query and key have changed places in the scores",
        "The scores are divided by √256 = 16, though a query has 2 numbers",
        "The softmax is taken over the columns",
        "The matrices are drawn from a normal distribution, keys first",
      ],
      right: [0, 1, 3],
      hint: "Point at a score: which rows light up? Point at a weight: what is the divisor? And where is W query from?",
      why:
        "The roles are swapped, the scale belongs to another dimension, and other numbers are drawn. Its weights " +
        "are almost equal for all words, so that all rows look alike: the divisor is far too large.",
    },
    {
      kind: "number",
      ask: "head_dim is 64. By what are the scores divided?",
      right: 8,
      tolerance: 0,
      hint: "The divisor is the root of head_dim, not head_dim itself.",
      why: "By √64, which brings their variance from about 64 back to about 1.",
    },
    {
      kind: "choice",
      ask: "Which of the three matrices could change without any change of the attention weights?",
      options: ["W query", "W key", "W value"],
      right: 2,
      hint: "Point at an attention weight above and follow what lights up: which of the three is never part of it?",
      why: "The weights come from queries and keys; the values are what is averaged with them.",
    },
  ],
  [
    {
      kind: "choice",
      ask:
        "Find the mistake: instead of masked_fill, someone adds triu(ones, 1) × −∞ to the scores. What becomes of " +
        "the past?",
      options: ["It stays as it was", "It becomes 0", "It becomes NaN"],
      right: 2,
      hint: "Below the diagonal, triu leaves zeros. What is 0 × ∞? Look at the picture of the way that fails.",
      why: "The zeros below the diagonal are multiplied by infinity too, and 0 × ∞ is not a number. Fill, do not add.",
    },
    {
      kind: "number",
      ask: "Dropout with p = 0.2: by what are the weights that are kept multiplied?",
      right: 1.25,
      tolerance: 0.001,
      hint: "On average a share of 1 − p is kept. What brings its sum back to what it was?",
      why: "1 / (1 − 0.2), so that a row still adds up to 1 on average.",
    },
    {
      kind: "choice",
      ask: "The first row of causal attention weights is 1, 0, 0, … What is the first token's context vector?",
      options: ["The average of all values", "Its own value", "Zero"],
      right: 1,
      hint: "A context vector is the weighted average of the values, and here only one of the weights is not 0.",
      why: "All the weight is on itself.",
    },
  ],
  [
    {
      kind: "number",
      ask: "12 heads, d_out = 768: how many numbers has each head?",
      right: 64,
      tolerance: 0,
      hint: "All heads together have d_out numbers, and each has the same share of them.",
      why: "768 / 12; d_out must be divisible by the number of heads. These are the sizes of the smallest GPT-2.",
    },
    {
      kind: "order",
      ask: "Put the shapes into the order in which weight splits go through them.",
      steps: [
        "(B, T, C) after the projection",
        "(B, T, n_head, head_dim) after view",
        "(B, n_head, T, head_dim) after transpose",
        "(B, n_head, T, T) scores",
        "(B, T, C) heads side by side again",
      ],
      hint: "view splits the last dimension in two; transpose then moves the heads before the tokens.",
      why: "The transpose puts the heads before the tokens, so that one batched product serves all of them.",
    },
    {
      kind: "choice",
      ask: "Why several heads, and not one that is as wide as all of them together?",
      options: [
        "A row of weights adds up to 1, so one head can only look at one mixture of tokens at a time",
        "Several heads need fewer weights than one",
        "One head could not be masked",
      ],
      right: 0,
      hint: "Look at the two trained heads above: could one row of weights be both of them at once?",
      why:
        "One head averages with one set of weights. What it takes from the token before and what it takes from " +
        "the first token would end up in one sum; two heads keep them apart until the output projection mixes them.",
    },
  ],
];
