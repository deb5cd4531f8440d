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
  steps: [
    {
      title: "Every text is an exercise book",
      text: [
        "Cover the end of a sentence and guess how it goes on: that is the whole task. So any text will do. It is cut into windows of `context_length` tokens, one starting every `stride` tokens.",
        "The *targets* are the same windows, one token later. At each position the model sees the inputs up to there, and has to predict the target below.",
        { controls: ["length", "stride"] },
        { show: "formula" },
      ],
      show: ["status", "list"],
    },
    {
      title: "An id picks a row",
      text: [
        "An id is only an index, like a page number. Behind each stands a row of numbers that can be learned, its *token embedding*. Here there are three, drawn at random ([seed] 123); in a GPT there are hundreds.",
      ],
      show: ["vocabulary", "token"],
      follow: 1,
    },
    {
      title: "The place counts, too",
      text: [
        "“Dog bites man” is not “man bites dog”. So a row for its position, the *position embedding*, is added to each token’s own. Without it, a token would have the same vector everywhere.",
      ],
      show: ["token", "position", "x", "sumFormula"],
      follow: 3,
    },
  ],
  next: "A token is now a vector that can be learned. How well can a model guess “kite” if it looks at the token before it, and at nothing else?",
  figure: [
    { show: "status" },
    { show: "list" },
    { show: "vocabulary" },
    { show: "sumFormula" },
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
      "Several windows are read at once: a batch has the shape `(batch_size, context_length)`. Shuffling keeps neighbouring windows out of the same batch. An incomplete last batch is often dropped, because an update from only a few windows is noisy. The numbers are those of the windows in the figure, counted from 0.",
      { controls: ["batchSize", "order", "last"] },
      { show: "batches" },
      "Positions are counted from 0 in each window, so a word gets a different position vector in another one. A trained GPT does the same with hundreds of numbers for each token. Positions return on rung 10; the numbers of rungs 4 to 9 have none, unless you choose “random” there, which takes the sums in the figure. Those of Raschka’s sentence come from chapter 3 of Sebastian Raschka’s “Build a Large Language Model (From Scratch)”, the book that these rungs follow; those of your own words, from a trained model.",
      "# The first batch in Raschka’s book",
      "The book trains on “The Verdict”, a short story, in GPT-2’s byte pairs. Its text begins with the ids {verdict} …, and this is its first batch of 8 windows.",
      { controls: ["verdictStride"] },
      { show: "verdictBatch" },
      {
        remarks: "At the sizes of a real model",
        items: [
          "GPT-2 has 50,257 tokens. With 256 numbers each, the table would be 50,257 × 256, or 12.9 million weights. A batch of 8 windows of 4 tokens becomes a tensor of shape `(8, 4, 256)`, and keeps that shape when the position embeddings, `(4, 256)`, are added.",
          "These positions are absolute: one vector for position 0, one for position 1. Other models encode how far apart two tokens are. Such relative positions carry over to texts longer than those in training.",
        ],
      },
    ],
  },
  teacher: {
    goals: [
      "Turn a text into inputs and targets, given context_length and stride.",
      "Explain why a position is added to the vector of a token.",
    ],
    discuss: {
      ask: "Who labelled the training data of a GPT?",
      answer: "Nobody: the next token is the label, so any text will do.",
    },
    misconceptions: [
      {
        belief: "A window is one exercise.",
        instead: "It is as many exercises as it has tokens: each position has its own target.",
      },
      {
        belief: "A token’s vector already knows where the token stands.",
        instead:
          "The same row of the table is used wherever it stands; only the sum with a position tells two places apart.",
      },
    ],
  },
  worksheet: [
    { table: "windows", text: "The targets are the inputs, one token later. Write the targets of each window." },
    { table: "token", text: "The token embedding of each word." },
    { table: "position", text: "The embedding of each position." },
    { table: "x", text: "Their sum. Fill in the blank rows.", blank: [1, 2] },
  ],
  exercises: [
    {
      kind: "number",
      ask: "A text has 10 tokens, context_length is 4 and the stride is 2. How many windows are there?",
      right: 3,
      tolerance: 0,
      hint: "Write down where each window starts: 0, 2, 4, … Each needs 4 inputs and one token after them.",
      mistakes: [
        { number: 4, reply: "A window that starts at 6 has no token left as its last target." },
        { number: 7, reply: "That many there would be with a stride of 1, and without a last target." },
        { number: 6, reply: "That is right for a stride of 1." },
        { number: 5, reply: "Not every second token leaves room for a whole window." },
      ],
      second: "The last target of the window that starts at s is token s + 4.",
      why: "A window needs 4 inputs and one more token as the last target. Starts 0, 2 and 4 leave room for that; start 6 would need an eleventh token.",
    },
    {
      kind: "choice",
      ask: "What is the drawback of a stride of 1 instead of context_length?",
      options: [
        "Tokens are skipped",
        "Nearly the same windows recur again and again, which makes overfitting more likely",
        "The targets no longer fit the inputs",
      ],
      right: 1,
      hint: "Set the stride to 1 and compare neighbouring windows: how many of their inputs do they share?",
      replies: [
        "None is skipped: each token is an input, most of them several times.",
        "",
        "Targets are always the inputs, one token later, whatever the stride.",
      ],
      second: "How many windows does one token lie in?",
      why: "With windows of 4, each token is an input up to four times: more batches, but hardly any new text in them.",
    },
    {
      kind: "choice",
      after: "The place counts, too",
      ask: "Why is a position embedding added to the token embedding?",
      options: [
        "So that the same word has a different vector at each position",
        "So that all vectors have the same length",
        "So that rare words get larger numbers",
      ],
      right: 0,
      hint: "Without it, how would the vectors of the same word at two positions differ?",
      replies: [
        "",
        "The vectors have the same number of numbers without it.",
        "A position says nothing about how rare a word is.",
      ],
      second: "Think of “dog bites man”.",
      why: "Attention compares vectors. Without positions, those of a word are the same wherever it stands.",
    },
    {
      kind: "number",
      after: "Every text is an exercise book",
      ask: "Find the mistake: notes show 4 rows of inputs and 5 rows of targets. How many rows of targets are right?",
      right: 4,
      tolerance: 0,
      hint: "Each window has its own targets: the same tokens, shifted by one.",
      mistakes: [
        { number: 5, reply: "Five is what the notes show: one row too many." },
        { number: 3, reply: "Each row of inputs has a row of targets, the last one too." },
      ],
      second: "Inputs and targets are two tables of the same shape.",
      why: "Inputs and targets have the same shape, here 4 rows each: there is one target for every input token.",
    },
    {
      kind: "choice",
      ask: "Find the mistake: notes say that the vector of a token has billions of dimensions. How many numbers has it in the smallest GPT-2?",
      options: ["768", "50,257", "124 million"],
      right: 0,
      replies: [
        "",
        "That is the number of tokens: so many vectors there are.",
        "That is the number of all weights of the model.",
      ],
      hint: "A vector is one row of the table. What is counted in billions in a large model?",
      second: "It is fewer than a thousand.",
      why: "768. A large model has billions of weights in all its matrices together, but a token’s vector has thousands of numbers at most: 12,288 in GPT-3.",
    },
  ],
};
