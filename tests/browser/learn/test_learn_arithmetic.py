"""The arithmetic of the Learn tab in Chromium: correct sums, highlighting, and another model on every rung."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers import also_slow
from helpers.learn_page import open_rung, settle, table, unfolded
from helpers.server import Server

pytestmark = pytest.mark.gradio


def click(page: Any, name: str, row: int, column: int) -> None:
    table(page, name).locator("tbody tr").nth(row).locator("td button").nth(column).click()


def choose_model(page: Any, name: str) -> None:
    page.get_by_role("button", name="Model", exact=True).click()
    page.get_by_role("option", name=name).click()


@pytest.mark.parametrize("rung", [10, *also_slow(*range(1, 10))])
def test_another_model_can_be_chosen_on_every_rung(page: Any, rung: int) -> None:
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    open_rung(page, rung)
    for name in ("other", "tiny"):
        choose_model(page, name)
        settle(page, rung)
        expect(page.locator(".hl-sticky")).to_be_visible()
        expect(page.locator(".hl-problem").first).to_be_empty()
        expect(page).to_have_url(re.compile(rf"\?model={name}#learn/{rung}$"))
    if rung == 10:
        expect(page.get_by_text("tiny, chosen at the top: 3 layers × 4 heads of 8 numbers")).to_be_visible()
    assert errors == []


@pytest.mark.slow
def test_on_a_phone_the_arithmetic_covers_nothing_before_a_click(browser: Any, server: Server) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(f"{server.url}/#learn/5")
    settle(page, 5)
    panel = page.locator(".hl-unfold")
    position = "e => getComputedStyle(e).position"
    assert panel.evaluate(position) == "static"
    click(page, "Attention scores", 1, 2)
    assert panel.evaluate(position) == "sticky"
    expect(panel).to_be_in_viewport()
    assert len(unfolded(page)[0]) == 3
    page.get_by_role("button", name="Close", exact=True).click()
    assert panel.evaluate(position) == "static"
