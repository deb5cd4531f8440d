// Exercises on tokens, windows and the bigram model.

/** @type {import("./rung.js").Exercise[][]} rungs 1 to 3 */
const TEXT = [
  [
    {
      kind: "number",
      ask: "How many tokens is “Hi there!” if each character is a token? The space and the exclamation mark count too.",
      right: 9,
      tolerance: 0,
      hint: "Count every character: the letters, the space between the words, and the mark at the end.",
      why: "Two letters, a space, five letters and a mark; in the alphabet of 65 their ids begin with 20, 47, 1.",
    },
    {
      kind: "order",
      ask: "Byte pairs are learned in these steps. Put them in order.",
      steps: [
        "split the text into bytes",
        "count all pairs of adjacent tokens",
        "merge the most frequent pair into a new token",
        "count again, until there are enough tokens",
      ],
      hint: "No pair can be merged before it has been counted, and none counted before the text is in pieces.",
      why: "Each round adds one token, so the number of rounds decides the size of the vocabulary.",
    },
    {
      kind: "choice",
      ask: "A vocabulary grows from 65 characters to 50,257 byte pairs. What happens to the same text?",
      options: ["It becomes a longer sequence", "It becomes a shorter sequence", "Its length stays the same"],
      right: 1,
      hint: "Compare the lists of tokens above: the same sentence as characters, and as byte pairs.",
      why: "Each token covers more characters, so there are fewer of them, from a larger list. That is the trade-off.",
    },
  ],
  [
    {
      kind: "number",
      ask: "A text has 10 tokens, context_length is 4 and the stride is 2. How many windows are there?",
      right: 3,
      tolerance: 0,
      hint: "Write down where each window starts: 0, 2, 4, … Each needs 4 inputs and one token after them.",
      why:
        "A window needs 4 inputs and one more token as the last target. Starts 0, 2 and 4 leave room for that; " +
        "start 6 would need an eleventh token.",
    },
    {
      kind: "choice",
      ask: "What is the drawback of a stride of 1 instead of context_length?",
      options: [
        "Tokens are skipped",
        "Nearly the same windows come again and again, which makes overfitting more likely",
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
      why: "Attention compares vectors and knows nothing about order; only the vectors can carry it.",
    },
  ],
  [
    {
      kind: "number",
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
      why:
        "If a model gets better only on the text it was trained on, it memorises that text: it overfits. The tenth " +
        "that it never sees shows the difference.",
    },
    {
      kind: "choice",
      ask:
        "Why can no amount of training bring a bigram model below the floor of counted pairs on its training " +
        "text?",
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
];

// Exercises on averages, attention, weights, masks and heads.

/** @type {import("./rung.js").Exercise[][]} rungs 4 to 8 */
const ATTENTION = [
  [
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
      ask: "What does an average of all tokens so far not tell?",
      options: ["Which tokens there were", "In which order they came", "How many of each there were"],
      right: 1,
      hint: "Compare the averages of (2, 6) and of (6, 2).",
      why: "Reorder the past and its average stays the same. The vectors themselves have to carry the positions.",
    },
  ],
  [
    {
      kind: "choice",
      ask:
        "Find the mistake: someone works out “Hello shiny sun” by hand and gets 2.405 for “shiny” · “shiny”, and " +
        "the weights 0.13, 0.66 and 0.21. Choose “Hello shiny sun” above. What is the score?",
      options: ["2.4050", "1.3569", "1.2487"],
      right: 1,
      hint: "A word's score with itself is the sum of its own squares: 0.53² + 0.34² + 0.98².",
      why:
        "0.53² + 0.34² + 0.98² = 0.2809 + 0.1156 + 0.9604 = 1.3569, so the weights are 0.2291, 0.4063 and 0.3646. " +
        "If weights are much too sharp, suspect a wrong score.",
    },
    {
      kind: "order",
      ask: "Put the steps from words to a context vector in order.",
      steps: [
        "dot products of the query with all keys",
        "subtract the largest score of the row",
        "exponentials",
        "divide by their sum",
        "average the values with these weights",
      ],
      hint: "First two words are compared, then the row is turned into weights, and only then is anything averaged.",
      why: "Score, stable softmax, weighted average: every kind of attention in these lessons has these steps.",
    },
    {
      kind: "number",
      ask: "Two keys both have the score 0. What weight does each get?",
      right: 0.5,
      tolerance: 0.001,
      hint: "exp(0) is 1. Divide each exponential by their sum.",
      why: "Equal scores give equal weights: exp(0) / (exp(0) + exp(0)).",
    },
  ],
  [
    {
      kind: "many",
      ask:
        "Find the mistakes: choose “a reader's code, with mistakes” as the matrices. It prints 0.2867 and 0.3880 " +
        "for the first word. How does it differ from the book?",
      options: [
        "Query and key are swapped in the scores",
        "The scores are divided by √256 = 16, though a query has 2 numbers",
        "The softmax is taken over the columns",
        "The matrices are drawn from a normal distribution, keys first",
      ],
      right: [0, 1, 3],
      hint: "Point at a score: which rows light up? Point at a weight: what is the divisor? How was W query drawn?",
      why:
        "The roles are swapped, the divisor is for queries of 256 numbers, and the matrices are drawn from another " +
        "distribution. The divisor is far too large, so the weights are almost equal and all rows look alike.",
    },
    {
      kind: "number",
      ask: "If head_dim is 64, by what are the scores divided?",
      right: 8,
      tolerance: 0,
      hint: "The divisor is the square root of head_dim, not head_dim itself.",
      why: "By √64, which brings their variance from about 64 back to about 1.",
    },
    {
      kind: "choice",
      ask: "Which of the three matrices can change without changing the attention weights?",
      options: ["W query", "W key", "W value"],
      right: 2,
      hint: "Point at an attention weight above and follow what lights up: which of the three never does?",
      why: "The weights are computed from queries and keys. The values are only averaged with them.",
    },
  ],
  [
    {
      kind: "choice",
      ask:
        "Find the mistake: instead of using masked_fill, someone adds triu(ones, 1) × −∞ to the scores. What " +
        "happens to the scores of the past?",
      options: ["They stay the same", "They become 0", "They become NaN"],
      right: 2,
      hint: "Below the diagonal, triu leaves zeros. What is 0 × ∞? Look at the table under “A way that fails”.",
      why: "The zeros below the diagonal are multiplied by infinity too, and 0 × ∞ is not a number. Fill, don't add.",
    },
    {
      kind: "number",
      ask: "With dropout of p = 0.2, by what are the remaining weights multiplied?",
      right: 1.25,
      tolerance: 0.001,
      hint: "On average a fraction of 1 − p is kept. What restores the sum?",
      why: "1 / (1 − 0.2), so that a row still adds up to 1 on average.",
    },
    {
      kind: "choice",
      ask: "The first row of causal attention weights is 1, 0, 0, … What is the first token's context vector?",
      options: ["The average of all values", "Its own value", "Zero"],
      right: 1,
      hint: "A context vector is the weighted average of the values, and here only one weight is not 0.",
      why: "Its whole weight is on itself.",
    },
  ],
  [
    {
      kind: "number",
      ask: "There are 12 heads and d_out is 768. How many numbers does each head have?",
      right: 64,
      tolerance: 0,
      hint: "All heads together have d_out numbers, shared equally.",
      why: "768 / 12; d_out must be divisible by the number of heads. These are the sizes of the smallest GPT-2.",
    },
    {
      kind: "order",
      ask: "Put the shapes in the order in which weight splits produce them.",
      steps: [
        "(B, T, C) after the projection",
        "(B, T, n_head, head_dim) after view",
        "(B, n_head, T, head_dim) after transpose",
        "(B, n_head, T, T) scores",
        "(B, T, C) heads side by side again",
      ],
      hint: "view splits the last dimension in two; transpose then moves the heads before the tokens.",
      why: "The transpose puts the heads before the tokens, so that one batched product computes all of them.",
    },
    {
      kind: "choice",
      ask: "Why use several heads rather than one that is as wide as all of them together?",
      options: [
        "A row of weights adds up to 1, so one head can only look at one mixture of tokens at a time",
        "Several heads need fewer weights than one",
        "One head could not be masked",
      ],
      right: 0,
      hint: "Look at the two trained heads above: could a single row of weights do the work of both?",
      why:
        "One head averages with one set of weights. What it takes from the previous token and from the first token " +
        "ends up in a single sum; two heads keep them apart until the output projection mixes them.",
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
      hint: "Their mean is 3. What is the mean after 3 has been subtracted from each number?",
      why: "Layer norm subtracts the mean, whatever it is, and divides by the standard deviation.",
    },
    {
      kind: "choice",
      ask: "All inputs of a block are multiplied by 10. What does attention read?",
      options: ["Numbers ten times as large", "Nearly the same numbers", "Zeros"],
      right: 1,
      hint: "Attention reads the stream after layer norm. What happens to the mean and the standard deviation?",
      why: "The standard deviation also grows tenfold, so dividing by it cancels the factor. Try it with the slider.",
    },
    {
      kind: "order",
      ask: "Put the parts of a block in order.",
      steps: ["layer norm", "attention", "add to the residual stream", "layer norm again", "MLP", "add again"],
      hint: "Each half has the same three parts: normalise, compute, add. Attention comes in the first half.",
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
      why: "The residual stream has the same size all the way; the logits are one for each token of the vocabulary.",
    },
    {
      kind: "choice",
      ask: "Which row of the last layer's output decides what is written next?",
      options: ["The first token's", "The average of all rows", "The last token's"],
      right: 2,
      hint: "The next token is what follows the end of the text. Which position has seen all of it?",
      why: "Each position predicts its own next token. While a text is written, only the last prediction is used.",
    },
    {
      kind: "number",
      ask: "The model gives the next token a probability of 0.5. How surprising is that token in nats?",
      right: 0.6931,
      tolerance: 0.006,
      hint: "Surprise is −ln p, and ln 0.5 is about −0.69.",
      why: "It is −ln 0.5. The loss is the mean surprise over a text.",
    },
  ],
];

// The exercises of all rungs.

/** @type {import("./rung.js").Exercise[][]} by rung */
export const EXERCISES = [...TEXT, ...ATTENTION, ...MODEL];
