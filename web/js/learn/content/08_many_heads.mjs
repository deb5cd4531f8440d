// The words of rung 8. CONTRIBUTING.md explains their form and marks.

/** @type {import("../rung.js").Content} */
export const content = {
  name: "Many heads",
  minutes: 5,
  core: true,
  learned:
    "Several heads look for different things; their context vectors stand side by side, and one more matrix mixes them.",
  prediction: {
    ask: "One head looks at both the previous and the first word. What does it get?",
    options: ["Only one of the two", "Both, kept apart", "Both, in a single sum"],
    right: 2,
    why: "It may give half of its weight to each, but its context vector is the sum of what it takes from both. Two heads have a row of weights and a context vector each.",
  },
  opening: [
    "A word may have several things to look for. So a layer has several heads, each with its own matrices. Their context vectors stand side by side, and one more matrix, the *output projection*, mixes them.",
  ],
  path: [
    { show: "learning" },
    "# A small case, step by step: two random heads of 2 numbers",
    "All matrices are random (seed 123), so the heads differ only by chance.",
    { row: ["x", "weights"] },
    { row: ["values", "contexts", "outMatrix", "output"] },
  ],
  deeper: {
    topics: "all heads at once, the shapes, two trained heads, Raschka’s own case, the time",
    parts: [
      "Computed one by one they are *stacked heads*; as one wide projection that is split, *weight splits*. The result is the same, as the line below the table shows.",
      { show: "shapesFormula" },
      { show: "shapes" },
      { row: ["splits"] },
      { show: "stamp" },
      { show: "vectors" },
      "# Two heads of a trained model on your sentence",
      { show: "trained" },
      "# One projection, split into heads",
      "The wide projection gives each word 4 numbers. `.view(T, 2, 2)` reads them as 2 heads of 2 numbers, and `.transpose(0, 1)` puts the heads first, so that each head has its own table. For a batch, the shapes begin with B as well.",
      { row: ["wide", "split"] },
      { show: "bookCase" },
      { show: "batched" },
      "# Where the time goes",
      { show: "times" },
    ],
  },
  exercises: [
    {
      kind: "number",
      further: true,
      ask: "There are 12 heads and d_out is 768. How many numbers does each head have?",
      right: 64,
      tolerance: 0,
      hint: "All heads together have d_out numbers, shared equally.",
      why: "768 / 12; d_out must be divisible by the number of heads. These are the sizes of the smallest GPT-2.",
    },
    {
      kind: "choice",
      ask: "Why use several heads rather than one that is as wide as all of them together?",
      options: [
        "A row of weights adds up to 1, so one head can only look at one mixture of tokens at a time",
        "Several heads need fewer weights than one",
        "One head could not be masked",
      ],
      right: 0,
      hint: "Look at the two heads that learned above: could a single row of weights do the work of both?",
      why: "One head averages with one set of weights. What it takes from the previous token and from the first token ends up in a single sum; two heads keep them apart until the output projection mixes them.",
    },
    {
      kind: "choice",
      ask: "Find the mistake: a walk-through says that the context vectors of the heads are summed. What happens?",
      options: [
        "They are summed, so the result has head_dim numbers",
        "They are placed side by side, so the result has n_head × head_dim numbers",
        "They are averaged",
      ],
      right: 1,
      hint: "Count the columns of “Context vectors” above. How many numbers does each head have?",
      why: "Side by side, no number of one head touches one of another. The output projection then adds them up, each with a weight of its own, which is not the sum of the heads.",
    },
    {
      kind: "order",
      further: true,
      ask: "Put the shapes in the order in which weight splits produce them.",
      steps: [
        "(B, T, C) after the projection",
        "(B, T, n_head, head_dim) after view",
        "(B, n_head, T, head_dim) after transpose",
        "(B, n_head, T, T) scores",
        "(B, T, C) heads side by side again",
      ],
      hint: "view splits the last dimension in two; transpose then moves the heads before the tokens.",
      why: "The transpose puts the heads before the tokens, so that one batched product computes all of them.",
    },
  ],
};
