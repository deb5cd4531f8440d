// The words of rung 7. CONTRIBUTING.md explains their form and marks.

/** @type {import("../rung.js").Content} */
export const content = {
  name: "Causal masking",
  minutes: 4,
  core: true,
  learned: "No token looks ahead: minus infinity before the softmax, and each row still adds up to 1.",
  prediction: {
    ask: "What is the first word’s attention weight on itself, once the future is masked?",
    options: ["The same as before", "Exactly 1", "1 divided by the number of words"],
    right: 1,
    why: "It has nothing else to look at, and a row adds up to 1.",
  },
  steps: [
    {
      title: "No peeking",
      text: [
        "Whoever guesses the next word must not see it: a card player does not learn from open cards. In *causal* attention, no query looks at a key that comes after it.",
        { show: "vectors" },
        { show: "origin" },
      ],
      show: ["x", "scores"],
      follow: 1,
    },
    {
      title: "Minus infinity",
      text: [
        "The scores of later words become minus infinity, whose exp is 0. A table of 0 and 1, the *mask*, says which: 1 where a word may look.",
        { show: "formula" },
      ],
      show: ["mask", "masked"],
      follow: 2,
    },
    {
      title: "The rest shares the weight",
      text: [
        "Softmax shares the whole weight among the words that are left, and each row still adds up to 1.",
        { show: "hint" },
        { controls: ["changed", "back"] },
      ],
      show: ["masked", "all_weights", "weights"],
      about: "masked",
      follow: 3,
    },
    {
      title: "What peeking teaches",
      text: [
        "A small block was trained on Shakespeare twice. Masked, its loss is 2.16 nats, in training and writing alike. Unmasked, it sees the next letter, and its loss falls to 0.28. Writing, it sees none: 6.25, worse than guessing.",
      ],
      show: ["peeking"],
    },
  ],
  next: "One head has one row of weights for each word. “My” needs to know both whose and what. How can it look for two things at once?",
  figure: [
    { row: ["x", "scores"] },
    { row: ["mask", "masked"] },
    { row: ["all_weights", "weights"] },
    { show: "peeking" },
  ],
  deeper: {
    topics:
      "other matrices, mask after the softmax, a way that fails, dropout, batches, a head from Karpathy’s lecture",
    parts: [
      {
        remarks: "The block that was trained with and without the mask",
        items: [
          "It is the block of rung 9 with four heads of 8 numbers, trained for 5,000 steps of 32 windows of 8 characters of tiny Shakespeare. Its losses are those on the tenth that was held out, for each character of a window: in training the whole window is in sight, in writing only its beginning. The last character of a window cannot be peeked at; without it, the loss in training would be lower still.",
        ],
      },
      "# Other matrices",
      "With linear layers and Raschka’s sentence, the numbers are those of his book. A larger W query enlarges all differences between scores.",
      { controls: ["matrices", "factor"] },
      "# Another way: mask after the softmax",
      "[Raschka’s book](Raschka) has this way first: (1a) take the weights without the mask, (1b) set the hidden ones to 0, and divide each row by the sum of the rest. The way in the figure is its second: (2a) scores with minus infinity, (2b) their softmax. Both give the same weights; GPTs take the second, because it is one step.",
      "With the book’s numbers, those of the linear layers and Raschka’s sentence, row 2 is 0.2041 0.1659 after step 1b, with the sum 0.3700. Divided by it, the row is 0.5517 0.4483, the same as after step 2b.",
      { row: ["cut", "renormalised"] },
      { show: "stamp" },
      "# A way that fails",
      "A mask may also be added to the scores: 0 where a word may look, minus infinity elsewhere, as `torch.full((T, T), -torch.inf).triu(1)` makes it. But made with `torch.triu(torch.ones(T, T), 1) * -torch.inf` it fails: the zeros on and below the diagonal are multiplied by infinity as well.",
      { row: ["added"] },
      "# Dropout",
      "In training, some attention weights are dropped at random, so that the model does not rely on any single word. The rest are multiplied by 1 / (1 − p), so that on average a row stays the same.",
      { show: "dropoutFormula" },
      { controls: ["dropout", "from", "again"] },
      { row: ["dropped", "drawn"] },
      { show: "sums" },
      {
        remarks: "Worth knowing about dropout",
        items: [
          "Here it is applied to the attention weights, after the softmax, which is the usual place. It may also be applied after the values are averaged. Before the softmax it would not remove a word: a score of 0 still gets a weight.",
          "It is used only in training: a model that writes drops nothing. GPT-2 was trained with 0.1; values of 0.1 to 0.2 are usual, and many large models use none. 0.5 is only there to make the effect easy to see.",
          "Which weights are dropped depends on the random numbers, which differ between operating systems and versions even with the same seed. So your own mask may differ from a printed one: compare the values, which are 0 or twice the weight, and not their positions.",
        ],
      },
      "# Everything as a class, on a batch",
      "`CausalAttention` (seed 123, without dropout) reads several texts at once. Two copies of the sentence are a batch of shape `(2, T, 3)`; both get the same context vectors, because texts do not influence each other.",
      { row: ["batch"] },
      { show: "same" },
      {
        remarks: "How the class keeps its mask",
        items: [
          "The mask is made once, for the longest text, with `register_buffer`: it moves to the GPU with the model, but it is not a weight and is not trained.",
          "A shorter text uses only the corner, `mask[:T, :T]`. `masked_fill_`, with an underscore, fills the scores in place instead of copying them.",
          "The models on this page do not store a mask: a single new token has no future, and for longer inputs the mask is made when it is needed.",
        ],
      },
      "# One head from Karpathy’s lecture",
      "The tokens of [the lecture](Karpathy) are random, with 32 numbers each, and the head has 16 (seed 1337). Its scores are not divided by √16 yet, so the weights are sharper than they should be.",
      { show: "lectureShapes" },
      { row: ["lecture"] },
    ],
  },
  teacher: {
    goals: [
      "Mark in a table which weights causal attention sets to 0.",
      "Explain why minus infinity, and why before the softmax.",
    ],
    discuss: {
      ask: "Why may a model look at the whole text when it reads, but not when it learns to predict?",
      answer:
        "What it has to predict must not be in sight, or copying is the easiest way to a low loss. While it writes there is nothing to copy.",
    },
    misconceptions: [
      {
        belief: "The mask sets the weights of later words to small numbers.",
        instead: "They are exactly 0, because exp(−∞) = 0.",
      },
      {
        belief: "A masked row adds up to less than 1.",
        instead: "Softmax shares the whole weight among the words that are left.",
      },
    ],
  },
  worksheet: [
    {
      table: "scores",
      text: "Scores before the division. Shade those that causal attention hides. The blank row is the one that worksheet 6 asks for: copy your result.",
      blank: [1],
    },
    { table: "mask", text: "The mask: 1 where a word may look, 0 elsewhere. Fill in the blank rows.", blank: [1, 2] },
    {
      table: "weights",
      text: "Divide what is left in a row by √2, since a query has two numbers, then softmax. Compute the blank rows.",
      blank: [1, 2],
    },
  ],
  calculator: "the keys eˣ and √",
  exercises: [
    {
      kind: "choice",
      after: "The rest shares the weight",
      ask: "The first row of causal attention weights is 1, 0, 0, … What is the first token’s context vector?",
      options: ["The average of all values", "Its own value", "Zero"],
      right: 1,
      hint: "A context vector is the weighted average of the values, and here only one weight is not 0.",
      replies: [
        "That would be so if all weights were equal.",
        "",
        "The weights of the others are 0, but its own is 1.",
      ],
      second: "1 × the first value + 0 × all others.",
      why: "All of its weight is on itself.",
    },
    {
      kind: "choice",
      after: "The rest shares the weight",
      ask: "A model is trained while each word may also look at the next one. What happens?",
      options: [
        "Its loss falls towards 0, and it cannot write",
        "It learns faster and writes better",
        "Nothing changes",
      ],
      right: 0,
      hint: "Let the first word look at the second, in the masked scores. What does it have to predict?",
      replies: ["", "It seems to, until there is no next word to look at.", "A model learns whatever lowers its loss."],
      second: "If the answer is in sight, what is the easiest way to be right?",
      why: "It learns to copy the next word instead of predicting it. While it writes, there is no next word to copy.",
    },
    {
      kind: "choice",
      extra: true,
      ask: "Extra, from “Deeper”. Find the mistake: instead of using masked_fill, someone adds triu(ones, 1) × −∞ to the scores. What happens to the scores of the past?",
      options: ["They stay the same", "They become 0", "They become NaN"],
      right: 2,
      hint: "Below the diagonal, triu leaves zeros. What is 0 × ∞? See “A way that fails”.",
      replies: ["That would be so if 0 × −∞ were 0.", "Adding 0 would leave them; but 0 × −∞ is not 0.", ""],
      second: "In floating point, 0 times infinity is neither 0 nor infinity.",
      why: "The zeros below the diagonal are multiplied by infinity too, and 0 × ∞ is not a number. Adding is fine if the mask is filled, not multiplied: with 0 where a word may look and −∞ elsewhere.",
    },
    {
      kind: "number",
      extra: true,
      ask: "Extra, from “Deeper”. With dropout of p = 0.2, by what are the remaining weights multiplied?",
      right: 1.25,
      tolerance: 0.001,
      hint: "On average a fraction of 1 − p is kept. What restores the sum?",
      mistakes: [
        { number: 0.8, reply: "That is the part that is kept: divide by it." },
        { number: 1.2, reply: "Not 1 + p: the part that is kept, times this number, is 1." },
        { number: 5, reply: "That is 1 / p; the part that is kept is 1 − p." },
        { number: 0.2, reply: "That is the part that is dropped." },
      ],
      second: "1 − 0.2 is 0.8: what times 0.8 gives 1?",
      why: "1 / (1 − 0.2), so that a row still adds up to 1 on average.",
    },
  ],
};
