// Exercises on tokens, windows and the bigram model.

/** @type {import("../rung.js").Exercise[][]} rungs 1 to 3 */
export const TEXT = [
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
      options: ["The model learns the text by heart", "The learning rate is too small", "The held-out part is easier"],
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
