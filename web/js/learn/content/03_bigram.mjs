// The words of rung 3. CONTRIBUTING.md explains their form and marks.

/** @type {import("../rung.js").Content} */
export const content = {
  name: "The bigram model",
  minutes: 5,
  core: false,
  learned:
    "The smallest language model is a table of pairs; loss is mean surprise, and held-out text reveals overfitting.",
  notebookDoes: "trains the table as “Train it” does",
  opening: [
    "How well can the next character be guessed from the current one alone? That is what attention has to beat. The smallest language model is a table whose row for each character holds the [logits] of the next one.",
    "Its *loss* is its average surprise, −ln p, at the next character, in [nats].",
  ],
  path: [
    { show: "table" },
    "# 2. How it learned",
    "The table is trained on the first nine tenths of a text; the rest is held out. The best table possible just counts the pairs of this training part: its loss there is the floor.",
    { show: "textLabel" },
    { show: "text" },
    { show: "tooLong" },
    { controls: ["steps", "rate", "start", "stop"] },
    { show: "learning" },
  ],
  deeper: {
    topics: "an experiment, how it is trained",
    parts: [
      { show: "experiment" },
      "# How it is trained",
      "Each step takes a batch of 32 windows of 8 characters at random positions in the first nine tenths; then [AdamW] changes the table. The last tenth is never trained on, so the loss there shows how well the model predicts text that it cannot have memorised.",
      { show: "trainLink" },
    ],
  },
  exercises: [
    {
      kind: "number",
      further: true,
      ask: "A model gives both characters of an alphabet of 2 the same probability. Its loss in nats is ln 2 = ?",
      right: 0.6931,
      tolerance: 0.006,
      hint: "The loss is −ln p, and each of two equally likely characters has p = 1/2.",
      why: "Minus the logarithm of 1/2. With 65 characters it is ln 65 = 4.174.",
    },
    {
      kind: "choice",
      ask: "The training loss keeps falling while the held-out loss rises. What is happening?",
      options: ["The model memorises the text", "The learning rate is too small", "The held-out part is easier"],
      right: 0,
      hint: "One loss is measured on text that the model learns from, the other on text that it never sees.",
      why: "If a model gets better only on the text it was trained on, it memorises that text: it overfits. The tenth that it never sees shows the difference.",
    },
    {
      kind: "choice",
      ask: "Why can no amount of training bring a bigram model below the floor of counted pairs on its training text?",
      options: [
        "The learning rate is too high",
        "No table of probabilities for pairs can be better than the frequencies of the pairs themselves",
        "The batches are too small",
      ],
      right: 1,
      hint: "Think of the best possible table for this text. How would you fill it in without any training?",
      why: "Cross-entropy is lowest where the predicted probabilities are the observed frequencies.",
    },
  ],
};
