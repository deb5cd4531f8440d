// The words of rung 4. CONTRIBUTING.md explains their form and marks.

/** @type {import("../rung.js").Content} */
export const content = {
  name: "The average of the past",
  minutes: 4,
  core: true,
  learned: "A weighted average of the past is a product with a triangular matrix, which a masked softmax can produce.",
  prediction: {
    ask: "Each token is about to get a row of weights, one for every token so far, all equal at first, which add up to 1. One token gets more weight: what happens to the others?",
    options: ["They stay the same", "They get smaller", "They get larger"],
    right: 1,
    why: "A row still adds up to 1, so what one token gains, the others lose. The same holds for attention weights.",
  },
  steps: [
    {
      title: "Mix all that came before",
      text: [
        "The simplest way to use all tokens so far is to average them, like mixing paints. `b` holds three tokens with two numbers each. A product with ones adds all of them up, a triangle of ones those so far, and rows that add up to 1 average them.",
        { show: "toyKind" },
      ],
      show: ["toy"],
    },
    {
      title: "The same for a sentence",
      text: [
        "Each token averages itself and those before it. A loop does it slowly; one product with a triangular matrix does the same at once. [Softmax](softmax) of equal scores, the future masked, gives that very triangle.",
        { show: "vectors" },
        { controls: ["way", "back"] },
        { show: "formula" },
      ],
      show: ["x", "weights", "averages", "stamp"],
      follow: 3,
    },
    {
      title: "Let some count more",
      text: [
        "Type a score over a zero: softmax gives that token more weight. With scores that depend on the tokens, this average becomes attention.",
        { show: "status" },
      ],
      show: ["masked", "weights", "averages"],
      follow: 2,
    },
    {
      title: "What an average loses",
      text: [
        "The order: swap two earlier tokens, and the average stays the same, unless their vectors hold positions (rung 2). And the importance: the token that matters most counts like any other.",
      ],
      show: ["masked", "averages"],
    },
  ],
  next: "In the story, “kite” matters more than “the”. What could tell a model which words to look at?",
  figure: [{ show: "toy" }, { row: ["x", "masked"] }, { row: ["weights", "averages"] }, { show: "stamp" }],
  deeper: {
    topics: "random tokens from Karpathy’s lecture",
    parts: [{ controls: ["example"] }],
  },
  teacher: {
    goals: [
      "Compute the average of all tokens so far, and write it as a row of weights.",
      "Explain why the weights form a triangle and each row adds up to 1.",
    ],
    discuss: {
      ask: "Two classes have the same average mark. What do you not know?",
      answer: "Who had which mark, in what order, and which mark matters to you. An average of words loses the same.",
    },
    misconceptions: [
      {
        belief: "The triangle is a trick to save time.",
        instead: "It keeps the future out: above the diagonal stand the tokens that have not come yet.",
      },
      { belief: "Softmax of equal scores gives 1 to each token.", instead: "It gives each the same share of 1." },
    ],
  },
  worksheet: [
    { table: "x", text: "The numbers of each word." },
    { table: "weights", text: "The weights of an average of the past. Fill in the blank rows.", blank: [1, 2] },
    { table: "by_matrix", text: "The averages. Compute the blank rows.", blank: [1, 2] },
  ],
  exercises: [
    {
      kind: "number",
      after: "Mix all that came before",
      ask: "Three tokens have the numbers 2, 6 and 6. What is the average at the third token?",
      right: 4.6667,
      tolerance: 0.01,
      hint: "The third token averages all three: add them up and divide by how many there are.",
      mistakes: [
        { number: 14, reply: "That is the sum: divide it by the number of tokens." },
        { number: 7, reply: "That divides by 2, but there are three tokens." },
        { number: 6, reply: "That is the token’s own number, or the average of the last two." },
        { number: 4, reply: "That is the average of the first two: the third token counts itself, too." },
      ],
      second: "2 + 6 + 6 is 14.",
      why: "(2 + 6 + 6) / 3. The left column of the toy product computes this once each row is divided by its sum.",
    },
    {
      kind: "choice",
      after: "What an average loses",
      ask: "Two texts differ in one thing only, and so their averages are sure to be the same. In what?",
      options: ["Which tokens there are", "In which order they come", "How often one token occurs"],
      right: 1,
      hint: "Compare the averages of (2, 6) and of (6, 2).",
      replies: [
        "Other tokens may happen to have the same average, but usually they have another.",
        "",
        "If one token occurs more often, the average moves towards it, unless it lies there already.",
      ],
      second: "Swap two numbers, and the average stays: what has changed?",
      why: "Reorder the past and its average stays the same. The vectors themselves have to carry the positions.",
    },
  ],
};
