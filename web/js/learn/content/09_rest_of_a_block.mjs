// The words of rung 9. CONTRIBUTING.md explains their form and marks.

/** @type {import("../rung.js").Content} */
export const content = {
  name: "The rest of a block",
  minutes: 5,
  core: false,
  learned: "A block adds to the residual stream twice: what attention gathered, and what the MLP makes of it.",
  prediction: {
    ask: "All numbers of a word are multiplied by ten. What does layer norm return?",
    options: ["Ten times the result", "Almost the same result", "A tenth of the result"],
    right: 1,
    why: "It divides by their standard deviation, which has also grown tenfold. So attention and the MLP read numbers of the same size in every layer, however much was added to the stream.",
  },
  opening: [
    "A GPT is a stack of blocks. Each word has a vector that passes through all of them, its *residual stream*. Attention, which moves information between words, and an *MLP*, which works on each word alone, read a copy of it, scaled to a standard size by *layer norm*, and add their results to it.",
  ],
  path: [
    "# 1. Layer norm",
    "Subtract a row’s mean and divide by its standard deviation: the factor cancels. ε avoids a division by 0{epsilon}",
    { controls: ["scale"] },
    { row: ["x", "scaled", "normed"] },
    "# 2. Attention, added to the stream",
    { row: ["weights", "attended", "residMid"] },
    "# 3. Layer norm again, and the MLP",
    "The MLP makes four times as many numbers, raises negative ones to between −0.17 and 0 with *GELU*, and returns to three.",
    { row: ["mlpInput", "hidden", "mlpOutput", "after"] },
    "# What each part is worth",
    "Each part lowers the loss. The residual stream and layer norm gain little in a single block, but four blocks need them.",
    { show: "ladder" },
  ],
  deeper: {
    topics: "other words, GELU, and why a block is built like this",
    parts: [
      { show: "vectors" },
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
  exercises: [
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
      further: true,
      ask: "All inputs to a block are multiplied by 10. What does attention read?",
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
};
