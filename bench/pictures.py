"""The README's pictures: the page as it opens, light and dark, and its text with the arcs, word by word.

python -m bench.pictures
"""

from io import BytesIO
from typing import Any

from PIL import Image

from bench.harness import ROOT, chromium, need_browser
from bench.page import served

FOLDER = ROOT / "bench" / "readme"
CHECKPOINT = ROOT / "checkpoints" / "stories-bpe"
FIRST_STEP = 20  # the loop begins at this token
FRAME, LAST_FRAME = 260, 2600  # milliseconds
MAX_BYTES = {".png": 400_000, ".webp": 1_500_000}


def open_page(browser: Any, url: str, theme: str, **viewport: int) -> Any:
    page = browser.new_page(viewport=viewport, reduced_motion="reduce")
    page.goto(f"{url}?__theme={theme}")
    page.wait_for_selector(".hs-tag:not(:empty)")  # the roles of the heads are known
    page.mouse.move(2, 2)
    settle(page)
    return page


def settle(page: Any) -> None:
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def replay(page: Any) -> bytes:
    """A looping WebP of the text's panel, one frame for each token up to the last."""
    rail, panel = page.get_by_role("slider", name="Step"), page.locator(".hs-writing")
    last = int(rail.get_attribute("max"))
    frames = []
    for step in range(FIRST_STEP, last + 1):
        rail.fill(str(step))
        page.wait_for_selector(".hs-bars table[aria-busy=false] tbody tr:nth-child(5)")
        settle(page)
        frames.append(Image.open(BytesIO(panel.screenshot(animations="disabled"))).convert("RGB"))
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
        keep("replay.webp", replay(open_page(browser, url, "light", width=1180, height=820)))


if __name__ == "__main__":
    main()
