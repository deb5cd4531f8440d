"""How the browser's tests drive the page, read its numbers and look at its colours.

What nearly every test uses is found by a selector: for a role and a name, Playwright looks at every element of the
page, which takes many times as long.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from model import LoadedModel
from web.assets import URL

from .server import CONTEXT, Server

READOUT = re.compile(r"“(.+)” (\d+), query looks at “(.+)” (\d+), key([\d.e-]+)(?:next comes .+)?", re.DOTALL)


SKIPPED = ".hs-sentence, .hs-next-words, .hs-all-heads, .hs-skip, .hs-card-matrix"
# What is visible in the window, without the sentence, the next words and the field: controls, words, sizes of letters.
VISIBLE = """(skipped) => {
  const isSeen = (element) => {
    const { top, bottom, width, height } = element.getBoundingClientRect();
    return !element.closest(skipped) && element.checkVisibility() && width > 2 && height > 2 && top < innerHeight
      && bottom > 0;
  };
  const root = document.querySelector(".hs-page");
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const words = [];
  const sizes = new Set();
  while (walker.nextNode()) {
    const { parentElement: element, data } = walker.currentNode;
    if (!data.trim() || !isSeen(element)) continue;
    words.push(data);
    sizes.add(parseFloat(getComputedStyle(element).fontSize));
  }
  const all = "button:not([role=radio]), [role=radiogroup], a[href], input, select, textarea";
  const controls = [...root.querySelectorAll(all)].filter(isSeen).length;
  return { controls: controls + 3, text: words.join(" "), sizes: [...sizes].sort((a, b) => a - b) };
}"""
# Without a chosen speed, a text appears at once, with all details; "View" is open, and the heads of
# two texts are side by side.
AT_ONCE = "; ".join(
    f'localStorage["headscope-{name}"] ??= "{value}"'
    for name, value in {"speed": 0, "view": "open", "details": "on", "wipe": "apart"}.items()
)


def module(path: str) -> str:
    """An expression for the address of one of the page's own modules, by its path in ``web/js``."""
    return f"new URL({URL + '/' + path!r}, document.baseURI)"


def expect_drawn(page: Any) -> None:
    """Wait until a text is complete and its open head is drawn. Checks every frame; ``expect`` polls less often."""
    page.wait_for_function("document.querySelector('.hs-number')?.textContent")


def opened_stage(browser: Any, story: Server, width: int = 1440, height: int = 900, path: str = "/") -> Any:
    """The stage of the shipped model of stories at rest, as after its opening was played."""
    page = browser.new_page(viewport={"width": width, "height": height}, reduced_motion="reduce")
    page.add_init_script("localStorage['headscope-details'] = 'off'")
    page.goto(f"{story.url}{path}")
    expect(page.locator(".hs-verdict .hs-main-action:not([title])")).to_contain_text("7 heads")
    expect(page.locator(".hs-ask-line")).to_be_visible()
    return page


def ask_panel(page: Any) -> Any:
    return page.get_by_role("region", name="Ask", exact=True)


def two_frames(page: Any) -> None:
    """Wait until pending drawing is on the screen."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def choose_model(page: Any, name: str) -> None:
    page.locator(".hs-model-button").click()
    page.locator(f"[role=listbox][aria-label=Model] [data-name='{name}']").click()


def expect_model(page: Any, name: str, shape: str) -> None:
    """The model picker shows the model's name and description."""
    button = page.locator(".hs-model-button")
    expect(button).to_have_text(name)
    expect(button).to_have_attribute("title", re.compile(shape))


@contextmanager
def opened_settings(page: Any) -> Iterator[Any]:
    """The popover of the settings, which is closed again afterwards."""
    page.locator(".hs-settings-anchor > button").click()
    panel = page.locator("#hs-settings")
    yield panel
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()


CONTROLS = "button checkbox combobox link listbox radio searchbox slider spinbutton switch tab textbox".split()


def expect_names(part: Any) -> None:
    """Every visible control in this part of the page has an accessible name. One query for each role takes a fraction
    of the time that asking every control does.
    """
    assert sum(part.get_by_role(role, name=re.compile(r"\S")).count() for role in CONTROLS) > 10
    for role in CONTROLS:
        expect(part.get_by_role(role, name=re.compile(r"^\s*$"))).to_have_count(0)


def number_field(part: Any, label: str) -> Any:
    return part.get_by_label(f"{label}, as a number", exact=True)


def change_settings(page: Any, seed: int | None = None, **values: float) -> None:
    """Type numbers into the settings, by label with ``_`` for ``-``; a seed is pinned."""
    with opened_settings(page) as panel:
        for name, value in values.items():
            label = "top-k (0 = all)" if name == "top_k" else name.replace("_", "-")
            number_field(panel, label).fill(str(value))
        if seed is not None:
            panel.get_by_label("seed", exact=True).fill(str(seed))
            expect(panel.get_by_label("Reuse this seed")).to_be_checked()


def show_summaries(part: Any) -> None:
    """Show the means and the rollouts in the grid."""
    part.get_by_label("means and rollout").check()


def open_menu(page: Any) -> None:
    """Open the menu that narrow screens have in the bar."""
    menu = page.locator(".hs-menu-button")
    if menu.is_visible() and menu.get_attribute("aria-expanded") == "false":
        menu.click()


def show_page(page: Any, title: str) -> None:
    """Go to Look, Learn or Use."""
    open_menu(page)
    page.locator(f".hs-pages [data-page={title.lower()}]").click()


