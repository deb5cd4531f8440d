// Exercises beside the figure: choose, give a number, or put steps in order. A wrong answer is followed by what was
// mistaken, if that is known, and a hint; a second one by a second hint and an offer to show the worked answer.

import { make } from "../../lib/dom.mjs";
import { keyOf } from "../progress.mjs";
import { smallButton } from "../../widgets/controls.mjs";

/** @import { Answered, Exercise } from "../rung.js" */
/** @import { Progress } from "../progress.mjs" */

const MIN_WRONG_ANSWERS = 2; // wrong answers before the worked answer is offered

/**
 * @typedef {object} Task how one kind of exercise is answered
 * @property {Node} element
 * @property {() => number | number[] | null} read the answer; null if there is none yet
 * @property {string} missing the message if there is none
 * @property {(answer: number | number[]) => void} write
 * @property {(isLocked: boolean) => void} lock
 */

/**
 * Those that belong to a step, or to none.
 * @param {Exercise[]} list
 * @param {string | undefined} step its title
 * @param {{ rung: number, progress: Progress }} lesson
 */
export function exercises(list, step, { rung, progress }) {
  const items = list.flatMap((exercise, place) => {
    if (exercise.after !== step) return [];
    const id = `${rung}.${place}`;
    /** @param {Answered | null} answered */
    const keep = (answered) => progress.answer(id, exercise, answered);
    return [make("li", {}, ...oneExercise(exercise, progress.answerTo(id, exercise), keep))];
  });
  if (!items.length) return [];
  return [make("section", { class: "hl-exercises", "aria-label": "Exercises" }, make("ol", {}, ...items))];
}

/**
 * An exercise about the numbers on the page. It starts again when they change, and is answered as before when they
 * change back.
 * @param {Exercise} exercise
 * @param {Record<string, Answered | null>} kept the answers by question
 */
export function ownExercise(exercise, kept) {
  const question = keyOf(exercise);
  const parts = oneExercise(exercise, kept[question] ?? null, (answered) => (kept[question] = answered));
  const title = make("h3", {}, "An exercise on your sentence");
  return make("section", { class: "hl-exercises", "aria-label": "An exercise on your sentence" }, title, ...parts);
}

/**
 * @param {Exercise} exercise
 * @param {Answered | null} earlier
 * @param {(answered: Answered | null) => void} keep
 */
function oneExercise(exercise, earlier, keep) {
  const task = makeTask(exercise);
  const verdict = make("p", { class: "hl-why", role: "status" });
  const check = smallButton("Check", null, { class: "hs-primary" });
  const solve = smallButton("Show the worked answer");
  const again = smallButton("Try again");
  let kept = earlier;
  /** @param {Answered | null} answered */
  const show = (answered) => {
    kept = answered;
    const isOver = Boolean(answered && (answered.isRight || answered.isShown));
    task.lock(isOver);
    check.hidden = isOver;
    again.hidden = !isOver;
    solve.hidden = isOver || (answered?.wrong ?? 0) < MIN_WRONG_ANSWERS;
    const opening = answered?.isRight ? "Yes. " : `The answer: ${rightAnswer(exercise)}. `;
    if (isOver) verdict.replaceChildren(make("b", {}, opening), exercise.why);
    else verdict.replaceChildren(...(answered ? aboutWrong(exercise, answered) : []));
  };
  /** @param {Answered | null} answered */
  const take = (answered) => {
    keep(answered);
    show(answered);
  };
  check.addEventListener("click", () => {
    const answer = task.read();
    if (answer === null) {
      verdict.textContent = task.missing;
      return;
    }
    const right = isRight(exercise, answer);
    take({ answer, isRight: right, wrong: (kept?.wrong ?? 0) + (right ? 0 : 1) });
  });
  solve.addEventListener("click", () => kept && take({ ...kept, isShown: true }));
  again.addEventListener("click", () => take(null));
  if (earlier) task.write(earlier.answer);
  show(earlier);
  const buttons = make("div", { class: "hl-controls" }, check, solve, again);
  return [make("p", {}, exercise.ask), task.element, buttons, verdict];
}

