// Exercises on tokens, windows and the bigram model.

/** @type {import("./rung.js").Exercise[][]} rungs 1 to 3 */
const TEXT = [
  [
    {
      kind: "number",
      ask: "How many tokens is “Hi there!” if each character is a token? The space and the exclamation mark count too.",
      right: 9,
      tolerance: 0,
      hint: "Count every sign on its own: the letters, the space between the words, and the mark at the end.",
      why: "Two letters, a space, five letters and a mark; in the alphabet of 65 their ids begin with 20, 47, 1.",
    },
    {
      kind: "order",
      ask: "Put the steps in which byte pairs are learned into their order.",
      steps: [
        "split the text into bytes",
        "count all pairs of neighbours",
        "merge the most frequent pair into a new token",
        "count again, until there are enough tokens",
      ],
      hint: "Nothing can be merged before it has been counted, and nothing counted before the text is in pieces.",
      why: "Each round adds one token, so the number of rounds decides the size of the vocabulary.",
    },
    {
      kind: "choice",
      ask: "A vocabulary grows from 65 characters to 50,257 byte pairs. What happens to the same text?",
      options: ["It becomes a longer sequence", "It becomes a shorter sequence", "Its length stays the same"],
      right: 1,
      hint: "Compare the lists of tokens above: the same sentence as characters, and as byte pairs.",
      why: "Bigger tokens cover more characters each: fewer of them, from a larger list. That is the trade.",
    },
  ],
  [
    {
      kind: "number",
      ask: "10 tokens, context_length 4, stride 2: how many windows?",
      right: 3,
      tolerance: 0,
      hint: "Write down where each window starts: 0, 2, 4, … Each needs 4 inputs and one token after them.",
      why:
        "A window needs 4 inputs and one more token as the last target. Starts 0, 2 and 4 leave room for that; " +
        "start 6 would need an eleventh token.",
    },
    {
      kind: "choice",
      ask: "A stride of 1 instead of context_length: what does it cost?",
      options: [
        "Tokens are skipped",
        "Nearly the same windows come again and again, which makes it easier to overfit",
        "The targets no longer fit the inputs",
      ],
      right: 1,
      hint: "Set the stride above to 1 and compare neighbouring windows: how many of their inputs do they share?",
      why: "Each token is an input up to four times. More batches, hardly any new text in them.",
    },
    {
      kind: "choice",
      ask: "Why is a position embedding added to the token embedding?",
      options: [
        "So that the same word at two places has two different vectors",
        "So that all vectors have the same length",
        "So that rare words get larger numbers",
      ],
      right: 0,
      hint: "Without it, what would differ between the vectors of the same word at two places?",
      why: "Attention compares vectors and knows nothing of order; only the vectors can carry it.",
    },
  ],
  [
    {
      kind: "number",
      ask: "A model gives all 2 characters of an alphabet the same probability. Its loss in nats is ln 2 = ?",
      right: 0.6931,
      tolerance: 0.006,
      hint: "The loss is −ln p, and each of two equally likely characters has p = 1/2.",
      why: "Minus the logarithm of 1/2. With 65 characters it is ln 65 = 4.174.",
    },
    {
      kind: "choice",
      ask: "The training loss goes on falling while the held-out loss rises. What is happening?",
      options: ["The model memorises the text", "The learning rate is too small", "The held-out part is easier"],
      right: 0,
      hint: "One loss is measured on text that the model learns from, the other on text that it never sees.",
      why:
        "What helps only on the text it was trained on is memory, not knowledge: it overfits. A tenth that it " +
        "never sees tells the two apart.",
    },
    {
      kind: "choice",
      ask:
        "Why can more training not bring a bigram model below the floor of counted pairs on the text it " +
        "learns from?",
      options: [
        "The learning rate is too high",
        "No table of probabilities for pairs can be better than the frequencies of the pairs themselves",
        "The batches are too small",
      ],
      right: 1,
      hint: "Think of the best table there could be for this text. How would you fill it in without any training?",
      why: "Cross-entropy is lowest where the predicted probabilities are the observed frequencies.",
    },
  ],
];

// Exercises on averages, attention, weights, masks and heads.

