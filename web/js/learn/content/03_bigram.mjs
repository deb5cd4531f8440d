// The words of rung 3. CONTRIBUTING.md explains their form and marks.

/** @type {import("../rung.js").Content} */
export const content = {
  name: "The bigram model",
  minutes: 5,
  core: false,
  learned:
    "The smallest language model is a table of pairs; loss is mean surprise, and held-out text reveals overfitting.",
  notebookDoes: "has Karpathy’s table, or trains one on your text",
  steps: [
    {
      title: "Guess from one letter",
      text: [
        "After a q you expect a u. The smallest language model knows no more than that: a *bigram model* is a table whose row for each character holds the [logits] of the next one.",
      ],
      show: ["table"],
    },
    {
      title: "Count the surprise",
      text: [
        "How good is such a table? Ask how surprised it is. Its *loss* is its average surprise, −ln p, at the next character, in [nats]. A certain guess that comes true costs 0.",
        { show: "formula" },
      ],
      show: ["table"],
    },
    {
      title: "Learn from nine tenths",
      text: [
        "The table is trained on the first nine tenths of a text; the rest is held out. The best table possible just counts the pairs of this training part: its loss there is the floor.",
        { show: "textLabel" },
        { show: "text" },
        { show: "tooLong" },
        { controls: ["steps", "rate", "start", "stop"] },
      ],
      show: ["learning"],
      about: "curve",
    },
  ],
  next: "One character says nothing of a kite, and “Look at my” says little: the kite stood earlier. How can a model use all tokens so far?",
  figure: [{ show: "table" }, { show: "learning" }],
  deeper: {
    topics: "an experiment, how it is trained",
    parts: [
      { show: "experiment" },
      {
        remarks: "What Karpathy’s lecture prints",
        items: [
          "This rung follows Andrej Karpathy’s video lecture “Let’s build GPT”. Before the training, the lecture’s table, made with the seed 1337, writes {printed}. This page’s copy of it has the same numbers, but draws other random ones to write with.",
        ],
      },
      {
        remarks: "32 examples in a batch",
        items: [
          "The 4 windows of 8 characters hold 32 examples. `cross_entropy` takes them in a row: logits of shape `(4, 8, 65)` are reshaped to `(32, 65)`, and targets of shape `(4, 8)` to `(32,)`.",
        ],
      },
      "# How it is trained",
      "Each step takes a batch of 32 windows of 8 characters at random positions in the first nine tenths; then [AdamW] changes the table. The last tenth is never trained on, so the loss there shows how well the model predicts text that it cannot have memorised.",
      { show: "trainLink" },
    ],
  },
  teacher: {
    goals: [
      "Read a row of a bigram table as chances.",
      "Compute the loss of a guess as −ln p.",
      "Recognise overfitting from two loss curves.",
    ],
    discuss: {
      ask: "What would the best bigram model of a book look like?",
      answer:
        "Its rows are the frequencies of the pairs counted in that book. No training can beat that on the same book.",
    },
    misconceptions: [
      {
        belief: "A low training loss means a good model.",
        instead: "Only text that was held out shows it: a model may have learned its training text by heart.",
      },
      {
        belief: "The loss is the share of wrong guesses.",
        instead: "It is the mean of −ln p: a right guess that was held unlikely costs, too.",
      },
    ],
  },
  worksheet: [
    {
      table: "pairs",
      text: "Count pairs of characters in the sentence: how often does each character have a follower, which comes most often, and how likely is it? The first row is done.",
    },
  ],
  calculator: "the key ln",
  exercises: [
    {
      kind: "number",
      ask: "A model gives both characters of an alphabet of 2 the same probability. Its loss in nats is ln 2 = ?",
      right: 0.6931,
      tolerance: 0.006,
      hint: "The loss is −ln p, and each of two equally likely characters has p = 1/2.",
      mistakes: [
        { number: 1, reply: "That is in bits, with the logarithm to base 2; nats take the natural one." },
        { number: 0.301, reply: "That is the logarithm to base 10; nats take the natural one." },
        { number: -0.6931, reply: "Surprise is −ln p, which is not negative." },
        { number: 0.5, reply: "That is the probability, not its surprise." },
      ],
      second: "ln 2 is a little less than 0.7.",
      why: "Minus the logarithm of 1/2. With 65 characters it is ln 65 = 4.174.",
    },
    {
      kind: "choice",
      after: "Learn from nine tenths",
      ask: "The training loss keeps falling while the held-out loss rises. What is happening?",
      options: ["The model memorises the text", "The learning rate is too small", "The held-out part is easier"],
      right: 0,
      hint: "One loss is measured on text that the model learns from, the other on text that it never sees.",
      replies: [
        "",
        "Then both losses would fall, slowly.",
        "An easier part would have a lower loss, not a rising one.",
      ],
      second: "What would a pupil get who learns the answers by heart, and then other questions?",
      why: "If a model gets better only on the text it was trained on, it memorises that text: it overfits. The tenth that it never sees shows the difference.",
    },
    {
      kind: "choice",
      after: "Learn from nine tenths",
      ask: "Why can no amount of training bring a bigram model below the floor of counted pairs on its training text?",
      options: [
        "The learning rate is too high",
        "No table of probabilities for pairs can be better than the frequencies of the pairs themselves",
        "The batches are too small",
      ],
      right: 1,
      hint: "Think of the best possible table for this text. How would you fill it in without any training?",
      replies: [
        "A lower rate only comes closer to the floor.",
        "",
        "Larger batches make the way smoother, not the floor lower.",
      ],
      second: "You would count.",
      why: "Cross-entropy is lowest where the predicted probabilities are the observed frequencies.",
    },
  ],
};