/**
 * How far the dot product of two vectors, computed from their numbers to four decimals, may be from the exact one.
 * @param {number[]} left
 * @param {number[]} right
 */
export const dotTolerance = (left, right) =>
  0.002 + 0.00005 * [...left, ...right].reduce((sum, value) => sum + Math.abs(value), 0);

/** @param {Exercise} exercise @param {number | number[]} answer */
function isRight(exercise, answer) {
  if (exercise.kind === "number") {
    const { right, alsoRight = [], tolerance } = exercise;
    return [right, ...alsoRight].some((value) => Math.abs(Number(answer) - value) <= tolerance);
  }
  if (exercise.kind === "choice") return answer === exercise.right;
  const wanted = exercise.kind === "many" ? exercise.right : exercise.steps.map((_, i) => i);
  return String(answer) === String(wanted);
}

/** What was mistaken, if it is known, and hints. @param {Exercise} exercise @param {Answered} answered */
function aboutWrong(exercise, { answer, wrong }) {
  const { hint, second } = exercise;
  const further = second && wrong >= MIN_WRONG_ANSWERS ? ` ${second}` : "";
  return [make("b", {}, "Not yet. "), `${mistakeIn(exercise, answer)}Hint: ${hint}${further}`];
}

/** What is wrong with an answer. @param {Exercise} exercise @param {number | number[]} answer */
function mistakeIn(exercise, answer) {
  const chosen = [answer].flat();
  if (exercise.kind === "number") return aboutNumber(exercise, Number(answer));
  if (exercise.kind === "order") return aboutOrder(exercise.steps, chosen);
  const isWrong = (/** @type {number} */ i) =>
    exercise.kind === "choice" ? chosen.includes(i) : chosen.includes(i) !== exercise.right.includes(i);
  const found = exercise.replies?.find((_, i) => isWrong(i));
  return found ? `${found} ` : "";
}

/** The first step that stands wrong. @param {string[]} steps in their order @param {number[]} order */
function aboutOrder(steps, order) {
  const place = order.findIndex((step, i) => step !== i);
  const before = place === 0 ? "" : place === 1 ? "The first step is right. " : `The first ${place} steps are right. `;
  return `${before}“${steps[order[place]]}” comes later. `;
}

/**
 * The known mistake that leads to a number, or whether it is too large or too small.
 * @param {Pick<Extract<Exercise, { kind: "number" }>, "right" | "alsoRight" | "mistakes" | "tolerance">} exercise
 * @param {number} answer
 */
export function aboutNumber({ right, alsoRight = [], mistakes = [], tolerance }, answer) {
  const distances = mistakes.map(({ number: wrong }) => Math.abs(wrong - answer));
  const nearest = distances.indexOf(Math.min(...distances));
  if (distances[nearest] <= tolerance) return `${mistakes[nearest].reply} `;
  if (alsoRight.length) return "";
  return answer > right ? "That is too large. " : "That is too small. ";
}

/** A number with two decimals at most, unless more are asked for. @param {Exercise & { kind: "number" }} exercise */
const decimals = ({ right, tolerance }) => String(Number(right.toFixed(tolerance < 0.001 ? 4 : 2))).replace("-", "−");

/** @param {Exercise} exercise */
export function rightAnswer(exercise) {
  if (exercise.kind === "number") return decimals(exercise);
  if (exercise.kind === "choice") return exercise.options[exercise.right];
  if (exercise.kind === "many") return exercise.right.map((i) => exercise.options[i]).join("; ");
  return exercise.steps.join(" → ");
}

let made = 0;

/** @param {Exercise} exercise @returns {Task} */
function makeTask(exercise) {
  if (exercise.kind === "number") return numberTask();
  if (exercise.kind === "order") return orderTask(exercise.steps);
  return optionsTask(exercise.options, exercise.kind === "many");
}

