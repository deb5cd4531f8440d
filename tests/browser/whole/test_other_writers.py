"""Texts that are not written by a local engine: in Gradio's events, as on ZeroGPU, or by another engine."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers.gate import Gate, News
from helpers.page import change_settings, check_number, expect_drawn, stop_button, text, write, write_button
from helpers.server import Server
from web.serving import zero_gpu

pytestmark = pytest.mark.gradio


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """Lets one batch of events through for each release; each is one token."""
    gate, write = Gate(News()), zero_gpu.write

    def gated(*arguments: Any) -> Iterator[Any]:
        for events in write(*arguments):
            gate.pass_through(lambda: False)
            yield events

    monkeypatch.setattr(zero_gpu, "write", gated)
    monkeypatch.setattr(zero_gpu, "GATHER_SECONDS", 0)
    yield gate
    gate.release(10_000)


@pytest.mark.slow
def test_gradio_events_carry_the_texts(
    browser: Any, launch: Callable[..., Server], checkpoints: Path, gate: Gate
) -> None:
    server = launch(checkpoints / "tiny", zero_gpu=True, train=False)
    loaded = server.served.models["tiny"]
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(server.url)
    expect_drawn(page)
    change_settings(page, seed=1, length=20)
    write(page, "But soft")
    gate.release(4)
    expect(text(page)).to_have_text(re.compile("^But soft.{4}$", re.DOTALL))
    expect(stop_button(page)).to_be_visible()
    with page.expect_response(re.compile("/stop$")):
        stop_button(page).click()
    gate.release()
    expect(page.get_by_text("stopped after 4 tokens")).to_be_visible()
    check_number(page, loaded)
    gate.release(1_000)
    write(page, "But hard")
    steps = loaded.generate("But hard", 20, temperature=0.8, seed=1)
    expect(text(page)).to_have_text("But hard" + "".join(step.text for step in steps))
    expect(write_button(page)).to_be_visible()
    check_number(page, loaded)
    # Two texts at the same time, told apart.
    page.get_by_role("button", name="Write another").click()
    expect(page.get_by_role("group", name="Text B", exact=True)).to_have_text(re.compile("^But hard.{20}$", re.DOTALL))
    # A refusal is shown in place of the text.
    write(page, "é")
    expect(page.get_by_text("has never seen")).to_be_visible()
    expect(write_button(page)).to_be_visible()


@pytest.mark.slow
def test_another_engine_is_named(
    browser: Any, server: Server, launch: Callable[..., Server], checkpoints: Path
) -> None:
    looking = launch(checkpoints / "tiny", engine_urls=(f"{server.url}/v1",))
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(looking.url)
    expect_drawn(page)
    note = page.get_by_text("Another engine writes this text")
    expect(note).to_be_hidden()  # the opening was written here
    change_settings(page, seed=1, length=20)
    write(page, "But soft")
    steps = looking.served.models["tiny"].generate("But soft", 20, temperature=0.8, seed=1)
    expect(text(page)).to_have_text("But soft" + "".join(step.text for step in steps))
    expect(note).to_be_visible()
    check_number(page, looking.served.models["tiny"])
    button = page.get_by_role("button", name="Model", exact=True)
    expect(button).to_have_attribute("title", re.compile("another engine writes; this model reads along"))
    change_settings(page, top_k=5)
    write(page, "But soft")
    expect(page.get_by_text("top_k is not available for tiny")).to_be_visible()
