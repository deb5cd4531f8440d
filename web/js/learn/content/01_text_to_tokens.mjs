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
  opening: [
    "A model computes with numbers, so a text is cut into *tokens*, and each becomes its place in a list, its id. Tokens can be words, characters, or byte pairs: pieces grown from bytes by merging pairs that often occur together. GPTs use byte pairs.",
  ],
  path: [
    { show: "trainingText" },
    "# Words of the training text",
    "The list: its words and marks, sorted. All others get the same id, `<|unk|>`.",
    { show: "words" },
    { show: "decoded" },
    { controls: ["add", "back"] },
    "# Characters of Shakespeare",
    "The 65 in “tiny Shakespeare”, a file of his plays; `·` is a space. Any text of them can be read back, but the sequence is long.",
    { show: "characters" },
    "# Byte pairs of the training text",
    "Start from its bytes. Merge the most frequent pair of neighbours, never across two words, into a new token. Repeat. `Ġ` is a space.",
    { controls: ["merges"] },
    { show: "pairs" },
    { row: ["learnedMerges", "mergeByMerge"] },
    { show: "known" },
    "Such ids are all that a model sees of a text. Rungs 2 and 4 to 9 use words as tokens, rung 3 characters, rungs 10 and 11 a trained model’s tokens.",
  ],
  deeper: {
    topics: "special tokens, bytes that are no letters",
    parts: [
      { controls: ["special"] },
      { show: "specialSaid" },
      "Each byte is shown as one character: `Ġ` is a space, and ü, two bytes, is shown as `Ã¼`.",
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
  exercises: [
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
      hint: "Pairs must be counted before one is merged, and the text must be in pieces before pairs can be counted.",
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
    {
      kind: "choice",
      further: true,
      ask: "Find the mistake: notes on this chapter give the end of a text in GPT-2 as [EOS]. Which token marks it in GPT-2?",
      options: ["[EOS]", "<|endoftext|>", "<|unk|>", "[PAD]"],
      right: 1,
      hint: "Open “Deeper: special tokens” above. GPT-2 has a single special token.",
      why: "[EOS] is a common name for such a token, but GPT-2 cuts it into byte pairs like any other text. Its only special token is <|endoftext|>, with the id 50256, the last one.",
    },
  ],
};
