"""Rung 11 in Chromium, on the shipped model whose training was kept."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers.files import ROOT
from helpers.learn_page import move, open_rung, settle, stamps
from helpers.server import Server

pytestmark = pytest.mark.gradio

STEPS_BEFORE = 7  # the place of step 536 on the slider


@pytest.mark.slow
def test_the_induction_head_forms_and_needs_the_head_that_feeds_it(browser: Any, launch: Callable[..., Server]) -> None:
    server = launch(ROOT / "checkpoints" / "two-layer-steps")
    page = browser.new_page()
    page.goto(f"{server.url}/#learn/11")
    settle(page, 11)
    said = page.get_by_text("weight to what followed last time")
    expect(said).to_contain_text("after step 3,000: on average, the induction head (1·2) gives 0.59")
    expect(page.locator(".hl-lesson").get_by_label("Matrix of head 2 of layer 1")).to_be_visible()
    expect(page.locator(".hl-lesson").get_by_label("Matrix of head 2 of layer 0")).to_be_visible()
    assert max(stamps(page)) < 1e-4
    page.get_by_role("button", name="previous-token head (0·2)", exact=True).click()
    expect(page.get_by_text("the loss of the repetition rises by 2.62")).to_contain_text("goes from 0.59 to 0.04")
    expect(said).to_contain_text("after step 3,000, without the previous-token head (0·2): on average, the induction")
    expect(said).to_contain_text("head (1·2) gives 0.04")
    expect(page.get_by_text("The phrase suffers too, from 3.02 to 4.21")).to_be_visible()
    page.get_by_role("button", name="no head", exact=True).click()
    expect(page.get_by_text("All heads are at work.")).to_be_visible()
    move(page, "step of the training", STEPS_BEFORE, "536")
    expect(said).to_contain_text("after step 536: on average, the induction head (1·2) gives 0.05")
    open_rung(page, 10)
    open_rung(page, 11)
    expect(said).to_contain_text("after step 536")
