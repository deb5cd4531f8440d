// A sample text: short stories assembled from words, the same for everyone. Names recur within a story, so that heads
// have something to look back at. All other words are English, so that one can judge what was learned. Names are
// invented, syllable by syllable, and towns and friends have a new one each time, so a small model cannot learn all
// words by heart: it has to look at the letters just before, and heads for that form first.

import { uniform } from "../lib/random.mjs";

const CHARACTERS = 250_000;

/** @param {string} words */
const list = (words) => words.split(" ");

const SYLLABLES = {
  before: list("b br c cl d dr f fl g gr h j k l m n p pl pr qu r s sh sl sn sp st t th tr tw v w z"),
  vowel: list("a e i o u a e i o u ai ea ee oa oo"),
  after: list("b ck d ft g l lf ll m mp n nd nk nt p r rk rm rn s sh sk st t tch x"),
};

const PARTS = {
  creature: list(
    "fox hare owl badger otter goose mouse crow frog hedgehog squirrel donkey heron sheep wolf bear cat dog goat " +
      "horse pig duck swan deer mole weasel robin sparrow beaver toad rabbit giant queen king miller baker sailor " +
      "shepherd farmer witch dragon tailor painter singer",
  ),
  thing: list(
    "key kite letter pebble jar lantern bell basket drum feather blanket ladder mirror candle spoon wheel " +
      "ribbon whistle bucket map needle button coin kettle umbrella bottle pillow shovel hat boot apple " +
      "loaf cake pumpkin cheese ring",
  ),
  place: list(
    "mill river bridge barn forest garden tower meadow harbour market orchard village chimney island " +
      "valley cave pond field castle kitchen bakery lighthouse square hill beach cliff waterfall inn gate " +
      "well",
  ),
  kind: list(
    "small curious sleepy brave hungry quiet clever old young red green golden silver broken empty heavy " +
      "round bright dark cold warm happy lonely gentle wild strange tired proud noisy friendly shiny tall",
  ),
  did: list(
    "found carried painted followed watched hid borrowed dropped washed repaired forgot opened counted " +
      "polished wrapped lifted bought sold chased fetched kept lost offered packed pulled shared stole " +
      "wanted",
  ),
  went: list(
    "slept waited danced listened sang hurried stumbled climbed wandered whispered laughed worked cried " +
      "dreamed fell jumped knocked rested shivered shouted smiled swam",
  ),
  where: list("near behind under above beside across inside beyond below outside"),
  when: list("slowly gladly again today together suddenly often quickly yesterday always early quietly"),
};

const SENTENCES = [
  "{name} the {creature} {went} {where} the {place}.",
  "The {creature} of {town} {did} a {thing}.",
  "“Where is my {kind} {thing}?” asked {name}.",
  "“I {did} it in {town},” said {other}.",
  "{other} {went} {when}, and {name} {did} the {thing}.",
  "In {town} every {creature} {went} {when}.",
  "“{name},” said {other}, “{friend} {did} your {thing}.”",
  "Then {name} {did} {other}, who {went} {when}.",
  "{friend} and {friend} came from {town} to the {place}.",
];

/** About 250,000 characters. */
export function sampleText() {
  const next = uniform(1);
  /** @template Item @param {Item[]} choices */
  const pick = (choices) => choices[Math.floor(next() * choices.length)];
  const { before, vowel, after } = SYLLABLES;
  const syllable = () => pick(before) + pick(vowel) + (next() < 0.7 ? pick(after) : "");
  const newName = () => {
    const syllables = Array.from({ length: pick([1, 2, 2, 3]) }, syllable);
    return syllables.join("").replace(/^./, (letter) => letter.toUpperCase());
  };
  const stories = [];
  for (let length = 0; length < CHARACTERS; length += stories[stories.length - 1].length + 2) {
    /** @type {Record<string, string>} */
    const named = { name: newName(), other: newName() };
    const story = Array.from({ length: 5 }, () =>
      pick(SENTENCES).replace(/\{(\w+)\}/g, (_, part) => {
        if (part === "town" || part === "friend") return newName();
        return named[part] ?? pick(PARTS[/** @type {keyof typeof PARTS} */ (part)]);
      }),
    );
    stories.push(story.join(" ").replace(/\b([Aa]) (?=[aeiou])/g, "$1n "));
  }
  return `${stories.join("\n\n")}\n`;
}
