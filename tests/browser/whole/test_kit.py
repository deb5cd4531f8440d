"""The parts that the page is made of, in all their states, on a page of their own (``tests/kit``), in a browser.

What needs no browser is tested in ``tests/js/widgets/kit.test.mjs``.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers.files import ROOT
from helpers.tabs import Profiles
from model.drawing import bundle

HOST = "http://kit.test"
TYPES = {".mjs": "text/javascript", ".html": "text/html"}


def answer(route: Any) -> None:
    """Files of the repository, without a server; the style sheets as one."""
    path = route.request.url.removeprefix(HOST)
    if path == "/styles.css":
        route.fulfill(content_type="text/css", body=bundle.style([*bundle.STYLES, "train/train.css"]))
        return
    file = ROOT / path.lstrip("/")
    if file.is_file():
        route.fulfill(content_type=TYPES[file.suffix], body=file.read_text())
    else:
        route.fulfill(status=404)


@pytest.fixture
def open_kit(profiles: Profiles) -> Iterator[Callable[..., Any]]:
    pages: list[Any] = []

    def opened(scheme: str = "light") -> Any:
        page = profiles.browser.new_page(color_scheme=scheme)
        pages.append(page)
        errors: list[Any] = []
        page.on("pageerror", lambda error: errors.append(error))
        page.route(f"{HOST}/**", answer)
        page.goto(f"{HOST}/tests/kit/index.html")
        expect(page.locator("body[data-ready]"), str(errors)).to_be_attached()
        return page

    yield opened
    for page in pages:
        page.close()


def part(page: Any, name: str) -> Any:
    return page.get_by_role("region", name=name, exact=True)


def test_each_part_is_shown_in_both_themes(open_kit: Callable[..., Any]) -> None:
    colours = []
    for scheme in ("light", "dark"):
        page = open_kit(scheme)
        for section in page.get_by_role("region").all():
            expect(section.locator(":scope > :not(h2, [hidden], .hs-hidden)").first).to_be_visible()
        colours.append(part(page, "buttons").evaluate("(e) => getComputedStyle(e).backgroundColor"))
    assert colours[0] != colours[1]


def test_states_of_buttons_differ(open_kit: Callable[..., Any]) -> None:
    page = open_kit()
    for name in ("buttons", "chips"):
        rest, pressed, disabled = part(page, name).get_by_role("button").all()
        expect(disabled).to_be_disabled()
        looks = "(e) => { const s = getComputedStyle(e); return [s.backgroundColor, s.color, s.opacity].join(); }"
        if name == "buttons":
            assert rest.evaluate(looks) != pressed.evaluate(looks)


def test_tab_reaches_one_item_and_arrow_keys_the_others(open_kit: Callable[..., Any]) -> None:
    page = open_kit()
    grid = part(page, "one stop of Tab")
    expect(grid.locator("[tabindex='0']")).to_have_text("cell 0")
    grid.locator("[tabindex='0']").focus()
    # Three columns and seven items; the keys lead from one to the next.
    down_right = [("Right", 1), ("Down", 4), ("Down", 6), ("Down", 6)]
    up_left = [("Up", 3), ("Left", 3), ("Up", 0), ("Up", 0), ("Right", 1), ("Right", 2)]
    for key, to in down_right + up_left:
        page.keyboard.press(f"Arrow{key}")
        expect(grid.locator(":focus")).to_have_text(f"cell {to}")
        expect(grid.locator("[tabindex='0']")).to_have_text(f"cell {to}")
    page.keyboard.press("End")
    expect(grid.locator(":focus")).to_have_text("cell 6")
    page.keyboard.press("Tab")
    expect(grid.locator(":focus")).to_have_count(0)
    numbers = part(page, "numbers")
    numbers.locator("[tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    expect(numbers.locator(".hl-axes")).to_have_text("0, 1")
    expect(numbers.locator("button:focus")).to_have_text("−1.0000")


def test_panels_close_and_return_the_focus(open_kit: Callable[..., Any]) -> None:
    page = open_kit()
    popover = part(page, "a popover")
    opener = popover.get_by_role("button", name="Open")
    inside = popover.get_by_role("button", name="Inside")
    for close in ("Escape", "Tab", "click"):
        opener.click()
        inside.focus()
        page.mouse.click(2, 2) if close == "click" else page.keyboard.press(close)
        expect(inside).to_be_hidden()
        if close != "click":  # which takes the focus to where it was made
            expect(popover.get_by_role("button", name="After it") if close == "Tab" else opener).to_be_focused()


def test_copied_is_said_only_of_what_was_copied(open_kit: Callable[..., Any]) -> None:
    page = open_kit()
    copying = part(page, "copying")
    assert not page.evaluate("'clipboard' in navigator")  # as on all pages served over plain HTTP
    copying.get_by_role("button").click()
    expect(copying.get_by_role("status")).to_have_text("Copied")
    copying.get_by_role("textbox").press("ControlOrMeta+v")
    expect(copying.get_by_role("textbox")).to_have_value("what was copied")
    page.evaluate("document.execCommand = () => false")
    copying.get_by_role("button").click()
    expect(copying.get_by_role("status")).to_have_text("The browser does not let this page copy")
