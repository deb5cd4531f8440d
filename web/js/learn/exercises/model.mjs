// Exercises on a block and the whole model.

/** @type {import("../rung.js").Exercise[][]} rungs 9 and 10 */
export const MODEL = [
  [
    {
      kind: "number",
      ask: "What is the mean of the numbers 1, 2 and 6 after layer norm, before its weight and bias?",
      right: 0,
      tolerance: 0.001,
      hint: "The mean of these is 3. What is left of it once 3 has been taken from each number?",
      why: "Layer norm takes the mean away, whatever it was, and divides by the standard deviation.",
    },
    {
      kind: "choice",
      ask: "Multiply all inputs of a block by 10. What does attention read?",
      options: ["Numbers ten times as large", "Nearly the same numbers", "Zeros"],
      right: 1,
      hint: "Attention reads the stream after layer norm. What becomes of mean and deviation when all grows tenfold?",
      why: "The standard deviation grows tenfold too and divides it away again. Try it with the slider.",
    },
    {
      kind: "order",
      ask: "Put the parts of a block into their order.",
      steps: ["layer norm", "attention", "add to the residual stream", "layer norm again", "MLP", "add again"],
      hint: "Each half has the same three parts: bring to size, compute, add. Attention comes in the first half.",
      why: "Each part reads a normalised copy; the stream itself is only ever added to.",
    },
  ],
  [
    {
      kind: "order",
      ask: "Put the steps that a token takes through the model in order.",
      steps: [
        "token and position embedding",
        "all layers, one after the other",
        "the last layer norm",
        "logits: a dot product with each token's vector",
        "softmax: probabilities",
      ],
      hint: "Follow the diagram above from left to right.",
      why: "Between the first and the last step the stream keeps its size; only the logits are as many as tokens.",
    },
    {
      kind: "choice",
      ask: "Which token's row of the last layer decides what is written next?",
      options: ["The first token's", "The average of all", "The last token's"],
      right: 2,
      hint: "The next token is what follows the end of the text. Which position has seen all of it?",
      why: "Each position predicts its own next token. While a text is written, only the last one is asked.",
    },
    {
      kind: "number",
      ask: "The model gives the next token a probability of 0.5. How surprising is that token in nats?",
      right: 0.6931,
      tolerance: 0.006,
      hint: "Surprise is −ln p. ln 0.5 is about −0.69.",
      why: "−ln 0.5. The loss is the mean of this over a text.",
    },
  ],
];
