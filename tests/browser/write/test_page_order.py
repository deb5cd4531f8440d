"""Responses that come late, early or out of order: the page shows the last request's result completely."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers.page import check_number, choose_model, expect_model, stop, text, write, write_button, write_slowly
from helpers.server import Server


@pytest.mark.slow
def test_weights_that_overtake_their_tokens_are_drawn(page: Any, server: Server, slow: Any) -> None:
    choose_model(page, "slow")
    expect(text(page)).to_have_text(re.compile("^ROMEO"))
    held: list[Any] = []
    # The first request is held in the browser; later ones pass.
    page.route("**/look/*/heads/**", lambda route: route.continue_() if held else held.append(route))
    with page.expect_request("**/look/*/heads/**"):
        write(page, "ab")
        slow.gate.release()
    for _ in range(5):
        slow.gate.release()
    expect(page.get_by_text(re.compile("^writing 6 of"))).to_be_visible()
    held[0].continue_()  # the answer has the current rows, while the browser has the older tokens
    expect(text(page)).to_have_text(re.compile("^ab.{6}$", re.DOTALL))
    box = page.locator(".hs-board").bounding_box()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + box["height"] - 3)
    expect(page.locator(".hs-readout")).to_have_text(re.compile(" 6, query"))
    check_number(page, slow)
    stop(page, server)
    expect(page.get_by_text(re.compile(r"^stopped after \d"))).to_be_visible()


@pytest.mark.slow
def test_another_model_takes_the_place_of_a_text_being_written(page: Any, server: Server, slow: Any) -> None:
    write_slowly(page, slow, 3)
    (generation,) = server.running
    choose_model(page, "other")
    assert generation.stopped.wait(timeout=10)
    slow.gate.release()
    expect(write_button(page)).to_be_visible()
    expect_model(page, "other", "2 layers × 2 heads")
    expect(text(page)).to_have_text(re.compile("^ROMEO"))
    expect(page.get_by_role("button", name=re.compile(r"^\d+·\d+,"))).to_have_count(4)
    check_number(page, server.services.served.models["other"])


def test_a_model_that_is_not_there_is_named_above_the_text(
    browser: Any, launch: Callable[..., Server], checkpoints: Path
) -> None:
    server = launch(checkpoints / "broken")
    page = browser.new_page()
    page.goto(server.url)
    expect(page.locator(".hs-notices[role=status]")).to_have_text(re.compile("broken cannot be served"))
    write(page, "ab")
    said = page.locator(".hs-notices").get_by_text(re.compile("broken cannot be served.*found no file"))
    expect(said).to_have_count(2)  # in place of a text, and below the prompt
    assert str(checkpoints) not in page.content()
