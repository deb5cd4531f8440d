"""The two screenshots in the README: a text that was just written, light and dark, at the step of one of its tokens.

python -m bench.pictures
"""

from typing import Any

from bench.harness import ROOT, character_checkpoint, chromium, need_browser
from bench.page import served

FOLDER = ROOT / "bench" / "readme"
LENGTH, STEP = 240, 196  # tokens to write, and the one that is selected
MAX_BYTES = 400_000


def take(page: Any, url: str, theme: str) -> bytes:
    page.add_init_script("localStorage.setItem('headscope-speed', '0')")  # the text appears at once
    page.goto(f"{url}?__theme={theme}")
    page.wait_for_function("document.querySelector('.hs-number')?.textContent")
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("length, as a number").fill(str(LENGTH))
    page.get_by_label("seed", exact=True).fill("1")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Write", exact=True).click()
    page.wait_for_selector(".hs-workspace[data-state=done]")
    page.wait_for_function(f"document.querySelector('.hs-board').dataset.count > {LENGTH}")
    page.wait_for_selector(".hs-bars table[aria-busy=false] tbody tr:nth-child(20)")
    page.get_by_role("button", name="L3 H3,").click()
    page.locator(".hs-writing .hs-token").nth(STEP).click()
    page.mouse.move(2, 2)
    page.locator(".hs-bars table[aria-busy=false]").filter(has_text=f"Token {STEP}, after").wait_for()
    page.wait_for_selector(".hs-tag:not(:empty)")  # the roles of the heads are known
    page.wait_for_selector("[aria-label='Attention weights, L3 H3'] .hs-readout:not([hidden])")
    page.wait_for_selector(".hs-alternatives:not([hidden])")
    page.evaluate("document.activeElement.blur()")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return bytes(page.screenshot(full_page=True, animations="disabled"))


def main() -> None:
    path = need_browser()
    FOLDER.mkdir(exist_ok=True)
    with chromium(path) as browser, served([character_checkpoint()]) as (url, _):
        for theme in ("light", "dark"):
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            picture = take(page, url, theme)
            page.close()
            if len(picture) > MAX_BYTES:
                raise SystemExit(f"the {theme} picture has {len(picture):,} bytes, more than {MAX_BYTES:,}")
            file = FOLDER / f"{theme}.png"
            file.write_bytes(picture)
            print(f"{file.relative_to(ROOT)}: {len(picture):,} bytes")


if __name__ == "__main__":
    main()
