// The words of rung 6. CONTRIBUTING.md explains their form and marks.

/** @type {import("../rung.js").Content} */
export const content = {
  name: "Trainable weights",
  minutes: 13,
  core: true,
  learned:
    "With three matrices, training decides what a word looks for, what it is found by and what it contributes; dividing by √head_dim keeps the scores small.",
  prediction: {
    ask: "“sleeps” and its subject “cat” have quite different vectors. What has to change so that it looks at the cat?",
    options: ["The query of “sleeps” and the key of “cat”", "The value of “cat”", "The distance between the two words"],
    right: 0,
    why: "Weights come from queries and keys alone. Training changes the matrices that make them until these two match; the words’ own vectors can stay as they are.",
  },
  steps: [
    {
      title: "A verb looks for its subject",
      text: [
        "Who sleeps, the cat or the dogs? A verb has to find its subject, and the two need not be alike. Three trainable matrices, together a *head*, decide what a word looks for (query), what it is found by (key), and what it contributes (value).",
        "In “the cat near the dogs sleeps” the verb has to output its subject, the cat; in “the dogs near the cat sleep”, the dogs. Each step changes the matrices a little, against the [gradient] of the loss, the surprise at the right noun.",
        { controls: ["learningButtons"] },
        { show: "learningStatus" },
      ],
      show: ["learning"],
      about: "shares",
    },
    {
      title: "Why the scores are divided",
      text: [
        "The more numbers a query has, `head_dim`, the further apart its scores. Softmax then gives one word most of the weight before anything is learned, and soon leaves hardly any gradient. So the scores are divided by √head_dim. Of the two heads shown, with 256 numbers in a query, only one divides.",
        { controls: ["divisionButtons"] },
        { show: "divisionStatus" },
      ],
      show: ["division"],
    },
    {
      title: "Three roles of one word",
      text: [
        "The same steps for your sentence, with random matrices and two numbers in a query. Three products of each word’s vector let it look for one thing and be found by another.",
      ],
      show: ["x", "projections"],
      follow: 2,
    },
    {
      title: "Scores, shares, contexts",
      text: [
        "From here on it is rung 5: query times key, divided by √head_dim, softmax, and the average of the values.",
        { show: "formula" },
      ],
      show: ["scores", "weights", "context"],
      follow: 4,
    },
  ],
  next: "So “my” can look for a thing that was named. But a model that learns to guess the next word must not see it. How is it hidden?",
  figure: [
    { show: "learning" },
    { show: "division" },
    { show: "x" },
    { row: ["projections"] },
    { row: ["scores", "weights", "context"] },
  ],
  deeper: {
    topics:
      "arrows, other words and matrices, two trained heads, an exercise from Raschka’s book, how far scores spread",
    parts: [
      { show: "arrows" },
      { show: "vectors" },
      { controls: ["kind", "back"] },
      { show: "about" },
      { row: ["wide"] },
      {
        remarks: "Worth knowing",
        items: [
          "Why values? In [Karpathy’s lecture](Karpathy) a head first averages the tokens’ own 32 numbers, so its output has the shape `(4, 8, 32)`; with values it is `(4, 8, 16)`, the size of the head. A value is what a token tells if it is found, which need not be all that it is.",
          "The words that learn above have fixed vectors without positions, so both “the” get the same weight, and the verb’s context vector holds a logit for each noun. Without the division the gradient starts larger, before it all but vanishes.",
          "[Raschka’s book](Raschka) first makes the matrices with `requires_grad=False` to keep its outputs short. To train them they are `nn.Parameter`s or layers, and gradients are computed for them.",
          "Here three numbers become two, so that inputs and roles can be told apart. In a GPT d_in and d_out are usually the same, because input and output both belong to the residual stream.",
          "`nn.Linear` without a bias is the same product, but the spread of its initial numbers suits its size, which helps training. It stores its matrix transposed, as (out, in): see the exercise below.",
        ],
      },
      "# After training: two heads on your sentence",
      { show: "heads" },
      "# Exercise from Raschka’s book: make the two agree",
      { show: "transfer" },
      { show: "stamp" },
      "# How far random scores spread",
      { show: "scaling" },
    ],
  },
  teacher: {
    goals: [
      "Say which matrix decides what a word looks for, what it is found by and what it gives.",
      "Explain why scores are divided by √head_dim.",
    ],
    discuss: {
      ask: "“sleeps” does not resemble “cat”. How can it find it?",
      answer:
        "Its query and the cat’s key are made by different matrices, and training changes these until they match.",
    },
    misconceptions: [
      { belief: "Query, key and value are three words.", instead: "They are three vectors of the same word." },
      {
        belief: "A word must resemble what it looks at.",
        instead: "That is so without trained matrices (rung 5). With them, unlike words can match.",
      },
      {
        belief: "The division by √head_dim changes which word gets the most.",
        instead:
          "Within a row the order of the scores stays: only the shares become less extreme, so that a gradient is left.",
      },
    ],
  },
  worksheet: [
    { table: "x", text: "The numbers x of each word." },
    { table: "key", text: "Keys: x · W key.", blank: [1] },
    { table: "value", text: "Values: x · W value.", blank: [1] },
    { table: "query", text: "One query: x · W query.", blank: [1], alone: true },
    { table: "matrices.query", text: "W query.", rows: "numbers" },
    { table: "matrices.key", text: "W key.", rows: "numbers" },
    { table: "matrices.value", text: "W value.", rows: "numbers" },
    {
      table: "scores",
      text: "Scores of the word with blank rows: its query times each key, added up.",
      blank: [1],
      alone: true,
    },
    {
      table: "weights",
      text: "Its weights: divide by √2, since a query has two numbers, then softmax.",
      blank: [1],
      alone: true,
    },
    { table: "context", text: "Its context vector: the values times the weights, added up.", blank: [1], alone: true },
  ],
  calculator: "the keys eˣ and √",
  exercises: [
    {
      kind: "many",
      onScreen: true,
      ask: "Find the mistakes: under “Deeper”, choose “a reader’s code, with mistakes” as the matrices. It prints 0.2867 and 0.3880 for the first word. How does it differ from Raschka’s?",
      options: [
        "Query and key are swapped in the scores",
        "The scores are divided by √256 = 16, though a query has 2 numbers",
        "The softmax is taken over the columns",
        "The matrices are drawn from a normal distribution, keys first",
      ],
      right: [0, 1, 3],
      replies: [
        "Look again at what a score is made of: which word’s query, which word’s key?",
        "Look again at the divisor below a weight.",
        "One that you have chosen is not true: look along which line the weights add up to 1.",
        "Look again at how the matrices are drawn.",
      ],
      hint: "Point at a score: which rows light up? Point at a weight: what is the divisor? How was W query drawn?",
      second: "Three of the four are true. The rows add up to 1: so which axis does the softmax take?",
      why: "The roles are swapped, the divisor is for queries of 256 numbers, and the matrices are drawn from another distribution. The divisor is far too large, so the weights are almost equal and all rows look alike.",
    },
    {
      kind: "number",
      after: "Why the scores are divided",
      ask: "If head_dim is 64, by what are the scores divided?",
      right: 8,
      tolerance: 0,
      hint: "The divisor is the square root of head_dim, not head_dim itself.",
      mistakes: [
        { number: 64, reply: "That is head_dim itself." },
        { number: 32, reply: "That is half of it: take the square root." },
        { number: 0.125, reply: "That is what the scores are multiplied by." },
      ],
      second: "Which number times itself is 64?",
      why: "By √64, which brings their variance from about 64 back to about 1.",
    },
    {
      kind: "choice",
      after: "Scores, shares, contexts",
      ask: "Which of the three matrices can change without changing the attention weights?",
      options: ["W query", "W key", "W value"],
      right: 2,
      hint: "Point at an attention weight in the figure and follow what lights up: which of the three never does?",
      replies: ["The query is one half of every score.", "The key is one half of every score.", ""],
      second: "A score is a query times a key.",
      why: "The weights are computed from queries and keys. The values are only averaged with them.",
    },
  ],
};
