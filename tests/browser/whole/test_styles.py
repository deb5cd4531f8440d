"""The styles of one tab leave the others as they are."""

from typing import Any

import pytest
from playwright.sync_api import expect

from helpers.page import show_page

pytestmark = pytest.mark.gradio

BUTTONS = """() => [...document.querySelectorAll('.hs-page button')].map((button) => {
  const { width, height } = button.getBoundingClientRect();
  const { opacity, padding } = getComputedStyle(button);
  return [button.textContent, width, height, opacity, padding];
})"""


def test_looks_buttons_keep_their_size_after_a_visit_to_learn_and_train(page: Any) -> None:
    before = page.evaluate(BUTTONS)
    show_page(page, "Learn")
    expect(page.locator(".hl-lesson h2").first).to_be_visible()
    show_page(page, "Train")
    expect(page.get_by_label("The text to learn from")).to_be_visible()
    show_page(page, "Look")
    assert len(before) > 50 and page.evaluate(BUTTONS) == before
