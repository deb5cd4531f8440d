"""Drawing the next token on rung 10: the settings, a thousand draws, and the text that is read again."""

import re
from typing import Any

from playwright.sync_api import expect

from helpers.learn_page import number, open_rung, say, settle, table


def drawn(page: Any) -> list[float]:
    cells = table(page, "The next token").locator("tbody td:nth-of-type(4)").all_text_contents()
    return [number(text) if text else 0.0 for text in cells]


def test_the_next_token_is_drawn_and_read(page: Any) -> None:
    open_rung(page, 10)
    say(page, "To be or")
    settle(page, 10)
    said = page.get_by_text(re.compile(r"^Drawn \(seed \d+\)"))
    expect(said).to_contain_text("seed 1")
    drawn_with = table(page, "The next token").locator("th", has_text="drawn with")
    expect(drawn_with).to_be_hidden()  # still the probabilities of the model
    page.get_by_role("button", name="Draw 1,000 times").click()
    expect(page.get_by_text("The first of 1,000 draws (seed 2)")).to_be_visible()
    assert sum(drawn(page)) == 1_000
    page.locator(".hl-lesson").get_by_label("top-k (0 = all)").fill("1")
    expect(page.get_by_text("1 token can be drawn.")).to_be_visible()
    expect(drawn_with).to_be_visible()
    assert sorted(drawn(page))[-1] == 1_000
    best = table(page, "The next token").locator("tbody th").first.text_content()
    page.get_by_role("button", name="Append it and read again").click()
    expect(page.get_by_label("Your sentence", exact=True)).to_have_value(f"To be or{best.replace('·', ' ')}")
    expect(said).to_contain_text("seed 3")
    expect(page.get_by_role("heading", name="Draw the next token")).to_be_in_viewport()
    page.get_by_role("group", name="The token to follow").get_by_role("button").nth(2).click()
    expect(page.get_by_role("button", name="Append it and read again")).to_be_disabled()
    say(page, "I")  # shorter than the place of the token that was followed
    settle(page, 10)
    expect(page.locator(".hl-problem").first).to_be_empty()
    page.get_by_text("The code that draws").click()
    expect(page.get_by_label("Source of keep_top_p")).to_be_visible()
