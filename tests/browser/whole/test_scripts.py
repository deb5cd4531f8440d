"""The page's modules, joined to scripts or, for those who work on them, one by one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers.page import ask_panel, expect_drawn, show_page
from helpers.server import Server
from helpers.tabs import Profiles
from web.assets import URL

pytestmark = pytest.mark.gradio


@pytest.mark.slow
def test_the_page_is_the_same_with_single_modules(
    browser: Profiles, launch: Callable[..., Server], checkpoints: Path
) -> None:
    """A visit asks for a few scripts; the later one holds Ask, and Learn has its own."""
    shown, asked = [], []
    for dev in (False, True):
        page = browser.new_page()
        names: list[str] = []
        page.on("request", lambda request, names=names: names.append(request.url.partition(f"/{URL}/")[2]))
        page.goto(launch(checkpoints / "tiny", dev=dev).url)
        expect_drawn(page)
        page.locator(".hs-ask-button").first.click()
        expect(ask_panel(page)).to_be_visible()
        texts = [page.locator(".hs-page").inner_text()]
        show_page(page, "Learn")
        page.locator(".hl-lesson[aria-busy=false] h2").wait_for()
        shown.append([*texts, page.locator(".hl-page").inner_text()])
        asked.append({name for name in names if name})
    assert shown[0] == shown[1]
    assert asked[0] == {"look.css", "look.mjs", "later.mjs", "learn.css", "learn.mjs"}
    assert {"look/main.mjs", "lib/dom.mjs", "look/ask/ask_panel.mjs", "learn/main.mjs"} < asked[1]


@pytest.mark.slow
def test_gradio_starts_after_the_first_drawing(
    browser: Profiles, launch: Callable[..., Server], checkpoints: Path
) -> None:
    """Without the script that draws, Gradio starts at once and says what happened."""
    url = launch(checkpoints / "tiny").url
    page = browser.new_page()
    held: list[Any] = []
    page.route("**/rows?*", lambda route: held.append(route))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    with page.expect_request("**/rows?*"):
        page.goto(url)
    page.evaluate("document.fonts.ready")
    assert not [each for each in asked if "/assets/index-" in each and each.endswith(".js")]
    with page.expect_request("**/assets/index-*.js"):
        held[0].continue_()
    page.unroute_all()
    expect_drawn(page)
    page.route("**/look.mjs", lambda route: route.abort())
    page.reload()
    expect(page.get_by_text("The page could not start")).to_be_visible()


def test_a_tab_whose_script_is_gone_offers_to_reload(browser: Profiles, server: Server) -> None:
    """As after an update of the server, which has scripts of other addresses."""
    page = browser.new_page()
    page.route("**/use.mjs", lambda route: route.abort())
    page.goto(f"{server.url}#use")
    tab = page.locator("#hs-use")
    expect(tab).to_contain_text("This tab could not start")
    page.unroute_all()
    tab.get_by_role("button", name="Reload").click()
    expect(tab.get_by_role("heading").first).to_be_visible()
