"""The slider over training, whose steps may take long to load."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers.gate import PATIENCE
from helpers.page import expect_drawn, text, write, write_button
from helpers.server import Server, save_tiny
from model import load
from model.checkpoint.write import write_snapshot

STEPS = (10, 20, 40)


@pytest.mark.slow
def test_the_slider_waits_for_a_training_step_that_loads_slowly(
    browser: Any, launch: Callable[..., Server], tmp_path: Path
) -> None:
    save_tiny(tmp_path / "tiny", n_layer=3, n_head=4)
    for step in STEPS:
        early = load(save_tiny(tmp_path / f"at-{step}", seed=step, n_layer=3, n_head=4))
        write_snapshot(tmp_path / "tiny", step, early.config, early.gpt.state_dict())
    server = launch(tmp_path / "tiny")
    snapshots, loaded = server.services.snapshots, {step: threading.Event() for step in STEPS}
    loaded[40].set()
    load_now = snapshots.load

    def load_later(name: str, step: int) -> Any:
        assert loaded[step].wait(PATIENCE)  # the page reads the text with every step, too, while it is idle
        return load_now(name, step)

    snapshots.load = load_later  # type: ignore[method-assign]
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(server.url)
    expect_drawn(page)
    slider, title = page.get_by_role("slider", name="Training step"), page.locator(".hs-training b")
    expect(title).to_have_text("Training step 40")
    with page.expect_response("**/look/snapshot"):
        slider.fill("0")
        expect(title).to_have_text("Training step 10, loading …")
        page.get_by_role("button", name="0·2,").click()
        expect(slider).to_have_value("0")
        loaded[10].set()
    expect(title).to_have_text("Training step 10")

    with page.expect_response("**/look/snapshot"):
        slider.fill("1")
        expect(title).to_have_text("Training step 20, loading …")
        write(page, "now is the winter")
        expect(text(page)).to_contain_text("now is the winter")
        expect(write_button(page)).to_be_visible()
        expect(title).to_have_text("Training step 40")
        loaded[20].set()
    expect_drawn(page)
    expect(title).to_have_text("Training step 40")  # the text written in the meantime stays
