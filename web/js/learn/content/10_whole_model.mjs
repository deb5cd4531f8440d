// The words of rung 10. CONTRIBUTING.md explains their form and marks.

/** @type {import("../rung.js").Content} */
export const content = {
  name: "The whole model",
  minutes: 7,
  core: true,
  learned: "A GPT gets from a token to the probabilities of the next one by the steps of these ten rungs alone.",
  steps: [
    {
      title: "A trained model reads",
      text: [
        "Now a trained model reads your sentence. It is made of nothing but the parts that you know.",
        { show: "facts" },
      ],
      show: ["story"],
    },
    {
      title: "Follow one token",
      text: [
        "Choose a token. Its embedding goes through all layers, and each adds twice to its vector: what the heads gather, and what an [MLP] makes of it.",
        { show: "tokens" },
      ],
      show: ["layers"],
      follow: 0,
    },
    {
      title: "Heads with a job",
      text: [
        "These are the heads that you have built: queries, keys, values, a mask and a softmax. Only their numbers come from training.",
        { show: "layersSay" },
      ],
      show: ["layers", "tiles"],
    },
    {
      title: "Does it write “kite”?",
      text: [
        "Back to the story of rung 1. What you have built, the steps of rungs 5 to 9 alone, expects “kite” there, with the model’s own 94%. Seven of its heads look back at that word.",
      ],
      show: ["kiteBuilt"],
    },
    {
      title: "The next word",
      text: [
        "The last vector is compared with that of every token in the list. Softmax turns these scores into chances, and one token is drawn.",
        { show: "formula" },
      ],
      show: ["draw"],
      follow: -1,
    },
  ],
  next: "So seven heads found the kite. Other heads look back at what followed the last time. How can a head know what followed?",
  figure: [{ show: "story" }, { show: "layers" }, { show: "tiles" }, { show: "kiteBuilt" }, { show: "draw" }],
  deeper: {
    topics: "the head and its layer number by number, Raschka’s case",
    parts: [
      { show: "hint" },
      "# The embedding",
      { show: "token" },
      { show: "position" },
      { show: "embedded" },
      { show: "headTitle" },
      { show: "head" },
      { show: "link" },
      { show: "layerTitle" },
      { show: "stages" },
      "# After the last layer",
      { show: "last" },
      { show: "lastNorm" },
      { show: "ended" },
      "# Raschka’s example in the same class",
      "The GPT runs `MultiHeadAttention`: weight splits whose three projections form one matrix. Here it computes the example of Raschka’s book.",
      { row: ["published"] },
      { show: "packed" },
      { show: "loops" },
    ],
  },
  teacher: {
    goals: [
      "Follow one token from its id to the chances of the next.",
      "Recognise in a trained model the heads of the earlier rungs.",
    ],
    discuss: {
      ask: "The model gives a word 94%. Does it know that the word is true?",
      answer: "It knows which word usually follows such a text. Whether it is true of the world was never asked of it.",
    },
    misconceptions: [
      {
        belief: "The model always writes the likeliest word.",
        instead: "A token is drawn from the chances; only at temperature 0 it is the likeliest.",
      },
      {
        belief: "The model looks answers up in its training text.",
        instead: "It holds no text, only weights. It may still repeat what it has seen often.",
      },
    ],
  },
  worksheet: [
    {
      table: "stream",
      text: "One token in one layer: the first four numbers of its residual stream, and of what is added. Compute the sums.",
    },
    {
      table: "next",
      text: "The chance of a token is e to its score, divided by a sum that is the same for all. So two chances differ by the factor e to the difference of their scores. Compute the blank ones from the first.",
    },
  ],
  calculator: "the keys eˣ and ln",
  exercises: [
    {
      kind: "order",
      after: "Follow one token",
      ask: "Put the steps that a token takes through the model in order.",
      steps: [
        "token and position embedding",
        "all layers, one after the other",
        "the last layer norm",
        "logits: a dot product with each token’s vector",
        "softmax: probabilities",
      ],
      hint: "Follow the picture of the GPT in the margin from top to bottom.",
      second: "First the embeddings, then the layers, and softmax is the last.",
      why: "The residual stream keeps its size all the way; there is one logit for each token of the vocabulary.",
    },
    {
      kind: "choice",
      after: "The next word",
      ask: "Which row of the last layer’s output decides what is written next?",
      options: ["The first token’s", "The average of all rows", "The last token’s"],
      right: 2,
      hint: "The next token is what follows the end of the text. Which position has seen all of it?",
      replies: ["The first token has seen only itself.", "No average is taken: each row predicts for itself.", ""],
      second: "A text is continued at its end.",
      why: "Each position predicts its own next token. While a text is written, only the last prediction is used.",
    },
    {
      kind: "number",
      ask: "The model gives the next token a probability of 0.5. How surprising is that token in nats?",
      right: 0.6931,
      tolerance: 0.006,
      hint: "Surprise is −ln p, and ln 0.5 is about −0.69.",
      mistakes: [
        { number: 1, reply: "That is in bits; nats take the natural logarithm." },
        { number: 0.5, reply: "That is the probability, not its surprise." },
        { number: -0.6931, reply: "Surprise is −ln p, which is not negative." },
        { number: 0.301, reply: "That is the logarithm to base 10." },
      ],
      second: "−(−0.69) is positive.",
      why: "It is −ln 0.5. The loss is the mean surprise over a text.",
    },
  ],
};
