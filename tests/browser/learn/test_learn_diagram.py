"""The diagram of a whole GPT, whose parts link to the places that show them."""

from typing import Any

import pytest
from playwright.sync_api import expect

from helpers.learn_page import open_rung, settle, table

PARTS = ["embedding", "norm", "attention", "+", "norm", "MLP", "+", "norm", "unembedding", "softmax"]


def part(page: Any, title: str) -> Any:
    return page.locator(f".hl-diagram .hl-part[aria-label^='{title}']:visible")


def shown(page: Any) -> Any:
    return page.locator(".hl-diagram .hl-part[aria-current=step]:visible text")


def test_a_part_leads_to_its_tables_and_a_table_points_out_its_part(page: Any) -> None:
    page.emulate_media(reduced_motion="reduce")
    open_rung(page, 9)
    assert page.locator(".hl-diagram text:visible:not(.hl-frame-name)").all_text_contents() == PARTS
    expect(shown(page)).to_have_text("norm")
    part(page, "MLP").click()
    expect(shown(page)).to_have_text("MLP")
    expect(table(page, "MLP 5 adds")).to_be_in_viewport()
    cells = table(page, "x + attention").locator("td")
    cells.nth(0).scroll_into_view_if_needed()
    page.evaluate("new Promise((after) => requestAnimationFrame(() => requestAnimationFrame(after)))")
    cells.nth(1).hover()
    said = page.locator(".hl-diagram").get_by_role("status")
    expect(said).to_have_text("The output of attention is added to the residual stream")
    part(page, "Unembedding").click()  # which this rung does not show
    settle(page, 10)
    expect(page.get_by_role("heading", name="The whole model")).to_be_visible()


@pytest.mark.slow
def test_the_part_in_view_is_pointed_out_and_the_layers_are_counted(page: Any) -> None:
    page.emulate_media(reduced_motion="reduce")
    open_rung(page, 10)
    expect(page.locator(".hl-frame-name:visible")).to_have_text("× 3 layers")
    page.evaluate("scrollTo(0, 0)")  # the whole figure opens at what its step is about
    expect(shown(page)).to_have_text("embedding")
    for title, stage in [
        ("Softmax", "softmax"),
        ("Attention", "attention"),
        ("MLP", "MLP"),
        ("Embedding", "embedding"),
    ]:
        part(page, title).focus()
        page.keyboard.press("Enter")
        expect(shown(page)).to_have_text(stage)
    page.get_by_role("slider", name="After GELU").click(position={"x": 20, "y": 5})
    expect(shown(page)).to_have_text("MLP")