const SUM = /^\(([^()+]+)\+([^()+]+)\)$/; // in brackets

/**
 * Parse a decimal number or a fraction, of which a part may be a sum of two in brackets; null for anything else.
 * @param {string} typed
 */
export function readNumber(typed) {
  const parts = typed.replaceAll("−", "-").replaceAll(",", ".").split("/");
  const terms = parts.map((part) => SUM.exec(part.trim())?.slice(1) ?? [part]);
  if (parts.length > 2 || terms.flat().some((term) => term.trim() === "")) return null;
  const [value, divisor = 1] = terms.map((each) => each.reduce((sum, term) => sum + Number(term), 0));
  const found = value / divisor;
  return Number.isFinite(found) ? found : null;
}

/** @returns {Task} */
function numberTask() {
  const input = make("input", { type: "text", inputmode: "decimal", class: "hl-answer", "aria-label": "Your number" });
  return {
    element: input,
    read() {
      return readNumber(input.value);
    },
    missing: "Type a number, such as 0.25, or a fraction, such as 1/4.",
    write: (answer) => (input.value = String(answer)),
    lock: (isLocked) => (input.disabled = isLocked),
  };
}

/** @param {string[]} options @param {boolean} isMany @returns {Task} */
function optionsTask(options, isMany) {
  const name = `hl-exercise-${(made += 1)}`;
  const inputs = options.map((_, i) => make("input", { type: isMany ? "checkbox" : "radio", name, value: i }));
  const labels = options.map((text, i) => make("label", { class: "hl-option" }, inputs[i], " ", text));
  const chosen = () => inputs.flatMap((input, i) => (input.checked ? [i] : []));
  return {
    element: make("div", { class: "hl-option-list" }, ...labels),
    read: () => (isMany && chosen().length ? chosen() : (chosen()[0] ?? null)),
    missing: isMany ? "Choose at least one answer." : "Choose an answer.",
    write: (answer) => inputs.forEach((input, i) => (input.checked = [answer].flat().includes(i))),
    lock: (isLocked) => inputs.forEach((input) => (input.disabled = isLocked)),
  };
}

/** Steps to move up and down, shuffled at first. @param {string[]} steps @returns {Task} */
function orderTask(steps) {
  const odd = steps.length % 2 ? steps.length : steps.length + 1; // so that every other step is each step once
  let order = steps.map((_, i) => (2 * i + 1) % odd);
  const list = make("ol", { class: "hl-order" });
  let isLocked = false;
  let isTouched = false;
  /** @param {number} place @param {number} by */
  const swap = (place, by) => {
    isTouched = true;
    [order[place], order[place + by]] = [order[place + by], order[place]];
    draw();
    const selector = by < 0 ? "button" : "button:last-of-type";
    /** @type {HTMLElement | null | undefined} */ (list.children[place + by]?.querySelector(selector))?.focus();
  };
  /** @param {number} place @param {number} by @param {string} sign @param {string} name */
  const mover = (place, by, sign, name) =>
    smallButton(sign, () => swap(place, by), {
      disabled: isLocked || !(place + by in order),
      "aria-label": `${name}: ${steps[order[place]]}`,
    });
  const draw = () => {
    const items = order.map((step, place) =>
      make("li", {}, mover(place, -1, "↑", "Up"), mover(place, 1, "↓", "Down"), " ", steps[step]),
    );
    list.replaceChildren(...items);
  };
  draw();
  return {
    element: list,
    read: () => (isTouched ? [...order] : null),
    missing: "Move at least one step first.",
    write(answer) {
      if (Array.isArray(answer) && String([...answer].sort()) === String([...order].sort())) order = [...answer];
      isTouched = true;
      draw();
    },
    lock(locked) {
      isLocked = locked;
      draw();
    },
  };
}
