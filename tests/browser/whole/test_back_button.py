"""Back closes what was opened last, and stays on the page while something is open."""

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Error, expect

from helpers import also_slow
from helpers.models import tiny_model
from helpers.page import (
    change_settings,
    choose_model,
    expect_drawn,
    expect_model,
    expect_status,
    number_field,
    opened_settings,
    text,
    two_frames,
    write,
)
from helpers.server import CHARACTERS, Server
from model.tokenizer import CharTokenizer

pytestmark = pytest.mark.gradio


def go_back(page: Any) -> None:
    page.evaluate("history.back()")  # waits for no load: there is none
    two_frames(page)


def test_back_leaves_the_details_and_closes_the_guide(page: Any, server: Server) -> None:
    body = page.locator("body")
    page.get_by_role("button", name="← Back to the sentence").click()
    expect(body).to_have_attribute("data-details", "off")
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("button", name="All details").click()
    expect(body).to_have_attribute("data-details", "on")
    go_back(page)
    expect(body).to_have_attribute("data-details", "off")
    page.get_by_role("button", name="Guide").click()
    expect(page.get_by_role("dialog", name="Guide")).to_be_visible()
    go_back(page)
    expect(page.get_by_role("dialog", name="Guide")).to_be_hidden()


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


def write_two(page: Any) -> None:
    """Two texts after the opening, each with an address."""
    change_settings(page, length=2)
    for prompt in ("one", "two"):
        write(page, prompt)
        expect(text(page)).to_have_text(re.compile(f"^{prompt}..$", re.DOTALL))
        page.wait_for_function("(before) => location.search !== before", arg=getattr(page, "search", ""))
        page.search = page.evaluate("location.search")


def hold_landings(page: Any) -> list[Any]:
    """What the server is asked about addresses, held until each is answered."""
    held: list[Any] = []
    page.route("**/look/landing*", lambda route: held.append(route))
    return held


def answer(route: Any) -> None:
    with suppress(Error):  # the page may have ended the request
        route.continue_()


def asked(page: Any, held: list[Any], count: int) -> None:
    """Wait until so many addresses have been asked for."""
    for _ in range(600):  # frames: ten seconds
        if len(held) >= count:
            return
        page.evaluate("() => new Promise((done) => requestAnimationFrame(done))")
    raise AssertionError(f"{len(held)} requests instead of {count}")


def test_only_the_last_of_two_slow_answers_is_shown(page: Any, server: Server) -> None:
    write_two(page)
    held = hold_landings(page)
    for steps in (1, 2):  # to “one”, then to the opening
        page.evaluate("history.back()")
        asked(page, held, steps)
    answer(held[1])
    expect(text(page)).to_have_text(re.compile("^ROMEO"))
    answer(held[0])
    server.wait_until_idle()
    two_frames(page)
    expect(text(page)).to_have_text(re.compile("^ROMEO"))
    assert page.evaluate("location.search") == ""
    # The same the other way: Forward to “one” again while “two” is awaited.
    page.evaluate("history.forward()")
    asked(page, held, 3)
    page.evaluate("history.forward()")
    asked(page, held, 4)
    page.evaluate("history.back()")
    asked(page, held, 5)
    answer(held[3])
    answer(held[4])
    expect(text(page)).to_have_text(re.compile("^one..$", re.DOTALL))
    answer(held[2])
    two_frames(page)
    expect(text(page)).to_have_text(re.compile("^one..$", re.DOTALL))


@pytest.mark.slow
def test_returning_before_the_answer_shows_the_text_of_the_address(page: Any) -> None:
    write_two(page)
    held = hold_landings(page)
    page.evaluate("history.back()")
    asked(page, held, 1)
    page.evaluate("history.forward()")
    asked(page, held, 2)
    answer(held[0])
    answer(held[1])
    expect(page.locator(".hs-workspace[data-state=linked]")).to_be_visible()
    expect(text(page)).to_have_text(re.compile("^two..$", re.DOTALL))


