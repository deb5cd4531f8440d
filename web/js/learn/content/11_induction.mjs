// The words of rung 11. CONTRIBUTING.md explains their form and marks.

/** @type {import("../rung.js").Content} */
export const content = {
  name: "Induction",
  minutes: 5,
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
  opening: [
    "Two layers can do what one cannot, such as *induction*: if A B has come before, and A comes again, predict B. A *previous-token head* in an early layer notes at each token which one came before. An *induction head* in a later layer asks at the second A: which token has A before it? It finds B, and copies it.",
    "A model reads your sentence twice. Below each token is its surprise in [nats]. First follow one number.{watch}",
  ],
  path: [
    { show: "said" },
    { controls: ["step"] },
    { show: "phrase" },
    { show: "repetition" },
    { row: ["pictures"] },
    { show: "column" },
    { show: "formation" },
    "# Mute a head",
    { controls: ["mute"] },
    { show: "risen" },
    { show: "lossBars" },
    {
      remarks: "Worth knowing",
      items: [
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
  exercises: [
    {
      kind: "number",
      further: true,
      ask: "A phrase of 6 tokens is repeated, so the text has the tokens 0 to 11. At which token does an induction head look from token 8?",
      right: 3,
      tolerance: 0,
      hint: "Token 8 is the third token of the repetition. Which token followed the third token of the phrase?",
      why: "Token 8 is the same as token 8 − 6 = 2, and token 3 followed it. It always looks 6 − 1 = 5 tokens back.",
    },
    {
      kind: "choice",
      ask: "Mute the previous-token head above. Why does the induction head, itself intact, lose its place too?",
      options: [
        "Its values come from that head",
        "Its keys no longer hold which token came before each token",
        "Its softmax no longer adds up to 1",
      ],
      right: 1,
      hint: "The score is query · key. What must the key of “sun” hold for the query of “shiny” to find it?",
      why: "The previous-token head adds to each token’s vector which token came before it, and the keys of the later layer are made from that vector. Without it nothing tells which token to look at.",
    },
    {
      kind: "choice",
      ask: "Can a model with a single layer have an induction head?",
      options: [
        "Yes, one head is enough",
        "No: its keys are made from embeddings alone, which hold nothing of the token before",
        "Yes, if the head is wide enough",
      ],
      right: 1,
      hint: "What is the input of the first layer’s keys? Has any token looked at another by then?",
      why: "Before the first layer no token has seen another. It takes a head to note the neighbour and one to use it.",
    },
  ],
};
