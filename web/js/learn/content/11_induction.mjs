// The words of rung 11. CONTRIBUTING.md explains their form and marks.

/** @type {import("../rung.js").Content} */
export const content = {
  name: "Induction",
  minutes: 9,
  core: true,
  learned:
    "Two heads in different layers together continue what has come before: one notes the token before each token; the other finds where the last token occurred earlier, and looks at what followed.",
  prediction: {
    ask: "A text says “… shiny sun … shiny”. A head wants to find out what comes next. Where should “shiny”, the last token, look?",
    options: [
      "At the earlier “shiny”",
      "At “sun”, which followed the earlier “shiny”",
      "At the first token of the text",
    ],
    right: 1,
    why: "What it finds there is the answer: “sun”. The earlier “shiny” would only tell it what it already is. But how can “sun” be found by “shiny”? Its key has to hold the token before it.",
  },
  steps: [
    {
      title: "It has happened before",
      text: [
        "In the story, “kite” stood before the gap and comes again. The simplest rule for repeating is *induction*: if A B has come before, and A comes again, predict B.",
        "A model reads your sentence twice. Below each token is its surprise in [nats].",
      ],
      show: ["phrase", "repetition"],
      follow: 0,
    },
    {
      title: "Two heads, one after the other",
      text: [
        "A *previous-token head* in an early layer notes at each token which one came before, as if it wrote a name on its back. An *induction head* in a later layer asks at the second A: which token has A before it? It finds B, and copies it.",
        { show: "formula" },
      ],
      show: ["pictures", "column"],
      follow: -2,
    },
    {
      title: "How it formed",
      text: [
        "Where this model’s training was recorded, you can watch both form: move the slider.",
        { show: "leap" },
        { controls: ["step"] },
        { show: "said" },
      ],
      show: ["formation", "pictures"],
      about: "scores",
    },
    {
      title: "Take one away",
      text: [
        "Mute a head of the trained model. What becomes of the repetition?",
        { controls: ["mute"] },
        { show: "risen" },
      ],
      show: ["lossBars", "pictures"],
    },
    {
      title: "So, why “kite”?",
      text: [
        "Seven of the 64 heads of stories-bpe look back from “my” at “kite” and copy it. Induction finds what followed the same word; no “my” came before “kite”. These find what fits: the key of “kite” matches the query of “my” or “your”, but in three of them not that of “to”. Take any one away, and its chance, 94%, becomes 76% to 95%; all seven, and it is 0.6%: it writes “new”. Try your own text on [Look](#look).",
      ],
      show: ["kiteAnswer"],
    },
  ],
  next: "That is where the word came from: from earlier in the text, by heads that learned to look back and copy. Would such heads form in a model of your own?",
  figure: [
    { show: "phrase" },
    { show: "repetition" },
    { show: "formation" },
    { row: ["pictures"] },
    { show: "column" },
    { show: "lossBars" },
    { show: "kiteAnswer" },
  ],
  after: [
    {
      remarks: "Worth knowing",
      items: [
        "What fits after “my” is a thing, it seems: put a ball, a dog, a book or a car in the kite’s place, and four to six of the seven heads look at that most. After “to” they were tried in “I want to”.",
        "The losses leave out the first token of the phrase and of its repetition. With induction, a model can continue names and phrases that it has never seen in training.",
        "Models form such heads on plain text too, but repetitions are rare there, so it takes more training. Half of the training windows of two-layer-steps were random tokens in a loop, where nothing but the repetition can be predicted.",
        "The loss falls suddenly when both heads have formed: neither helps without the other. Models with two or more layers show such a step early in training, models with one do not (Olsson et al. 2022).",
      ],
    },
  ],
  deeper: {
    topics: "the head that feeds it, found by muting",
    parts: [{ show: "stamp" }, { show: "feeding" }],
  },
  teacher: {
    goals: [
      "Explain induction with two heads in different layers.",
      "Say why one layer is not enough.",
      "Answer the first question: why “kite”?",
    ],
    discuss: {
      ask: "A head is muted and the word changes. Is the head the reason for the word?",
      answer: "It was needed here. But it needs what other heads wrote, and in another text it may not matter.",
    },
    misconceptions: [
      {
        belief: "The induction head looks at the same token, earlier.",
        instead: "It looks at the one after it, because that is what comes next.",
      },
      {
        belief: "The model has learned this phrase.",
        instead: "Induction also continues phrases that it has never seen.",
      },
    ],
  },
  worksheet: [
    { table: "phrase", text: "The phrase, read twice." },
    {
      table: "lookBack",
      text: "At these tokens of the repetition: what does an induction head look for, at which number does it find that, and which token does it copy? If there are several, each is right. The surprises are this model’s, in nats, at the token that follows, when the phrase is read first and again. Where does it fall most?",
    },
  ],
  exercises: [
    {
      kind: "number",
      ask: "A phrase of 6 tokens is repeated, so the text has the tokens 0 to 11. At which token does an induction head look from token 8?",
      right: 3,
      tolerance: 0,
      hint: "Token 8 is the third token of the repetition. Which token followed the third token of the phrase?",
      mistakes: [
        { number: 2, reply: "That is the same token, earlier: the head looks at what followed it." },
        { number: 9, reply: "That comes after token 8: it is hidden." },
        { number: 7, reply: "That is the token before: the other head looks there." },
      ],
      second: "Token 8 is the same as token 2.",
      why: "Token 8 is the same as token 8 − 6 = 2, and token 3 followed it. It always looks 6 − 1 = 5 tokens back.",
    },
    {
      kind: "choice",
      after: "Take one away",
      ask: "Mute the previous-token head. Why does the induction head, itself intact, lose its place too?",
      options: [
        "Its values come from that head",
        "Its keys no longer hold which token came before each token",
        "Its softmax no longer adds up to 1",
      ],
      right: 1,
      hint: "The score is query · key. What must the key of “sun” hold for the query of “shiny” to find it?",
      replies: ["Values say what is taken over, not where to look.", "", "Softmax always adds up to 1."],
      second: "Who has written it there?",
      why: "The previous-token head adds to each token’s vector which token came before it, and the keys of the later layer are made from that vector. Without it nothing tells which token to look at.",
    },
    {
      kind: "choice",
      after: "Two heads, one after the other",
      ask: "Can a model with a single layer have an induction head?",
      options: [
        "Yes, one head is enough",
        "No: its keys are made from embeddings alone, which hold nothing of the token before",
        "Yes, if the head is wide enough",
      ],
      right: 1,
      hint: "What is the input of the first layer’s keys? Has any token looked at another by then?",
      replies: [
        "One head would have to find a token by its neighbour, which its key does not hold.",
        "",
        "Width adds numbers, but none about the token before.",
      ],
      second: "A key is made of its token’s vector. Before any head has spoken, what is in it?",
      why: "Before the first layer no token has seen another. It takes a head to note the neighbour and one to use it.",
    },
  ],
};
