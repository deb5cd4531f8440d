// The words of rung 2. CONTRIBUTING.md explains their form and marks.

/** @type {import("../rung.js").Content} */
export const content = {
  name: "Windows and vectors",
  minutes: 4,
  core: false,
  learned:
    "Windows and the same windows shifted by one token are the training data: the target is always what comes next.",
  prediction: {
    ask: "How many next tokens can a model practise on with a window of 4 tokens?",
    options: ["1", "4", "16"],
    right: 1,
    why: "One for each position: after the first token, after the first two, and so on. That is why the targets are as long as the inputs.",
  },
  opening: [
    "A GPT needs two things from a text: exercises to learn from, and numbers to compute with. It gets the exercises from windows, and the numbers as vectors.",
  ],
  path: [
    "# 1. Windows: what it learns from",
    "The task is to predict the next token, so any text will do. It is cut into windows of `context_length` tokens, one starting every `stride` tokens. The *targets* are the same windows, one token later: at each position the model sees the inputs up to there and has to predict the target below.",
    { controls: ["length", "stride"] },
    { show: "status" },
    { show: "list" },
    "# 2. Vectors: what it computes with",
    "An id is only an index. Each gets a row of numbers that can be learned, its *token embedding*. A row for its position, the *position embedding*, is added: without it, a token would have the same vector everywhere. Here both tables are random ([seed] 123).",
    { show: "sumFormula" },
    "The vocabulary, your sentence’s words and marks, sorted:",
    { show: "vocabulary" },
    "Your sentence as one window:",
    { row: ["token", "position", "x"] },
  ],
  deeper: {
    topics: "windows into batches, the sizes of a real model",
    parts: [
      {
        remarks: "Pretraining, and the choice of the stride",
        items: [
          "This is how a GPT is pretrained: on texts that nobody has labelled, because the next token is the label. Afterwards it can be fine-tuned on less data, to follow instructions or to classify mail.",
          "A small stride repeats nearly the same windows many times: more batches, but hardly more to learn from, which makes [overfitting] more likely. A stride of context_length uses every token as an input once.",
        ],
      },
      "# Windows into batches",
      "Several windows are read at once: a batch has the shape `(batch_size, context_length)`. Shuffling keeps neighbouring windows out of the same batch. An incomplete last batch is often dropped, because an update from only a few windows is noisy. The numbers are those of the windows above, counted from 0.",
      { controls: ["batchSize", "order", "last"] },
      { show: "batches" },
      "Positions are counted from 0 in each window, so a word gets a different position vector in another one. A trained GPT does the same with hundreds of numbers for each token. Positions return on rung 10; the numbers of rungs 4 to 9 have none, unless you choose “random” there, which takes the sums above. Those of Raschka’s sentence come from chapter 3 of Sebastian Raschka’s “Build a Large Language Model (From Scratch)”, the book that these rungs follow; those of your own words, from a trained model.",
      {
        remarks: "At the sizes of a real model",
        items: [
          "GPT-2 has 50,257 tokens. With 256 numbers each, the table would be 50,257 × 256, or 12.9 million weights. A batch of 8 windows of 4 tokens becomes a tensor of shape `(8, 4, 256)`, and keeps that shape when the position embeddings, `(4, 256)`, are added.",
          "The book trains on The Verdict and cuts its windows in the same way. These are the first 50 ids in GPT-2's byte pairs: {verdict}",
          "These positions are absolute: one vector for position 0, one for position 1. Other models encode how far apart two tokens are. Such relative positions carry over to texts longer than those in training.",
        ],
      },
    ],
  },
  exercises: [
    {
      kind: "number",
      further: true,
      ask: "A text has 10 tokens, context_length is 4 and the stride is 2. How many windows are there?",
      right: 3,
      tolerance: 0,
      hint: "Write down where each window starts: 0, 2, 4, … Each needs 4 inputs and one token after them.",
      why: "A window needs 4 inputs and one more token as the last target. Starts 0, 2 and 4 leave room for that; start 6 would need an eleventh token.",
    },
    {
      kind: "choice",
      further: true,
      ask: "What is the drawback of a stride of 1 instead of context_length?",
      options: [
        "Tokens are skipped",
        "Nearly the same windows recur again and again, which makes overfitting more likely",
        "The targets no longer fit the inputs",
      ],
      right: 1,
      hint: "Set the stride above to 1 and compare neighbouring windows: how many of their inputs do they share?",
      why: "With windows of 4, each token is an input up to four times: more batches, but hardly any new text in them.",
    },
    {
      kind: "choice",
      ask: "Why is a position embedding added to the token embedding?",
      options: [
        "So that the same word has a different vector at each position",
        "So that all vectors have the same length",
        "So that rare words get larger numbers",
      ],
      right: 0,
      hint: "Without it, how would the vectors of the same word at two positions differ?",
      why: "Attention compares vectors. Without positions, those of a word are the same wherever it stands.",
    },
    {
      kind: "number",
      ask: "Find the mistake: notes show 4 rows of inputs and 5 rows of targets. How many rows of targets are right?",
      right: 4,
      tolerance: 0,
      hint: "Each window has its own targets: the same tokens, shifted by one.",
      why: "Inputs and targets have the same shape, here 4 rows each: there is one target for every input token.",
    },
  ],
};
