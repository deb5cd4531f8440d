"""Back closes what was opened last, and stays on the page while something is open."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers.page import expect_drawn, text, two_frames, write
from helpers.server import Server

pytestmark = pytest.mark.gradio


def go_back(page: Any) -> None:
    page.evaluate("history.back()")  # waits for no load: there is none
    two_frames(page)


def test_back_closes_what_was_opened_last(page: Any, server: Server) -> None:
    began = page.evaluate("history.length")
    page.get_by_role("button", name="Learn", exact=True).click()
    page.wait_for_url("**#learn")
    page.get_by_role("button", name="Look", exact=True).click()
    expect(text(page)).to_be_visible()
    page.get_by_role("button", name="Ask", exact=True).click()
    panel = page.get_by_role("region", name="Ask", exact=True)
    questions = panel.locator("ul button")
    questions.first.click()
    expect(questions.first).to_be_hidden()
    page.wait_for_function("(n) => history.length === Math.min(n + 4, 50)", arg=began)  # browsers keep 50 entries
    go_back(page)
    expect(questions.first).to_be_visible()
    go_back(page)
    expect(panel).to_be_hidden()
    go_back(page)
    expect(page.locator("body[data-page=learn]")).to_be_visible()
    go_back(page)
    expect(text(page)).to_be_visible()
    page.evaluate("history.forward()")
    expect(page.locator("body[data-page=learn]")).to_be_visible()


@pytest.mark.slow
def test_a_question_closed_by_hand_does_not_reopen_on_going_back(page: Any) -> None:
    """A question that was closed does not reopen on going back."""
    write(page, "ab")
    page.wait_for_url("**ids=**")
    page.get_by_role("button", name="Ask", exact=True).click()
    panel = page.get_by_role("region", name="Ask", exact=True)
    expect(panel).to_be_visible()
    page.wait_for_function("history.state.opened.ask === 'list'")
    page.get_by_role("button", name="Close Ask").click()
    expect(panel).to_be_hidden()
    page.wait_for_function("history.state.opened.ask === ''")
    go_back(page)
    expect(text(page)).to_have_text(re.compile("^ROMEO"))
    expect(page.get_by_label("Prompt")).to_have_value("ROMEO:")
    expect(panel).to_be_hidden()


@pytest.mark.slow
def test_back_and_a_swipe_close_the_sheet_of_a_phone(browser: Any, server: Server) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844}, has_touch=True)
    page.goto(server.url)
    expect_drawn(page)
    sheet = page.locator(".hs-open.hs-sheet")
    for close in ("back", "swipe", "short swipe"):
        page.locator(".hs-grid button").nth(1).click()
        expect(sheet).to_be_visible()
        page.wait_for_function("history.state.opened.sheet")
        page.wait_for_function("document.querySelector('.hs-sheet').getAnimations().length === 0")
        if close == "back":
            go_back(page)
        else:
            box = sheet.locator("h2").bounding_box()
            swipe(page, box["x"] + 5, box["y"] + 5, 30 if close == "short swipe" else 160)
        if close == "short swipe":
            two_frames(page)
            expect(sheet).to_be_visible()
            break
        expect(sheet).to_have_count(0)
        page.wait_for_function("!history.state.opened.sheet")
        expect(text(page)).to_be_visible()
    assert page.url.startswith(server.url)


def swipe(page: Any, x: float, y: float, down: float) -> None:
    session = page.context.new_cdp_session(page)
    session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    for part in range(1, 9):
        point = {"x": x, "y": y + down * part / 8}
        session.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [point]})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    session.detach()