@pytest.mark.slow
@pytest.mark.parametrize("act", ["write", *also_slow("choose")])
def test_what_is_asked_for_meanwhile_is_shown_instead_of_a_slow_answer(page: Any, server: Server, act: str) -> None:
    write_two(page)
    held = hold_landings(page)
    page.evaluate("history.back()")
    asked(page, held, 1)
    if act == "write":
        write(page, "new")
        expect(text(page)).to_have_text(re.compile("^new..$", re.DOTALL))
    else:
        choose_model(page, "other")
        page.wait_for_function("location.search === '?model=other'")
        expect(text(page)).to_have_text(re.compile("^ROMEO:."))
    shown = text(page).text_content()
    answer(held[0])
    server.wait_until_idle()
    two_frames(page)
    expect(text(page)).to_have_text(shown)
    expect_model(page, "tiny" if act == "write" else "other", "layers")


@pytest.mark.slow
def test_back_fetches_nothing_after_the_link_was_copied(page: Any) -> None:
    write_two(page)
    page.get_by_label("Colour scale").select_option("log")
    page.get_by_role("button", name="Copy link").click()
    page.wait_for_function("location.search.includes('scale=log')")
    shown = text(page).text_content()
    page.get_by_role("button", name="Ask", exact=True).click()
    panel = page.get_by_role("region", name="Ask", exact=True)
    expect(panel).to_be_visible()
    page.wait_for_function("history.state.opened.ask === 'list'")
    held = hold_landings(page)
    go_back(page)
    expect(panel).to_be_hidden()
    two_frames(page)
    assert not held
    expect(text(page)).to_have_text(shown)
    # Back leads to the text before, and there is no entry between them.
    page.unroute_all()
    go_back(page)
    expect(text(page)).to_have_text(re.compile("^one..$", re.DOTALL))


@pytest.mark.slow
def test_a_pinned_seed_stays(page: Any) -> None:
    write_two(page)
    change_settings(page, seed=77)
    go_back(page)
    expect(text(page)).to_have_text(re.compile("^one..$", re.DOTALL))
    with opened_settings(page) as panel:
        expect(panel.get_by_label("seed", exact=True)).to_have_value("77")
        expect(panel.get_by_label("Reuse this seed")).to_be_checked()
    write(page, "three")
    expect_status(page, "2 tokens written")
    page.get_by_role("button", name="Write another").click()
    expect(page.get_by_role("region", name="Compare", exact=True)).to_be_visible()
    with opened_settings(page) as panel:
        expect(panel.get_by_label("seed", exact=True)).to_have_value("77")
        panel.get_by_label("Reuse this seed").uncheck()
    write(page, "four")
    expect(text(page)).to_have_text(re.compile("^four..$", re.DOTALL))
    with opened_settings(page) as panel:  # that of the new text
        expect(panel.get_by_label("seed", exact=True)).not_to_have_value("77")


@pytest.mark.slow
def test_a_small_context_shortens_no_text_of_other_models(
    browser: Any, launch: Callable[..., Server], checkpoints: Path, tmp_path: Path
) -> None:
    tiny_model(0, CharTokenizer.train(CHARACTERS), context_length=16).save(tmp_path / "small")
    server = launch(checkpoints / "tiny", tmp_path / "small")
    page = browser.new_page()
    page.goto(server.url)
    expect_drawn(page)
    for chosen in (40, 7):
        change_settings(page, length=chosen)
        for name in ("small", "tiny", "small", "tiny"):
            choose_model(page, name)
            expect_model(page, name, "layers")
            page.wait_for_function("(name) => location.search.includes(name)", arg=f"model={name}")
            length = str(min(chosen, 16) if name == "small" else chosen)
            with opened_settings(page) as panel:
                expect(number_field(panel, "length")).to_have_value(length)
                number_field(panel, "length").focus()  # and leaving it changes nothing


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
