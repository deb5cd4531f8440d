// The words of rung 5. CONTRIBUTING.md explains their form and marks.

/** @type {import("../rung.js").Content} */
export const content = {
  name: "Self-attention without weights",
  minutes: 9,
  core: true,
  learned:
    "Dot products say which words match; softmax turns them into weights, and the weights give a context vector.",
  prediction: {
    ask: "In Raschka’s sentence, “journey” looks at every word. Which one, other than itself, gets the most of its attention?",
    options: ["“starts”, whose numbers are similar", "“Your”, its neighbour", "“step”, the last word"],
    right: 0,
    why: "A dot product is large if two vectors point the same way, and (0.55, 0.87, 0.66) and (0.57, 0.85, 0.64) almost do. The position of a word plays no part yet.",
  },
  steps: [
    {
      title: "Words as numbers",
      text: [
        "In an average, all words count alike. But a vowel may look for consonants, and in a room you listen most to those whose words matter to you. *Attention* lets each word look at every word, later ones too, and gather most from those that match it.",
        "Here nothing is trained: words match if their numbers do.",
        { show: "vectors" },
      ],
      show: ["x"],
      follow: 0,
    },
    {
      title: "How well do two words match?",
      text: [
        "Each word has three roles: it looks (*query*), it is looked at (*key*), and it is averaged (*value*). The *attention score* of a query and a key is the [dot product] of their vectors: large if they point the same way and are long.",
      ],
      show: ["x", "scores"],
      follow: 1,
    },
    {
      title: "From scores to shares",
      text: [
        "Scores can be any number; shares must add up to 1. *Softmax* raises e to each score and divides by the sum of the row. So even a negative score becomes a positive share, an *attention weight*.",
      ],
      show: ["scores", "weights"],
      follow: 2,
    },
    {
      title: "Take that much of each",
      text: [
        "Multiply each word’s numbers by its weight, and add them all up. The result is a *context vector*: what the word has gathered from the sentence.",
        { show: "formula" },
      ],
      show: ["x", "weights", "context"],
      follow: 3,
    },
    {
      title: "Does the order count?",
      text: [
        "Swap two words, and see what becomes of their context vectors.",
        { controls: ["swap"] },
        { show: "swapped" },
      ],
      show: ["x", "context", "sameOutputs"],
      about: "context",
    },
  ],
  next: "Like attends to like. But “my” and “kite” are not alike. How can one word find another that it does not resemble?",
  figure: [{ row: ["x", "scores"] }, { row: ["weights", "context"] }, { show: "sameOutputs" }],
  deeper: {
    topics: "why attention, why softmax, why the stable form",
    parts: [
      {
        remarks: "Why attention at all?",
        items: [
          "Which tokens matter depends on the token that looks. An average with fixed weights cannot do that.",
          "A text cannot be translated word by word. “Kannst du mir helfen, diesen Satz zu übersetzen?” would become “Can you me help, this sentence to translate?”: the order of the words changes, so a translator has to look at whole sentences.",
          "Before attention, a recurrent network read a sentence word by word and kept what it had read in one vector of fixed size, its hidden state; a second network wrote the translation from that vector alone. A long sentence does not fit through this bottleneck, and its beginning is forgotten first.",
          "Attention was first added to such networks: for each word that it writes, the decoder may look at every word of the input and weight them by how much they matter now. Self-attention lets the words of one text look at each other in the same way, and needs no recurrent network.",
        ],
      },
      "# Why softmax and not plain division by the sum?",
      "Dividing each score by the sum of its row also gives shares, but a negative score becomes a negative share, and scores that add up to 0 give nonsense.",
      { row: ["shares"] },
      { show: "negative" },
      { show: "stamp" },
      { show: "loops" },
      "# Why the stable form?",
      "exp grows fast: for scores above about 88 it is too large for a [float32], and below about −104 it is rounded to 0, so a whole row may add up to 0. The stable form first subtracts the largest score of the row: that cancels, and no power is too large. Make the scores larger, or negative, and see which form survives.",
      { controls: ["factor"] },
      { show: "overflow" },
      { row: ["naive", "stable"] },
    ],
  },
  teacher: {
    goals: [
      "Compute a score, its weight and a context vector by hand.",
      "Say what query, key and value are for.",
      "Explain what softmax does that division by the sum cannot.",
    ],
    discuss: {
      ask: "Two words have swapped their places. Why do their context vectors stay the same?",
      answer:
        "Scores come from the vectors alone, and a sum does not depend on the order. Only positions (rung 2) would tell the two sentences apart.",
    },
    misconceptions: [
      {
        belief: "Attention weights say how important a word is.",
        instead: "They say how much one word takes from another. Another word has other weights.",
      },
      {
        belief: "A negative score means a negative weight.",
        instead: "e to any power is positive, so every weight is.",
      },
      {
        belief: "The weights depend on the word that is predicted.",
        instead: "They depend on the words that look and are looked at; the prediction comes later.",
      },
    ],
  },
  worksheet: [
    { table: "x", text: "The numbers of each word." },
    {
      table: "scores",
      text: "Scores: the products of each word’s numbers with each other word’s, added up. Compute the blank row; its column has the same numbers.",
      blank: "unlike",
    },
    {
      table: "weights",
      text: "Weights: e to each score, divided by the sum of the row. Compute the blank row.",
      blank: "unlike",
    },
    {
      table: "context",
      text: "Context vectors: each word’s numbers times its weight, added up. Compute the blank row.",
      blank: "unlike",
    },
  ],
  calculator: "the key eˣ",
  exercises: [
    {
      kind: "choice",
      ask: "Find the mistake: in notes on “Hello shiny sun”, “shiny” has the numbers (0.53, 0.34, 0.98). They give 2.405 for “shiny” · “shiny”, and the weights 0.13, 0.66 and 0.21. What is the score?",
      options: ["2.4050", "1.3569", "1.2487"],
      right: 1,
      hint: "A word’s score with itself is the sum of its own squares: 0.53² + 0.34² + 0.98².",
      replies: [
        "That is the score of the notes. Square the numbers of “shiny” yourself.",
        "",
        "Work out all three squares, and add them up.",
      ],
      second: "0.53² is 0.2809 and 0.34² is 0.1156.",
      why: "0.53² + 0.34² + 0.98² = 0.2809 + 0.1156 + 0.9604 = 1.3569, so the weights are 0.2291, 0.4063 and 0.3646. If weights are much too sharp, suspect a wrong score.",
    },
    {
      kind: "order",
      after: "Take that much of each",
      ask: "Put the steps from words to a context vector in order.",
      steps: [
        "dot products of the query with all keys",
        "exponentials",
        "divide by their sum",
        "average the values with these weights",
      ],
      hint: "First two words are compared, then the row is turned into weights, and only then is anything averaged.",
      second: "A row can be divided by the sum of its exponentials only when they are known.",
      why: "Score, softmax, weighted average: every kind of attention in these lessons has these steps.",
    },
    {
      kind: "number",
      after: "From scores to shares",
      ask: "Two keys both have the score 0. What weight does each get?",
      right: 0.5,
      tolerance: 0.001,
      hint: "exp(0) is 1. Divide each exponential by their sum.",
      mistakes: [
        { number: 0, reply: "exp(0) is not 0." },
        { number: 1, reply: "That is exp(0): divide it by the sum of both." },
        { number: 2, reply: "That is the sum of the exponentials: divide by it." },
      ],
      second: "Both exponentials are 1, so their sum is 2.",
      why: "Equal scores give equal weights: exp(0) / (exp(0) + exp(0)).",
    },
    {
      kind: "number",
      ask: "Find the mistake: notes on “Hello shiny sun” write exp(0.7842) = 2.1902, where 0.7842 is the score of “Hello” and “shiny”. What is it, to four decimal places?",
      right: 2.1907,
      tolerance: 0.00006,
      hint: "Use a calculator, or add up 1 + x + x²/2 + x³/6 + x⁴/24 + …",
      mistakes: [
        { number: 2.1902, reply: "That is the number of the notes." },
        { number: 2.1815, reply: "That is exp(0.78): the last two digits count, too." },
      ],
      second: "exp(0.78) is 2.1815, and 0.0042 more in the exponent adds about 0.0092.",
      why: "exp(0.7842) = 2.1907. The slip moves the weights only in the fourth decimal place: 0.2291, 0.4063, 0.3646.",
    },
    {
      kind: "choice",
      ask: "Find the mistake: notes say that attention weights depend on the word to predict. What do they depend on?",
      options: [
        "On the word that looks and the words that it looks at",
        "On the word to predict",
        "On the last word alone",
      ],
      right: 0,
      replies: [
        "",
        "That word is not known yet when the weights are computed.",
        "Every word has a row of weights of its own.",
      ],
      hint: "Point at a weight: which words’ numbers light up on the way to it?",
      second: "A score is a query times a key.",
      why: "A score is made of a query and a key, and softmax of the scores of a row. The next word comes only afterwards.",
    },
  ],
};