def write(page: Any, prompt: str) -> None:
    page.locator("#hs-prompt").fill(prompt)
    write_button(page).click()


def write_button(page: Any) -> Any:
    """The control shown while no text is written."""
    return page.locator("#hs-write")


def stop_button(page: Any) -> Any:
    """The control shown while a text is written."""
    return page.locator("#hs-stop")


def expect_status(page: Any, said: str) -> None:
    """The line below the text says so."""
    expect(page.locator(".hs-written .hs-status")).to_have_text(said)


def write_slowly(page: Any, slow: Any, n_new: int) -> None:
    """Let the gated model write this many tokens after "ab"."""
    choose_model(page, "slow")
    write(page, "ab")
    slow.gate.release(n_new)
    expect(text(page)).to_have_text(re.compile(rf"^ab.{{{n_new}}}$", re.DOTALL))


def stop(page: Any, server: Server) -> None:
    """Stop the gated model during a step."""
    (generation,) = server.running
    stop_button(page).click()
    assert generation.stopped.wait(timeout=10)
    server.services.served.models["slow"].gate.release()  # type: ignore[attr-defined]


def text(page: Any) -> Any:
    return page.locator(".hs-text[aria-label=Text]")


def readout(page: Any) -> tuple[int, int, float]:
    """The query, key and weight in the open head's panel."""
    expect_drawn(page)
    found = READOUT.fullmatch(page.locator(".hs-readout").text_content())
    assert found, page.locator(".hs-readout").text_content()
    return int(found[2]), int(found[4]), float(found[5])


def is_shown_as(weight: float, shown: float) -> bool:
    return abs(weight - shown) <= 1e-5 + (0.00005 if shown >= 0.001 else 0.005 * shown)


def open_head(page: Any) -> tuple[int, int]:
    head, layer = re.findall(r"\d+", page.locator(".hs-open").get_attribute("aria-label"))
    return int(layer), int(head)


def spoken(label: str) -> str:
    """A picture's name in a sentence: "0·3" is "head 3 of layer 0"."""
    found = re.fullmatch(r"(\d+)·(\d+)", label)
    return f"head {found[2]} of layer {found[1]}" if found else f"the {label[0].lower()}{label[1:]}"


def check_number(page: Any, loaded: LoadedModel) -> tuple[int, int]:
    """Assert that the displayed number is the model's own for the displayed text."""
    query, key, shown = readout(page)
    layer, head = open_head(page)
    attention = loaded.trace(text(page).text_content()[:CONTEXT]).attention
    assert is_shown_as(float(attention[layer, head, query, key]), shown)
    return query, key


# Two texts side by side.


def keep(page: Any, letter: str) -> None:
    """Show one of two compared texts alone."""
    page.locator(".hs-compare-more").get_by_role("button", name="More", exact=True).click()
    page.get_by_role("button", name=f"Keep {letter}").click()


def compare(page: Any, entry: str, opens: bool = True) -> None:
    page.get_by_role("button", name="Compare this text").click()
    page.get_by_role("menuitem", name=entry).click()
    if opens:
        expect(page.get_by_role("region", name="Compare", exact=True)).to_be_visible()


def write_one(page: Any, prompt: str) -> str:
    """Write one token after the prompt, so that the whole text is known."""
    page.evaluate(f"localStorage.clear(); {AT_ONCE}")
    change_settings(page, length=1)
    write(page, prompt)
    expect_status(page, "1 token written")
    written: str = text(page).text_content()
    return written


def head_panel(page: Any, letter: str) -> Any:
    return page.get_by_role("region", name=re.compile(f"^Attention weights {letter}, "))


def ranking(page: Any) -> dict[str, float]:
    """The text of each chip: the heads that differ most."""
    chips = page.get_by_role("group", name="Largest difference first").get_by_role("button")
    expect(chips.first).to_be_visible()
    shown = chips.evaluate_all("(all) => all.map((chip) => [chip.textContent, chip.dataset.difference])")
    return {text.rpartition(" ")[0]: float(difference) for text, difference in shown}


def point(panel: Any, query: int, key: int) -> None:
    """Move the pointer to a cell."""
    board = panel.locator(".hs-board")
    expect(board).not_to_have_attribute("data-count", "0")
    box, n = board.bounding_box(), int(board.get_attribute("data-count"))
    margin = float(board.get_attribute("data-margin"))
    cell = (box["width"] - margin) / n
    board.hover(position={"x": margin + (key + 0.5) * cell, "y": margin + (query + 0.5) * cell})


# Contrast as the WCAG has it, of an element's text against the first background behind it.
CONTRAST = """(selector) => [...document.querySelectorAll(selector)]
  .filter((e) => e.offsetParent && e.textContent.trim())
  .map((e) => {
    const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const light = (rgb) => {
        const [r, g, b] = rgb.slice(0, 3).map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    let behind = e;
    const solid = (e) => { const c = parts(getComputedStyle(e).backgroundColor); return c.length === 3 || c[3] === 1; };
    while (behind.parentElement && !solid(behind)) behind = behind.parentElement;
    const pair = [getComputedStyle(e).color, getComputedStyle(behind).backgroundColor].map((c) => light(parts(c)));
    return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
})"""


def save(page: Any, menu: str, kind: str, folder: Path) -> Path:
    """The file that an entry of a menu downloads."""
    page.get_by_role("button", name=menu).click()
    with page.expect_download() as waiting:
        page.get_by_role("menuitem", name=kind, exact=True).click()
    path = folder / waiting.value.suggested_filename
    waiting.value.save_as(path)
    return path
