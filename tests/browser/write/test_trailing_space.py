"""A prompt that ends with a space is remarked upon where the vocabulary's words begin with one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers.files import ROOT
from helpers.page import choose_model, expect_drawn
from helpers.server import Server
from helpers.tabs import Profiles, opened_page


@pytest.mark.slow
def test_a_space_at_the_end_can_be_dropped(browser: Profiles, launch: Callable[..., Server], checkpoints: Path) -> None:
    server = launch(ROOT / "checkpoints" / "stories-bpe", checkpoints / "tiny")
    page, complaints = opened_page(browser, server.url)
    expect_drawn(page)
    prompt, hint = page.get_by_label("Prompt"), page.get_by_text("The prompt ends with a space")
    expect(hint).to_be_hidden()
    prompt.fill("Once upon a ")
    expect(hint).to_be_visible()
    choose_model(page, "tiny")
    expect(hint).to_be_hidden()
    choose_model(page, "stories-bpe")
    expect(hint).to_be_visible()
    asked: list[Any] = []
    page.on("request", lambda request: asked.append(request.post_data_json) if "/look/write" in request.url else None)
    page.get_by_role("button", name="Drop the space").click()
    expect(prompt).to_have_value("Once upon a")
    expect(prompt).to_be_focused()
    expect(hint).to_be_hidden()
    prompt.fill("Once upon a ")
    prompt.press("Enter")  # a visitor who means it may have it
    page.wait_for_function("location.search")
    assert asked[0]["prompt"] == "Once upon a "
    complaints.check()
