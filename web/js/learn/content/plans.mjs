// The lesson plans of the page for teachers. A later stop needs nothing that no stop before it has shown.

/**
 * @typedef {object} Stop
 * @property {number} rung
 * @property {number} minutes
 * @property {string} what the class does
 */
/** @typedef {{ minutes: number, stops: Stop[], end: Omit<Stop, "rung"> }} Plan */

const OPENING =
  "Open Look. Read the story aloud as far as “Look at my”, collect guesses, then show the model’s. On the rung, the first step only.";
const VECTORS =
  "The last two steps: an id picks a row of numbers, and the row of its position is added. From here on, each word is such a vector.";

/** @type {Plan[]} */
export const PLANS = [
  {
    minutes: 50,
    stops: [
      { rung: 1, minutes: 3, what: OPENING },
      { rung: 2, minutes: 3, what: VECTORS },
      {
        rung: 3,
        minutes: 3,
        what: "The second step: ask for the surprise at a guess of one half (0.69 nats). The loss is its average, and training lowers it.",
      },
      { rung: 4, minutes: 4, what: "Students average three numbers by hand, then find their result in the figure." },
      {
        rung: 5,
        minutes: 10,
        what: "Each student computes one row on the worksheet; neighbours compare. Then swap two words.",
      },
      {
        rung: 6,
        minutes: 9,
        what: "Run the first step together: when does “sleeps” find its subject? Then the second, with and without the division.",
      },
      { rung: 7, minutes: 4, what: "Which cells of the triangle are hidden, and why? Uncover one in the figure." },
      {
        rung: 8,
        minutes: 3,
        what: "The second step, told: a layer has many heads, and each computes queries, keys and weights of its own.",
      },
      {
        rung: 9,
        minutes: 3,
        what: "The first step, told: every layer only adds to a word’s vector, so a later head can read what an earlier one has written.",
      },
      {
        rung: 11,
        minutes: 6,
        what: "The second step with the whole class, then the last: take the seven heads away and ask again why it wrote “kite”.",
      },
    ],
    end: { minutes: 2, what: "Questions that are left. For homework: rung 10, then Train." },
  },
  {
    minutes: 90,
    stops: [
      { rung: 1, minutes: 4, what: OPENING },
      { rung: 2, minutes: 3, what: VECTORS },
      {
        rung: 3,
        minutes: 4,
        what: "The first two steps: read one row of the table, then compute the surprise at a guess of one half (0.69 nats) and of one tenth (2.30). The loss is its average.",
      },
      {
        rung: 4,
        minutes: 7,
        what: "Students average three numbers by hand, find their result in the figure, and type scores over the zeros of one row.",
      },
      {
        rung: 5,
        minutes: 13,
        what: "Each student computes one row on the worksheet; neighbours compare. Then swap two words.",
      },
      {
        rung: 6,
        minutes: 15,
        what: "Run the first two steps together, then students follow one word through query, key and value on the worksheet.",
      },
      {
        rung: 7,
        minutes: 7,
        what: "Students shade the hidden cells of the worksheet, then uncover one in the figure and say what a model trained like that would learn.",
      },
      {
        rung: 8,
        minutes: 9,
        what: "Predict first, then watch one head and two heads learn the same task. Who can tell from the weights which head does what?",
      },
      {
        rung: 9,
        minutes: 5,
        what: "The first four steps, told along one word: the residual stream, the copy that layer norm makes, what attention adds, what the MLP adds.",
      },
      {
        rung: 10,
        minutes: 9,
        what: "In pairs: choose a token and a head, and say what it looks at. Collect the heads whose job can be named.",
      },
      {
        rung: 11,
        minutes: 10,
        what: "Students mark on the worksheet where each repeated token looks. Mute one head, then answer: why “kite”?",
      },
    ],
    end: { minutes: 4, what: "Questions that are left. For homework: the exercises, then Train." },
  },
];
