// The words of rung 9. CONTRIBUTING.md explains their form and marks.

/** @type {import("../rung.js").Content} */
export const content = {
  name: "The rest of a block",
  minutes: 5,
  core: false,
  learned: "A block adds to the residual stream twice: what attention gathered, and what the MLP makes of it.",
  prediction: {
    ask: "Layer norm subtracts from a word’s numbers their mean, and divides by their standard deviation. All of them are multiplied by ten first. What does it return?",
    options: ["Ten times the result", "Almost the same result", "A tenth of the result"],
    right: 1,
    why: "The standard deviation has also grown tenfold. So attention and the MLP read numbers of the same size in every layer, however much was added to the stream.",
  },
  steps: [
    {
      title: "A notebook that is only added to",
      text: [
        "Think of a notebook handed from desk to desk: everyone reads it, and only adds to it. Each word has one, its *residual stream*.",
        "Open that of “my” in the story. What would the model write if it stopped there? For a long time “my” itself. Then an [MLP] makes it “big”. Then attention, three times, brings the kite.",
      ],
      show: ["notebook"],
    },
    {
      title: "Read at a standard size",
      text: [
        "All that is added makes the numbers grow, there eightfold. So whoever reads the notebook reads a copy of standard size: *layer norm* subtracts a row’s mean and divides by its standard deviation. Here is layer 5, where “my” finds “kite”.",
        { controls: ["scale"] },
      ],
      show: ["storyX", "storyNormed"],
      follow: 0,
    },
    {
      title: "Attention adds",
      text: [
        "Only attention moves information between words: it brings “kite” to “my”. What it finds is added to the stream.",
      ],
      show: ["storyX", "storyAttended", "storyMiddle"],
      follow: 1,
    },
    {
      title: "The MLP adds",
      text: [
        "The *MLP* works on each word alone. It turns 320 numbers into 1,280, raises negative ones to between −0.17 and 0 with *GELU*, and returns to 320.",
        "So why does “kite” fall after MLPs 5 and 6? They add a little for it, but more for “big”, and all chances share one whole.",
        { show: "formula" },
      ],
      show: ["storyRead", "storyHidden", "storyAdded", "storyAfter", "says"],
      about: "says",
      follow: 2,
    },
    {
      title: "What each part is worth",
      text: [
        "Each part lowers the loss. The residual stream and layer norm gain little in a single block, but four blocks need them.",
      ],
      show: ["ladder"],
    },
  ],
  next: "You have built every part. Put them together: does that really write “kite”?",
  figure: [
    { show: "notebook" },
    { row: ["storyX", "storyNormed"] },
    { row: ["storyAttended", "storyMiddle"] },
    { row: ["storyRead", "storyHidden"] },
    { row: ["storyAdded", "storyAfter"] },
    { show: "says" },
    { show: "ladder" },
  ],
  deeper: {
    topics: "a block on your own words, GELU, and why a block is built like this",
    parts: [
      "# A block that can be followed by hand",
      "The same steps on your words, with three numbers for each, three heads with one number each, and random matrices. ε avoids a division by 0{epsilon}",
      { show: "vectors" },
      { row: ["x", "scaled", "normed"] },
      { row: ["weights", "attended", "residMid"] },
      { row: ["mlpInput", "hidden", "mlpOutput", "after"] },
      { show: "whole" },
      { show: "said" },
      { show: "joined" },
      { show: "curve" },
      {
        remarks: "Why it is built like this",
        items: [
          "The sums. A block can leave a word unchanged by adding nothing, and gradients reach the first block through the sums without being multiplied by anything. Deep networks without such a path hardly train.",
          "Layer norm first. The stream itself is never divided, only the copies that are read. This order (“pre-norm”, as in GPT-2) makes training more stable.",
          "GELU. ReLU cuts negative numbers off with a sharp corner; GELU is smooth and lets a little of small negative numbers through. GPT-2 uses the approximation with `tanh`, which was faster to compute; other models use the exact form.",
        ],
      },
    ],
  },
  teacher: {
    goals: ["List the parts of a block in their order.", "Say what layer norm, the MLP and the two sums are for."],
    discuss: {
      ask: "Why is everything added to the stream instead of replacing it?",
      answer: "What earlier layers found stays there to be read, and gradients reach them through the sums.",
    },
    misconceptions: [
      {
        belief: "The MLP lets words exchange information.",
        instead: "It works on each word alone. Only attention moves anything between words.",
      },
      {
        belief: "Layer norm changes the stream.",
        instead: "It scales the copy that attention or the MLP reads; the stream is only added to.",
      },
    ],
  },
  worksheet: [
    { table: "scaled", text: "The residual stream." },
    {
      table: "normed",
      text: "Layer norm: subtract the row’s mean, divide by its standard deviation. Compute the blank row.",
      blank: [1],
    },
    { table: "attended", text: "What attention adds." },
    { table: "resid_mid", text: "The stream after it. Compute the blank rows.", blank: [1, 2] },
  ],
  calculator: "the key √",
  exercises: [
    {
      kind: "number",
      after: "Read at a standard size",
      ask: "What is the mean of the numbers 1, 2 and 6 after layer norm, before its weight and bias?",
      right: 0,
      tolerance: 0.001,
      hint: "Their mean is 3. What is the mean after 3 has been subtracted from each number?",
      mistakes: [
        { number: 3, reply: "That is their mean before it is subtracted." },
        { number: 1, reply: "That is the variance afterwards, not the mean." },
      ],
      second: "The mean of 1, 2 and 6 is 3: what are 1 − 3, 2 − 3 and 6 − 3 together?",
      why: "Layer norm subtracts the mean, whatever it is, and divides by the standard deviation.",
    },
    {
      kind: "choice",
      ask: "All inputs to a block are multiplied by 10. What does attention read?",
      options: ["Numbers ten times as large", "Nearly the same numbers", "Zeros"],
      right: 1,
      hint: "Attention reads the stream after layer norm. What happens to the mean and the standard deviation?",
      replies: [
        "The stream is ten times as large, but attention reads a normalised copy.",
        "",
        "Only a row of equal numbers becomes zeros.",
      ],
      second: "Divide ten times the numbers by ten times their standard deviation.",
      why: "The standard deviation also grows tenfold, so dividing by it cancels the factor. Try it with the slider.",
    },
    {
      kind: "order",
      after: "The MLP adds",
      ask: "Put the parts of a block in order.",
      steps: ["layer norm", "attention", "add to the residual stream", "layer norm again", "MLP", "add again"],
      hint: "Each half has the same three parts: normalise, compute, add. Attention comes in the first half.",
      second: "Each part reads a normalised copy, and adds its result.",
      why: "Each part reads a normalised copy; the stream itself is only ever added to.",
    },
  ],
};
