"""Characters that a vocabulary has only as bytes stand in the text as characters, and each token can be pointed at."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers.models import tiny_bpe, tiny_model
from helpers.page import expect_drawn, text, write
from helpers.server import Server
from helpers.tabs import Profiles, opened_page
from model.tokenizer import text_tokens

PROMPT = "\u0416\u0438 “a” \U0001f600!"


@pytest.fixture
def server(launch: Callable[..., Server], tmp_path: Path) -> Server:
    loaded = tiny_model(0, tiny_bpe(300), n_embd=32, context_length=64)
    loaded.save(tmp_path / "bytes")
    return launch(tmp_path / "bytes")


@pytest.mark.slow
def test_a_character_of_several_tokens_is_shown_once_it_is_complete(browser: Profiles, server: Server) -> None:
    page, complaints = opened_page(browser, server.url)
    expect_drawn(page)
    tokenizer = server.served.models["bytes"].tokenizer
    ids = tokenizer.encode(PROMPT)
    tokens = text_tokens(tokenizer, ids)
    write(page, PROMPT)
    page.wait_for_function("location.search")
    shown = text(page).text_content()
    assert shown.startswith(PROMPT)
    spans = page.locator(".hs-written .hs-token")
    for i, token in enumerate(tokens):
        assert spans.nth(i).text_content() == token.shown
        box = spans.nth(i).bounding_box()
        assert box and box["width"] > 0
        assert ("hs-part" in spans.nth(i).get_attribute("class")) == (token.shown == "")
    part = next(i for i, token in enumerate(tokens) if i and not token.shown)
    box = spans.nth(part).bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(spans.nth(part)).to_have_class(re.compile("hs-query|hs-chosen"))
    page.get_by_role("button", name="Show text as a table").click()
    cells = page.get_by_role("table", name="Tokens and their probabilities").locator("tbody tr td:nth-child(2)")
    expected: list[Any] = [
        f"“{token.text}”" + (f" ({token.byte_text})" if token.byte_text not in ("", token.text) else "")
        for token in tokens
    ]
    assert [each.replace("·", " ") for each in cells.all_text_contents()[: len(tokens)]] == expected
    # The same text from a link.
    page.goto(page.url)
    page.wait_for_function("document.querySelector('.hs-workspace').dataset.state === 'linked'")
    expect_drawn(page)
    assert text(page).text_content() == shown
    complaints.check()
