"""The README's pictures: the page as it opens, light and dark, and how the opening plays.

python -m bench.pictures
"""

import time
from io import BytesIO
from typing import Any

from PIL import Image

from bench.harness import ROOT, chromium, need_browser
from bench.page import served

FOLDER = ROOT / "bench" / "readme"
CHECKPOINT = ROOT / "checkpoints" / "stories-bpe"
PLAYED, SWITCHED = 7, 3  # seconds in which the opening plays, and for which the heads are off
FRAME, LAST_FRAME = 120, 1500  # milliseconds
MAX_BYTES = {".png": 400_000, ".webp": 1_500_000}


def open_page(browser: Any, url: str, theme: str, motion: str = "reduce", **viewport: int) -> Any:
    page = browser.new_page(viewport=viewport, reduced_motion=motion)
    page.goto(f"{url}?__theme={theme}")
    page.wait_for_selector(".hs-named[data-kind=copies]")  # the roles of the heads are known
    page.mouse.move(2, 2)
    settle(page)
    return page


def settle(page: Any) -> None:
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def replay(page: Any) -> bytes:
    """A looping WebP: the opening writes itself, and then its heads are switched off."""
    panel = page.locator(".hs-stage-top")
    frames: list[Image.Image] = []

    def watch(seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            began = time.monotonic()
            frames.append(Image.open(BytesIO(panel.screenshot())).convert("RGB"))
            page.wait_for_timeout(max(0, FRAME - 1000 * (time.monotonic() - began)))

    page.wait_for_selector(".hs-stage:not([data-play])")
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("button", name="Replay").click()
    watch(PLAYED)
    page.get_by_role("button", name="Turn these").click()
    watch(SWITCHED)
    file = BytesIO()
    durations = [FRAME] * (len(frames) - 1) + [LAST_FRAME]
    frames[0].save(file, "WEBP", save_all=True, append_images=frames[1:], duration=durations, loop=0, quality=80)
    return file.getvalue()


def keep(name: str, picture: bytes) -> None:
    file = FOLDER / name
    if len(picture) > MAX_BYTES[file.suffix]:
        raise SystemExit(f"{name} has {len(picture):,} bytes, more than {MAX_BYTES[file.suffix]:,}")
    file.write_bytes(picture)
    print(f"{file.relative_to(ROOT)}: {len(picture):,} bytes")


def main() -> None:
    path = need_browser()
    FOLDER.mkdir(exist_ok=True)
    with chromium(path) as browser, served([CHECKPOINT]) as (url, _):
        for theme in ("light", "dark"):
            page = open_page(browser, url, theme, width=1440, height=900)
            keep(f"{theme}.png", page.screenshot(animations="disabled"))
            page.close()
        keep("replay.webp", replay(open_page(browser, url, "light", "no-preference", width=1180, height=820)))


if __name__ == "__main__":
    main()