/** @type {import("./rung.js").Exercise[][]} rungs 4 to 8 */
const ATTENTION = [
  [
    {
      kind: "number",
      ask: "Three tokens with the numbers 2, 6 and 6. What is the average at the third one?",
      right: 4.6667,
      tolerance: 0.01,
      hint: "At the third token all three have come: add them up and divide by how many there are.",
      why: "(2 + 6 + 6) / 3, the left column of the toy product with its rows divided by their sums.",
    },
    {
      kind: "choice",
      ask: "What does an average of all tokens so far not know?",
      options: ["Which tokens there were", "In which order they came", "How many there were of each"],
      right: 1,
      hint: "Compare the averages of (2, 6) and of (6, 2).",
      why: "Change the order of the past and its average stays the same. Positions have to come with the vectors.",
    },
  ],
  [
    {
      kind: "choice",
      ask:
        "Find the mistake: somebody works out “Hello shiny sun” by hand, and gets 2.405 for “shiny” · “shiny” and " +
        "the weights 0.13, 0.66 and 0.21. Choose “Hello shiny sun” above: what is the score?",
      options: ["2.4050", "1.3569", "1.2487"],
      right: 1,
      hint: "A word's score with itself is the sum of its own squares: 0.53² + 0.34² + 0.98².",
      why:
        "0.53² + 0.34² + 0.98² = 0.2809 + 0.1156 + 0.9604 = 1.3569, so the weights are 0.2291, 0.4063 and 0.3646. " +
        "Weights that are much too sharp are a hint that a score is wrong.",
    },
    {
      kind: "order",
      ask: "Put the steps from words to a context vector into their order.",
      steps: [
        "dot products of the query with all keys",
        "subtract the largest score of the row",
        "exponentials",
        "divide by their sum",
        "average the values with these weights",
      ],
      hint: "First two words are compared, then the row is made into weights, and only then something is averaged.",
      why: "Score, stable softmax, weighted average: every attention in this ladder has these steps.",
    },
    {
      kind: "number",
      ask: "Two keys have the scores 0 and 0. Which weight does each get?",
      right: 0.5,
      tolerance: 0.001,
      hint: "exp(0) is 1. Divide each exponential by the sum of both.",
      why: "Equal scores make equal weights: exp(0) / (exp(0) + exp(0)).",
    },
  ],
  [
    {
      kind: "many",
      ask:
        "Find the mistakes: choose “a reader's code, with mistakes” among the matrices, which prints 0.2867 and " +
        "0.3880 for the first word. How does it differ from the book?",
      options: [
        "Query and key have changed places in the scores",
        "The scores are divided by √256 = 16, though a query has 2 numbers",
        "The softmax is taken over the columns",
        "The matrices are drawn from a normal distribution, keys first",
      ],
      right: [0, 1, 3],
      hint: "Point at a score: which rows light up? Point at a weight: what is the divisor? And where is W query from?",
      why:
        "The roles are swapped, the scale belongs to another dimension, and other numbers are drawn. Its weights " +
        "are almost equal for all words, so that all rows look alike: the divisor is far too large.",
    },
    {
      kind: "number",
      ask: "head_dim is 64. By what are the scores divided?",
      right: 8,
      tolerance: 0,
      hint: "The divisor is the root of head_dim, not head_dim itself.",
      why: "By √64, which brings their variance from about 64 back to about 1.",
    },
    {
      kind: "choice",
      ask: "Which of the three matrices could change without any change of the attention weights?",
      options: ["W query", "W key", "W value"],
      right: 2,
      hint: "Point at an attention weight above and follow what lights up: which of the three is never part of it?",
      why: "The weights come from queries and keys; the values are what is averaged with them.",
    },
  ],
  [
    {
      kind: "choice",
      ask:
        "Find the mistake: instead of masked_fill, someone adds triu(ones, 1) × −∞ to the scores. What becomes of " +
        "the past?",
      options: ["It stays as it was", "It becomes 0", "It becomes NaN"],
      right: 2,
      hint: "Below the diagonal, triu leaves zeros. What is 0 × ∞? Look at the picture of the way that fails.",
      why: "The zeros below the diagonal are multiplied by infinity too, and 0 × ∞ is not a number. Fill, do not add.",
    },
    {
      kind: "number",
      ask: "Dropout with p = 0.2: by what are the weights that are kept multiplied?",
      right: 1.25,
      tolerance: 0.001,
      hint: "On average a share of 1 − p is kept. What brings its sum back to what it was?",
      why: "1 / (1 − 0.2), so that a row still adds up to 1 on average.",
    },
    {
      kind: "choice",
      ask: "The first row of causal attention weights is 1, 0, 0, … What is the first token's context vector?",
      options: ["The average of all values", "Its own value", "Zero"],
      right: 1,
      hint: "A context vector is the weighted average of the values, and here only one of the weights is not 0.",
      why: "All the weight is on itself.",
    },
  ],
  [
    {
      kind: "number",
      ask: "12 heads, d_out = 768: how many numbers has each head?",
      right: 64,
      tolerance: 0,
      hint: "All heads together have d_out numbers, and each has the same share of them.",
      why: "768 / 12; d_out must be divisible by the number of heads. These are the sizes of the smallest GPT-2.",
    },
    {
      kind: "order",
      ask: "Put the shapes into the order in which weight splits go through them.",
      steps: [
        "(B, T, C) after the projection",
        "(B, T, n_head, head_dim) after view",
        "(B, n_head, T, head_dim) after transpose",
        "(B, n_head, T, T) scores",
        "(B, T, C) heads side by side again",
      ],
      hint: "view splits the last dimension in two; transpose then moves the heads before the tokens.",
      why: "The transpose puts the heads before the tokens, so that one batched product serves all of them.",
    },
    {
      kind: "choice",
      ask: "Why several heads, and not one that is as wide as all of them together?",
      options: [
        "A row of weights adds up to 1, so one head can only look at one mixture of tokens at a time",
        "Several heads need fewer weights than one",
        "One head could not be masked",
      ],
      right: 0,
      hint: "Look at the two trained heads above: could one row of weights be both of them at once?",
      why:
        "One head averages with one set of weights. What it takes from the token before and what it takes from " +
        "the first token would end up in one sum; two heads keep them apart until the output projection mixes them.",
    },
  ],
];

// Exercises on a block and the whole model.

/** @type {import("./rung.js").Exercise[][]} rungs 9 and 10 */
const MODEL = [
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

// The exercises of all rungs.

/** @type {import("./rung.js").Exercise[][]} by rung */
export const EXERCISES = [...TEXT, ...ATTENTION, ...MODEL];
