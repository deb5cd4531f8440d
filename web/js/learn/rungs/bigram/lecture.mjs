// What Karpathy's lecture prints for tiny Shakespeare, as data: its own experiment, beside the visitor's.

export const LECTURE = {
  characters: 1_115_394,
  alphabet: 65,
  train: 1_003_854,
  held_out: 111_540,
  ids: [18, 47, 56, 57, 58, 1, 15, 47, 58], // its first nine characters, "First Cit"
  text: "First Cit",
  // get_batch with seed 1337: 4 windows of 8, and their targets.
  inputs: [
    [24, 43, 58, 5, 57, 1, 46, 43],
    [44, 53, 56, 1, 58, 46, 39, 58],
    [52, 58, 1, 58, 46, 39, 58, 1],
    [25, 17, 27, 10, 0, 21, 1, 54],
  ],
  targets: [
    [43, 58, 5, 57, 1, 46, 43, 39],
    [53, 56, 1, 58, 46, 39, 58, 1],
    [58, 1, 58, 46, 39, 58, 1, 46],
    [17, 27, 10, 0, 21, 1, 54, 39],
  ],
  uniform: 4.1744, // ln 65
  untrained: 4.8786, // of that one batch, as printed
  trained: 2.495, // of the last batch after 10,000 steps, as printed
  last_batches: 2.473, // measured here: the mean of the last 500 batches
  held_out_mean: 2.486, // measured here after the same training: the mean over the whole held-out tenth
};
