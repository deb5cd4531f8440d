// The words of rung 4. CONTRIBUTING.md explains their form and marks.

/** @type {import("../rung.js").Content} */
export const content = {
  name: "The average of the past",
  minutes: 4,
  core: true,
  learned: "A weighted average of the past is a product with a triangular matrix, which a masked softmax can produce.",
  prediction: {
    ask: "What do the numbers in the last row of “Weights”, outlined below, add up to?",
    options: ["The number of tokens", "1", "1 / the number of tokens"],
    right: 1,
    why: "With equal scores, each of n tokens has the weight 1 / n. The result is an average because each row adds up to 1. The same holds for attention weights.",
  },
  opening: [
    "The simplest way to use all tokens so far is to average them. A loop does it slowly; one product with a triangular matrix does the same. Softmax of equal scores, the future masked, gives that triangle. With scores that depend on the tokens, it becomes attention.",
  ],
  path: [
    { show: "toy" },
    "# The same for every token of a text",
    { show: "vectors" },
    { controls: ["way", "back"] },
    { row: ["x", "masked"] },
    { row: ["weights", "averages"] },
    { show: "status" },
    { show: "stamp" },
    "# What an average loses",
    "The order: swap two earlier tokens, and the average stays the same. That is why a GPT adds positions. And the importance: the token that matters most counts like any other. On rung 5, weights depend on the tokens.",
  ],
  deeper: {
    topics: "the lecture’s random tokens",
    parts: [{ controls: ["example"] }],
  },
  exercises: [
    {
      kind: "number",
      ask: "Three tokens have the numbers 2, 6 and 6. What is the average at the third token?",
      right: 4.6667,
      tolerance: 0.01,
      hint: "The third token averages all three: add them up and divide by how many there are.",
      why: "(2 + 6 + 6) / 3. The left column of the toy product computes this once each row is divided by its sum.",
    },
    {
      kind: "choice",
      ask: "What does an average of all tokens so far not tell you?",
      options: ["Which tokens there were", "In which order they came", "How many of each there were"],
      right: 1,
      hint: "Compare the averages of (2, 6) and of (6, 2).",
      why: "Reorder the past and its average stays the same. The vectors themselves have to carry the positions.",
    },
  ],
};
