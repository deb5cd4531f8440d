// How long an answer takes, in words.

const MIN_SECONDS = 3; // after which, with this fraction done, the progress tells how long it takes
const MIN_FRACTION = 0.005;
const MAX_IN_SECONDS = 90;

/**
 * The time left, judged by the progress; "" while that tells nothing.
 * @param {number} seconds since it began
 * @param {number} fraction of it that is done
 */
export function timeLeft(seconds, fraction) {
  if (seconds < MIN_SECONDS || fraction < MIN_FRACTION) return "";
  return `${about((seconds * (1 - fraction)) / fraction)} left`;
}

/** @param {number} seconds */
function about(seconds) {
  return seconds > MAX_IN_SECONDS ? `about ${Math.round(seconds / 60)} min` : `about ${Math.ceil(seconds / 5) * 5} s`;
}
