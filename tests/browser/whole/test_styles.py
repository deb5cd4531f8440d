"""The styles of one tab leave the others as they are."""

from typing import Any

import pytest
from playwright.sync_api import expect

from helpers.page import show_page

pytestmark = pytest.mark.gradio

SIZES = """() => {
  globalThis.sizes ??= new Map(); // of each button, when it was first seen
  const buttons = [...document.querySelectorAll('.hs-page .hs-small')];
  return buttons.map((button) => {
    const { minHeight, padding } = getComputedStyle(button);
    const size = [minHeight, padding, button.getBoundingClientRect().height].join();
    if (!sizes.has(button)) sizes.set(button, size);
    return [button.textContent, sizes.get(button), size];
  });
}"""


@pytest.mark.slow
def test_looks_buttons_keep_their_size_after_a_visit_to_learn_and_train(page: Any) -> None:
    assert len(page.evaluate(SIZES)) > 20
    show_page(page, "Learn")
    expect(page.locator(".hl-lesson h2").first).to_be_visible()
    show_page(page, "Train")
    expect(page.get_by_role("heading", name="Train your own GPT")).to_be_visible()
    show_page(page, "Look")
    assert not [(name, before, after) for name, before, after in page.evaluate(SIZES) if before != after]
