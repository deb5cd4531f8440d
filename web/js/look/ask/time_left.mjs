// How long an answer takes, in words.

const MIN_SECONDS = 3; // after which, with this fraction done, the progress tells more than the server's expectation
const MIN_FRACTION = 0.005;
const MAX_IN_SECONDS = 90;

/**
 * The expected time at first, then the time left, judged by the progress; "" while neither is known.
 * @param {number} seconds since it began
 * @param {number} fraction of it that is done
 * @param {number} expected seconds in all, as the server said beforehand; 0 if it did not
 */
export function timeLeft(seconds, fraction, expected) {
  if (seconds >= MIN_SECONDS && fraction >= MIN_FRACTION) return `${about((seconds * (1 - fraction)) / fraction)} left`;
  return expected ? about(expected) : "";
}

/** @param {number} seconds */
function about(seconds) {
  return seconds > MAX_IN_SECONDS ? `about ${Math.round(seconds / 60)} min` : `about ${Math.ceil(seconds / 5) * 5} s`;
}
