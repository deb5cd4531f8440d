// The words of rung 1. CONTRIBUTING.md explains their form and marks.

/** @type {import("../rung.js").Content} */
export const content = {
  name: "Text to tokens",
  minutes: 4,
  core: false,
  learned:
    "A text becomes a sequence of ids. Bigger pieces make shorter sequences and longer lists; a tokenizer that can fall back to bytes loses nothing.",
  prediction: {
    ask: "Which loses a word that its training text does not contain?",
    options: ["The word list", "The characters", "The byte pairs"],
    right: 0,
    why: "The word list has one id for everything it has never seen, so the word cannot be read back. Characters keep it as long as each letter is in the alphabet. Byte pairs keep any text: at worst they fall back to its bytes.",
  },
  steps: [
    {
      title: "Why did it write “kite”?",
      text: [
        "A small GPT, stories-bpe, reads the beginning of a story. Ben has a new kite, the wind takes it up, and somebody says: “Look at my”. The model gives “kite” a chance of 94%.",
        "It has seen no toy and no wind. It has only numbers, and the text before the gap. On these eleven rungs you take it apart, until you can say where the word came from. Type a sentence of your own above.",
      ],
      show: ["story"],
    },
    {
      title: "A text becomes numbers",
      text: [
        "A model can only compute, so a text is cut into *tokens*, and each is replaced by its place in a list, its id. Imagine a library that lends books by number alone.",
        "The simplest list has the words of a training text, sorted. A word that is not in it gets the id of everything unknown, `<|unk|>`, and is lost.",
        { show: "trainingText" },
        { controls: ["add", "back"] },
        { show: "formula" },
      ],
      show: ["words", "decoded"],
      follow: 1,
    },
    {
      title: "Letters lose nothing",
      text: [
        "A list of characters is short: “tiny Shakespeare”, a file of his plays, has 65. Any text of them can be read back. But the sequence is long, and a model can read only so many tokens at once. `·` is a space.",
      ],
      show: ["characters"],
      follow: 2,
    },
    {
      title: "Pieces in between",
      text: [
        "*Byte pairs* are the compromise that GPTs use. Start from single bytes. Merge the most frequent pair of neighbours, never across two words, into a new token. Repeat. `Ġ` is a space.",
        { controls: ["merges"] },
      ],
      show: ["kiteMerges", "pairs", "learnedMerges"],
      follow: 3,
    },
    {
      title: "All that a model sees",
      text: ["Nothing else of a text reaches it."],
      show: ["pairs", "known"],
      follow: -1,
    },
  ],
  next: "So “kite” is the number 1894. But an id is only a place in a list: what can a model learn from it, and compute with it?",
  figure: [
    { show: "story" },
    { show: "words" },
    { show: "decoded" },
    { show: "characters" },
    { show: "kiteMerges" },
    { show: "pairs" },
    { show: "learnedMerges" },
    { show: "known" },
  ],
  deeper: {
    topics: "your sentence merge by merge, special tokens, bytes that are no letters",
    parts: [
      { show: "mergeByMerge" },
      { controls: ["special"] },
      { show: "specialSaid" },
      "A byte that is only a part of a character is shown by its number: ü is `<0xC3>` and `<0xBC>` until a merge joins them. `Ġ` is a space.",
      {
        remarks: "Another way to find the pieces",
        items: [
          "SentencePiece, which the first Llama models use, learns its pieces from the raw text, spaces included: it needs no rule for where a word ends.",
        ],
      },
      {
        remarks: "Which tokens these rungs use",
        items: [
          "Rungs 2 and 4 to 9 use words as tokens, rung 3 characters, rungs 10 and 11 a trained model’s own tokens.",
        ],
      },
      {
        remarks: "Special tokens",
        items: [
          "`[BOS]` marks the beginning of a text, so that even its first word has something before it.",
          "`[EOS]`, here `<|endoftext|>`, marks the end; between two unrelated texts it says that a new text starts.",
          "`[PAD]` pads shorter texts to the length of the longest in a batch. A mask keeps the model from looking at it.",
          "`[UNK]`, here `<|unk|>`, stands for every unknown word. GPT-2 needs only `<|endoftext|>`: byte pairs have no unknown words, and texts of unequal length in a batch can be padded with it, as Raschka’s book does when it fine-tunes.",
        ],
      },
    ],
  },
  teacher: {
    goals: [
      "Say what a token and a vocabulary are, and why a model needs ids.",
      "Weigh words, characters and byte pairs against each other: length of the list, length of the text, what gets lost.",
    ],
    discuss: {
      ask: "Why is a list of all English words not enough?",
      answer:
        "New words, names, typing errors and other languages are not in it, and what is not in the list cannot be read back. A list that is too long also has words that the model has hardly ever seen.",
    },
    misconceptions: [
      {
        belief: "A token is a word.",
        instead:
          "It may be a letter, a piece of a word, or a space and a word. Compare the three lists for your sentence.",
      },
      {
        belief: "The id says something about the meaning.",
        instead:
          "It is only a place in a list. Meaning can be learned only by the vector that stands behind it (rung 2).",
      },
    ],
  },
  worksheet: [
    { table: "characters", text: "Each character has an id. Fill in the ids of the characters that occur again." },
  ],
  exercises: [
    {
      kind: "number",
      after: "Letters lose nothing",
      ask: "How many tokens is “Hi there!” if each character is a token? The space and the exclamation mark count too.",
      right: 9,
      tolerance: 0,
      hint: "Count every character: the letters, the space between the words, and the mark at the end.",
      mistakes: [
        { number: 2, reply: "That counts words." },
        { number: 7, reply: "That leaves out the space and the mark." },
        { number: 8, reply: "One of the space and the mark is missing." },
      ],
      second: "Hi has 2 characters, there has 5.",
      why: "Two letters, a space, five letters and a mark; in the alphabet of 65 their ids begin with 20, 47, 1.",
    },
    {
      kind: "order",
      after: "Pieces in between",
      ask: "Byte pairs are learned in these steps. Put them in order.",
      steps: [
        "split the text into bytes",
        "count all pairs of adjacent tokens",
        "merge the most frequent pair into a new token",
        "count again, until there are enough tokens",
      ],
      hint: "Pairs must be counted before one is merged, and the text must be in pieces before pairs can be counted.",
      second: "Splitting comes first, and counting again comes last.",
      why: "Each round adds one token, so the number of rounds decides the size of the vocabulary.",
    },
    {
      kind: "choice",
      after: "All that a model sees",
      ask: "A vocabulary grows from 65 characters to 50,257 byte pairs. What happens to the same text?",
      options: ["It becomes a longer sequence", "It becomes a shorter sequence", "Its length stays the same"],
      right: 1,
      hint: "Compare the figures of two steps: the same sentence as characters, and as byte pairs.",
      replies: [
        "A longer list of tokens makes each text shorter: a token then covers more.",
        "",
        "Its characters stay the same, but they are cut into fewer pieces.",
      ],
      second: "If one token stands for several letters, how many tokens does a word need?",
      why: "Each token covers more characters, so there are fewer of them, from a larger list. That is the trade-off.",
    },
    {
      kind: "choice",
      ask: "Find the mistake: notes on this chapter give the end of a text in GPT-2 as [EOS]. Which token marks it in GPT-2?",
      options: ["[EOS]", "<|endoftext|>", "<|unk|>", "[PAD]"],
      right: 1,
      hint: "Open “Deeper: special tokens” below. GPT-2 has a single special token.",
      replies: [
        "That is the name in the notes; GPT-2 cuts it into ordinary byte pairs.",
        "",
        "That is the unknown word of the word list; byte pairs have none.",
        "That pads texts in a batch; GPT-2 has no such token.",
      ],
      second: "It is written with angle brackets and bars, like <|unk|>.",
      why: "[EOS] is a common name for such a token, but GPT-2 cuts it into byte pairs like any other text. Its only special token is <|endoftext|>, with the id 50256, the last one.",
    },
  ],
};
