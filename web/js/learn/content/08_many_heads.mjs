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
  steps: [
    {
      title: "Two jobs, two heads",
      text: [
        "Two people search a house faster than one, and neither has to remember two things. So a layer has several heads, each with its own matrices.",
        "In random texts of your words, each word from the third on has to name the one before it and the first; the loss, in [nats], is its surprise at the right ones. Two heads of 4 numbers share the work; one head of 8 has one row of weights for both: it mixes the two, or gives up one.",
        { controls: ["learningButtons"] },
        { show: "learningStatus" },
      ],
      show: ["learning"],
      about: "secondHead",
    },
    {
      title: "Each head has its own weights",
      text: [
        "A small case: two heads of two numbers. Their matrices are random (seed 123), so they differ only by chance.",
      ],
      show: ["x", "weights"],
      follow: 2,
    },
    {
      title: "Side by side",
      text: ["Their context vectors stand side by side: no number of one head touches one of the other."],
      show: ["values", "contexts"],
      follow: 3,
    },
    {
      title: "One more matrix",
      text: [
        "The last matrix, the *output projection*, mixes what the heads have found into one vector as wide as the word’s own.",
        { show: "formula" },
      ],
      show: ["contexts", "outMatrix", "output"],
      follow: 4,
    },
  ],
  next: "Attention carries what was said about the kite to “my”. But who makes something of it?",
  figure: [
    { show: "learning" },
    { row: ["x", "weights"] },
    { row: ["values", "contexts"] },
    { row: ["outMatrix", "output"] },
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
      {
        remarks: "Why .contiguous()?",
        items: [
          "Before the heads are joined, `.transpose(1, 2)` puts the tokens first again. It moves no numbers, so they lie in memory in another order than `.view` needs; `.contiguous()` copies them into that order first. `.reshape` would do so by itself.",
        ],
      },
      "# One projection, split into heads",
      "The wide projection gives each word 4 numbers. `.view(T, 2, 2)` reads them as 2 heads of 2 numbers, and `.transpose(0, 1)` puts the heads first, so that each head has its own table. For a batch, the shapes begin with B as well.",
      { row: ["wide", "split"] },
      { show: "bookCase" },
      { show: "batched" },
      "# Where the time goes",
      { show: "times" },
    ],
  },
  teacher: {
    goals: [
      "Explain why one wide head cannot do the work of two.",
      "Give the shapes of the context vectors before and after the heads are joined.",
    ],
    discuss: {
      ask: "Would ten heads with the same matrices help?",
      answer:
        "No: they would find the same. Heads differ because their matrices start at random and training lets each lower the loss in its own way.",
    },
    misconceptions: [
      {
        belief: "The results of the heads are added or averaged.",
        instead: "They stand side by side; only the output projection mixes them.",
      },
      {
        belief: "Somebody tells each head what to look for.",
        instead: "Only the loss does; what a head looks for is found in training.",
      },
    ],
  },
  worksheet: [
    {
      table: "merged",
      text: "The context vectors of two heads, side by side: two numbers of the first head, two of the second.",
    },
    { table: "w_out", text: "The output projection, one row for each of these four numbers.", rows: "numbers" },
    { table: "b_out", text: "Its bias.", rows: "numbers" },
    { table: "output", text: "Each number times its row, added up, plus the bias. Compute the blank row.", blank: [1] },
  ],
  exercises: [
    {
      kind: "number",
      ask: "There are 12 heads and d_out is 768. How many numbers does each head have?",
      right: 64,
      tolerance: 0,
      hint: "All heads together have d_out numbers, shared equally.",
      mistakes: [
        { number: 768, reply: "That is all heads together." },
        { number: 9216, reply: "That is 768 × 12: the numbers are shared, not multiplied." },
      ],
      second: "Divide 768 by 12.",
      why: "768 / 12; d_out must be divisible by the number of heads. These are the sizes of the smallest GPT-2.",
    },
    {
      kind: "choice",
      after: "Two jobs, two heads",
      ask: "Why use several heads rather than one that is as wide as all of them together?",
      options: [
        "A row of weights adds up to 1, so one head can only look at one mixture of tokens at a time",
        "Several heads need fewer weights than one",
        "One head could not be masked",
      ],
      right: 0,
      hint: "Look at the two heads that learned in the figure: could a single row of weights do the work of both?",
      replies: ["", "They need as many, or more.", "Any head can be masked."],
      second: "Two jobs with one row: half the weight goes to each, and the results are added.",
      why: "One head averages with one set of weights. What it takes from the previous token and from the first token ends up in a single sum; two heads keep them apart until the output projection mixes them.",
    },
    {
      kind: "choice",
      after: "One more matrix",
      ask: "Find the mistake: a walk-through says that the context vectors of the heads are summed. What happens?",
      options: [
        "They are summed, so the result has head_dim numbers",
        "They are placed side by side, so the result has n_head × head_dim numbers",
        "They are averaged",
      ],
      right: 1,
      hint: "Count the columns of “Context vectors”. How many numbers does each head have?",
      replies: ["Adding would mix numbers that mean different things.", "", "Averaging would mix them, too."],
      second: "Two heads of two numbers make a row of four.",
      why: "Side by side, no number of one head touches one of another. The output projection then adds them up, each with a weight of its own, which is not the sum of the heads.",
    },
    {
      kind: "order",
      ask: "Put the shapes in the order in which weight splits produce them.",
      steps: [
        "(B, T, C) after the projection",
        "(B, T, n_head, head_dim) after view",
        "(B, n_head, T, head_dim) after transpose",
        "(B, n_head, T, T) scores",
        "(B, T, C) heads side by side again",
      ],
      hint: "view splits the last dimension in two; transpose then moves the heads before the tokens.",
      second: "Scores come after the transpose, and the last shape is that of the beginning.",
      why: "The transpose puts the heads before the tokens, so that one batched product computes all of them.",
    },
  ],
};
