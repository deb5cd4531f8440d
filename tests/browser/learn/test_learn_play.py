"""Play: one number travels through a rung, from a word to the result."""

import math
import re
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers.learn_page import numbers, open_rung, say, table

# Sums of rung 5, on the sentence below: the table of each stop.
TABLES = ["The words x", "Attention scores", "Attention weights", "Context vectors"]
FASTER = """() => {
  window.ownTimeout = window.setTimeout;
  window.setTimeout = (call, time, ...rest) => window.ownTimeout(call, time / 100, ...rest);
}"""


def next_button(page: Any) -> Any:
    return page.get_by_role("button", name="On to the next stop")


def shown(page: Any) -> str:
    return str(page.locator(".hl-flight b").text_content())


def test_the_number_of_every_stop_is_that_of_its_table(page: Any) -> None:
    page.emulate_media(reduced_motion="reduce")
    say(page, "The cat saw a dog")
    open_rung(page, 5)
    page.get_by_role("button", name="Follow one number, picture by picture").click()
    said = page.locator(".hl-play [role=status]")
    for i, name in enumerate(TABLES):
        expect(said).to_contain_text(f"{i + 1} / 4")
        cell = page.locator(".hl-heat td.hl-chosen")
        assert cell.locator("xpath=ancestor::table").get_attribute("aria-label") == name
        assert shown(page) == cell.text_content()
        expect(page.locator(".hl-flight path")).to_have_count(i)
        if i < 3:
            next_button(page).click()
    expect(next_button(page)).to_be_disabled()
    weights = numbers(page, "Attention weights")
    most = max(weight for r, row in enumerate(weights) for c, weight in enumerate(row) if r != c)
    assert f"{most:.4f} × " in str(said.text_content())
    page.keyboard.press("Escape")
    expect(page.locator(".hl-flight")).to_be_hidden()
    expect(page.locator(".hl-stop")).to_have_count(0)


@pytest.mark.slow
def test_it_moves_alone_to_the_end_where_the_focus_is_then(page: Any) -> None:
    open_rung(page, 4)
    page.evaluate(FASTER)
    page.get_by_role("button", name="Follow one number").click()
    expect(page.locator(".hl-play [role=status]")).to_contain_text("4 / 4")
    page.evaluate("() => { window.setTimeout = window.ownTimeout; }")  # other tests use this page
    focused = page.evaluate("document.activeElement.closest('table').getAttribute('aria-label')")
    assert focused == "Averages"
    page.get_by_role("button", name="Stop following the number").click()
    expect(page.get_by_role("button", name="Follow one number")).to_be_focused()


@pytest.mark.slow
def test_a_page_that_scrolls_under_a_resting_mouse_keeps_the_arithmetic_of_the_stop(page: Any) -> None:
    page.emulate_media(reduced_motion="reduce")
    say(page, "The cat saw a dog")
    open_rung(page, 5)
    page.get_by_role("button", name="Follow one number, picture by picture").click()
    cell = table(page, "Attention weights").locator("tbody td").first
    x, y = cell.bounding_box()["x"] + 10, 300
    page.mouse.move(x, y)
    next_button(page).press("Enter")
    arithmetic = page.locator(".hl-picture > .hl-unfold")
    of_the_stop = arithmetic.text_content()
    cell.evaluate("(cell, y) => scrollBy(0, cell.getBoundingClientRect().top + 10 - y)", y)
    page.wait_for_function("cell => cell.matches(':hover')", arg=cell.element_handle())
    assert arithmetic.text_content() == of_the_stop
    page.mouse.move(x + 2, y)
    expect(arithmetic).to_contain_text("Weight: The (query) looks at The (key)")
    page.keyboard.press("Escape")


@pytest.mark.slow
def test_every_rung_can_be_followed_to_the_end(page: Any) -> None:
    page.emulate_media(reduced_motion="reduce")
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    say(page, "What is in a name?")
    for rung in range(1, 12):
        open_rung(page, rung)
        page.get_by_role("button", name="Follow one number").click()
        stops = 1
        while next_button(page).is_enabled():
            assert shown(page), (rung, stops)
            next_button(page).click()
            stops += 1
        said = page.locator(".hl-play [role=status]")
        expect(said).to_have_text(re.compile(f"^{stops} / {stops} "))
        assert stops >= 4 and not re.search("undefined|NaN|null", str(said.text_content())), rung
        expect(page.locator(".hl-flight b")).to_be_in_viewport()
    assert errors == []


@pytest.mark.slow
def test_the_bigram_model_s_number_ends_as_the_loss_of_the_sentence(page: Any) -> None:
    page.emulate_media(reduced_motion="reduce")
    say(page, "ROMEO: the oh")
    open_rung(page, 3)
    play = page.get_by_role("button", name="Follow one number, picture by picture")
    play.click()
    said = page.locator(".hl-play [role=status]")
    expect(said).to_contain_text("1 / 4 “e” follows “h” in your sentence.")
    next_button(page).click()
    p = re.search(r"probability is (0\.\d+)", str(said.text_content()))
    assert p
    assert abs(float(shown(page)) - float(p[1])) <= 0.005 + 1e-9
    next_button(page).click()
    assert abs(float(shown(page)) + math.log(float(p[1]))) <= 0.01
    next_button(page).click()
    loss = re.search(r"= (\d\.\d+), is the loss", str(page.locator(".hl-lesson").text_content()))
    assert loss and shown(page) == loss[1]
    page.get_by_role("slider", name="the table after step").press("Home")  # the untrained table has other numbers
    expect(page.locator(".hl-play")).to_be_hidden()
    say(page, "Привет")  # no character of the table
    expect(page.locator(".hl-play")).to_be_hidden()
