// Closing a sheet with a finger.

const MIN_CLOSING_SWIPE = 70; // CSS pixels after which letting go closes it
const MIN_SWIPE = 8; // before a touch counts as a swipe

/**
 * Call `close` when the sheet is swiped down from its top; until then it follows the finger.
 * @param {HTMLElement} sheet
 * @param {() => boolean} isUp
 * @param {() => void} close
 * @param {string} except a selector of elements that handle touches themselves
 */
export function closeBySwipe(sheet, isUp, close, except) {
  let from = /** @type {number | null} */ (null);
  let by = 0;
  const settle = () => {
    sheet.style.translate = "";
    from = null;
    by = 0;
  };
  sheet.addEventListener(
    "touchstart",
    ({ touches, target }) => {
      const isFree = sheet.scrollTop <= 0 && !(/** @type {Element} */ (target).closest(except));
      from = isUp() && isFree && touches.length === 1 ? touches[0].clientY : null;
    },
    { passive: true },
  );
  sheet.addEventListener(
    "touchmove",
    (event) => {
      if (from === null) return;
      by = event.touches[0].clientY - from;
      if (by < 0) {
        settle(); // it scrolls
        return;
      }
      if (by < MIN_SWIPE) return;
      if (event.cancelable) event.preventDefault();
      sheet.style.translate = `0 ${by}px`;
    },
    { passive: false },
  );
  sheet.addEventListener("touchend", () => {
    const isFar = from !== null && by >= MIN_CLOSING_SWIPE;
    settle();
    if (isFar) close();
  });
  sheet.addEventListener("touchcancel", settle);
}
