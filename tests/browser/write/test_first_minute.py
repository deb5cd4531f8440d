"""The first minute of a visitor: tiles for fingers, expert controls folded away, links that skip to the parts."""

import itertools
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from helpers.page import expect_drawn, text
from helpers.server import Server

PHONE = {"width": 390, "height": 844}


def opened(browser: Any, server: Server, viewport: dict[str, int], **options: bool) -> Any:
    """The page of a first-time visitor, once the roles of all heads are known."""
    httpx.get(f"{server.url}/v1/lens/roles", params={"model": "tiny"}, timeout=60).raise_for_status()
    page = browser.new_page(viewport=viewport, **options)
    page.add_init_script('localStorage["headscope-view"] = "";')
    page.goto(server.url)
    expect_drawn(page)
    return page


def test_a_tile_opens_its_head_over_a_phones_screen(browser: Any, server: Server) -> None:
    page = opened(browser, server, PHONE)
    tile = page.get_by_role("button", name="0·2,")
    tile.click()
    sheet = page.get_by_role("region", name="Attention weights, head 2 of layer 0")
    expect(sheet.locator(".hs-board")).to_be_in_viewport(ratio=0.9)
    # The selected token and its surroundings stay in view, and a tap there selects another token.
    lines = sheet.get_by_role("group", name="Text around the selected token")
    expect(lines.locator(".hs-query")).to_be_in_viewport(ratio=1)
    here = int(lines.locator(".hs-query").get_attribute("data-i"))
    lines.locator(f"[data-i='{here - 1}']").click()
    expect(page.locator(".hs-writing .hs-chosen")).to_have_attribute("data-i", str(here - 1))
    # Once it has stopped moving, its parts are stacked vertically.
    page.evaluate("Promise.all(document.getAnimations().map((animation) => animation.finished))")
    parts = [part.bounding_box() for part in sheet.locator("> *:visible").all()]
    assert all(one["y"] + one["height"] <= other["y"] for one, other in itertools.pairwise(parts))
    sheet.get_by_role("button", name="Ask").click()  # which is about all heads, behind the sheet
    expect(sheet.locator(".hs-board")).not_to_be_in_viewport(ratio=0.9)
    expect(page.locator(".hs-grid button:visible")).to_have_count(12)
    page.keyboard.press("Escape")
    tile.click()
    page.get_by_role("button", name="Back to the heads").click()
    expect(tile).to_be_in_viewport(ratio=0.98)
    expect(sheet.locator(".hs-board")).not_to_be_in_viewport(ratio=0.9)


@pytest.mark.slow
def test_controls_are_large_enough_for_fingers(browser: Any, server: Server) -> None:
    page = opened(browser, server, PHONE, has_touch=True, is_mobile=True)
    # A phone cannot hover and has no keys.
    expect(page.get_by_text("tap one to branch")).to_have_count(1)
    assert "Hover" not in page.locator(".headscope").first.text_content()
    for box in (tile.bounding_box() for tile in page.locator(".hs-grid button").all()):
        assert box["width"] >= 44 and box["height"] >= 44
    assert text(page).evaluate("e => parseFloat(getComputedStyle(e).lineHeight)") >= 28
    box = page.get_by_label("colour by surprise").bounding_box()
    assert box["width"] >= 20 and box["height"] >= 20
    prompt = page.get_by_label("Prompt")
    before = prompt.bounding_box()["height"]
    prompt.fill("one line\nand another\nand a third")
    assert prompt.bounding_box()["height"] > before + 20
    assert prompt.evaluate("e => e.scrollHeight <= e.clientHeight + 2")
    prompt.blur()
    assert prompt.bounding_box()["height"] == before


def test_expert_controls_are_folded_away(browser: Any, server: Server) -> None:
    page = opened(browser, server, {"width": 1440, "height": 900})
    controls = (
        "Metric of the heads",
        "Order of the heads",
        "Colour scale",
        "Smallest weight drawn",
        "means and rollout",
    )
    for name in controls:
        expect(page.get_by_label(name)).to_be_hidden()
    page.get_by_role("button", name="View", exact=True).click()
    for name in controls:
        expect(page.get_by_label(name)).to_be_visible()
    page.get_by_label("Colour scale").focus()
    page.keyboard.press("Escape")
    expect(page.get_by_label("Colour scale")).to_be_hidden()
    expect(page.get_by_role("button", name="View", exact=True)).to_be_focused()


@pytest.mark.slow
def test_the_first_tab_stops_skip_to_the_parts(page: Any) -> None:
    for stops, name, target in (
        (1, "Skip to heads", ".hs-grid button"),
        (2, "Skip to the open head", ".hs-board"),
        (3, "Skip to the next token", ".hs-next button"),
    ):
        page.reload()
        expect(page.locator(".hs-bars table[aria-busy=false] tbody tr").first).to_be_visible()
        for _ in range(stops):
            page.keyboard.press("Tab")
        expect(page.get_by_role("button", name=name)).to_be_focused()
        expect(page.get_by_role("button", name=name)).to_be_in_viewport(ratio=1)
        page.keyboard.press("Enter")
        assert page.evaluate("(target) => document.activeElement.matches(target)", target)
