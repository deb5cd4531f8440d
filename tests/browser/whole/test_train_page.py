"""The Train tab: a GPT is trained on a pasted text, watched, opened, stopped and forgotten."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from helpers.page import expect_model, expect_status, show_page, text, write
from helpers.server import Server
from helpers.training import TRAINING_TEXT
from helpers.training.visitors import learn_nothing, quick_server

pytestmark = pytest.mark.gradio


@pytest.fixture(scope="module")
def server(checkpoints: Path) -> Iterator[Server]:
    yield from quick_server(checkpoints)


def begin(page: Any, size: str) -> Any:
    show_page(page, "Train")
    page.locator(".ht-change").evaluate("details => (details.open = true)")
    page.get_by_label("The text to learn from").fill(TRAINING_TEXT)
    page.get_by_role("radio", name=size).check()
    page.get_by_role("button", name="Train", exact=True).last.click()
    return page.get_by_role("region", name="Training", exact=True)


@pytest.mark.slow
def test_a_gpt_is_trained_watched_and_opened(page: Any) -> None:
    show_page(page, "Train")
    page.locator(".ht-change").evaluate("details => (details.open = true)")
    page.get_by_label("The text to learn from").fill("too short")
    expect(page.get_by_text("At least 1,000 characters are needed")).to_be_visible()
    expect(page.get_by_role("button", name="Train", exact=True).last).to_be_disabled()
    expect(page.get_by_text("Choose a text first")).to_be_visible()
    page.get_by_label("The text to learn from").fill("long enough, but not for long. " * 50)
    page.get_by_role("radio", name="Small").check()
    expect(page.get_by_text("This is short for a small model, which needs about 2,000 characters")).to_be_visible()
    page.get_by_role("button", name="Use a sample text").click()
    expect(page.get_by_text("This is short")).to_be_hidden()
    expect(page.get_by_text(re.compile(r"^\d{3},\d{3} characters, \d\d,\d{3} held out"))).to_be_visible()
    expect(page.get_by_role("button", name="Train", exact=True).last).to_be_enabled()
    training = begin(page, "Small")
    heading = training.get_by_role("heading")
    expect(heading).to_have_text(re.compile("^Trained: your-gpt-....$"), timeout=90_000)
    name = heading.text_content().removeprefix("Trained: ")
    expect(training).to_contain_text("the right character gets a chance of")
    expect(training).not_to_contain_text("nats")
    expect(page.get_by_role("region", name="Loss")).to_contain_text("letter pairs")
    expect(page.get_by_role("region", name="What it writes").locator(".ht-text").last).not_to_be_empty()
    heads = page.get_by_role("region", name="Heads", exact=True)
    expect(heads.get_by_role("button")).to_have_count(4)
    heads.get_by_role("slider", name="Snapshot").fill("0")
    expect(heads).to_contain_text("before the first step")
    sample = page.get_by_role("region", name="What it writes")
    expect(sample.get_by_role("heading", name="Before the first step")).to_be_visible()
    # It is still there after a reload.
    page.reload()
    expect(heading).to_have_text(f"Trained: {name}")
    page.get_by_role("button", name="Write with it").click()
    expect_model(page, name, "2 layers")
    expect_status(page, re.compile("tokens written$"))  # without another click
    expect(page.get_by_role("slider", name="Training step")).to_be_visible()
    expect(text(page)).not_to_be_empty()
    with page.expect_download() as download:
        show_page(page, "Train")
        page.get_by_role("link", name="Download").click()
    assert download.value.suggested_filename == f"{name}.zip"
    page.get_by_role("button", name="Delete and train another").click()
    page.get_by_role("button", name="Keep it").click()
    expect(heading).to_have_text(f"Trained: {name}")
    page.get_by_role("button", name="Delete and train another").click()
    page.get_by_role("button", name="Yes, delete my model").click()
    expect(page.get_by_role("heading", name="Train your own GPT")).to_be_visible()


@pytest.mark.slow
def test_stop_keeps_the_trained_model_and_cancel_keeps_nothing(page: Any) -> None:
    training = begin(page, "Large")
    expect(training.get_by_role("status")).to_contain_text(re.compile("left$"), timeout=60_000)
    page.get_by_role("button", name="Stop and keep it").click()
    expect(training.get_by_role("heading")).to_have_text(re.compile("^Trained"), timeout=60_000)
    expect(training).to_contain_text("Stopped early")
    page.get_by_role("button", name="Delete and train another").click()
    page.get_by_role("button", name="Yes, delete my model").click()
    begin(page, "Large")
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("heading", name="Train your own GPT")).to_be_visible()


@pytest.mark.slow
def test_two_runs_are_compared_and_the_model_answers_to_its_token(page: Any) -> None:
    training = begin(page, "Small")
    heading = training.get_by_role("heading")
    expect(heading).to_have_text(re.compile("^Trained: "), timeout=90_000)
    first = heading.text_content().removeprefix("Trained: ")
    training.get_by_text("Use it from a program").click()
    call = training.get_by_label("How a program calls the model").text_content()
    token, url = re.search(r"Headscope-Model-Token: ([\w-]{32})", call)[1], re.search(r"http\S+", call)[0]
    body = {"model": first, "prompt": "the", "max_tokens": 2}
    answer = httpx.post(url, json=body, headers={"Headscope-Model-Token": token}, timeout=60)
    assert answer.json()["usage"]["completion_tokens"] == 2
    loss = page.get_by_role("region", name="Loss")
    expect(loss.get_by_text("the run before")).to_have_count(0)
    ended = loss.locator(".ht-now b").text_content()
    page.get_by_role("button", name="Delete and train another").click()
    page.get_by_role("button", name="Yes, delete my model").click()
    training = begin(page, "Small")
    expect(training.get_by_role("heading")).to_have_text(re.compile("^Trained: "), timeout=90_000)
    compared = loss.locator(".ht-compared")
    expect(compared).to_contain_text(f"the run before ({first}, ")
    expect(compared).to_contain_text(f"ended at {ended}")
    expect(loss.locator("polyline.ht-earlier")).to_have_count(1)
    page.reload()
    expect(compared).to_contain_text(f"the run before ({first}, ")
    page.get_by_role("button", name="Remove its curve").click()
    expect(compared).to_be_hidden()
    expect(loss.locator("polyline.ht-earlier")).to_have_count(0)


@pytest.mark.slow
def test_a_visitor_who_trains_is_told_that_the_server_ends(
    page: Any, server: Server, checkpoints: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn_nothing(monkeypatch, checkpoints / "tiny")
    training = begin(page, "Large")
    expect(training.get_by_role("heading")).to_have_text("Learning")
    warning = page.get_by_text("The server is about to restart, and your training ends with it.")
    expect(warning).to_be_hidden()
    monkeypatch.setattr(server.services.engines, "closed", True)
    show_page(page, "Look")
    expect(warning).to_be_visible()
    monkeypatch.undo()
    show_page(page, "Train")
    page.get_by_role("button", name="Cancel").click()
    expect(warning).to_be_hidden()


@pytest.mark.slow
def test_an_owner_lends_the_model_and_withdraws_it(page: Any, browser: Any) -> None:
    training = begin(page, "Small")
    heading = training.get_by_role("heading")
    expect(heading).to_have_text(re.compile("^Trained: "), timeout=90_000)
    name = heading.text_content().removeprefix("Trained: ")
    link = training.get_by_label("The link that lends the model")
    training.get_by_text("Lend it to a class").click()
    expect(training.get_by_text("a model may repeat passages of its text, word for word")).to_be_visible()
    expect(link).to_be_hidden()
    training.get_by_role("button", name="Lend it").click()
    expect(link).to_have_text(re.compile(rf"/\?model={name}#lent=[\w-]{{32}}$"))
    address = link.text_content()
    # Another visitor opens the link, and a second time without its secret.
    pupil = browser.new_page()
    pupil.goto(address)
    expect_model(pupil, name, "layer")
    assert "lent" not in pupil.url
    pupil.reload()
    expect_model(pupil, name, "layer")
    expect(pupil.get_by_role("slider", name="Training step")).to_have_count(0)
    write(pupil, "the cat")
    expect_status(pupil, re.compile("tokens written$"))
    # The owner still has the link after a reload, and withdraws it.
    page.reload()
    training.get_by_text("Lend it to a class").click()
    expect(link).to_have_text(address)
    training.get_by_role("button", name="Withdraw the link").click()
    expect(training.get_by_role("button", name="Lend it")).to_be_visible()
    expect(link).to_be_hidden()
    late = browser.new_page()
    late.goto(address)
    expect(late.get_by_text("This link lends no model: whoever made it has ended the loan")).to_be_visible()
    pupil.goto(address)
    expect(pupil.get_by_text("This link lends no model: whoever made it has ended the loan")).to_be_visible()
    expect(pupil.locator(".hs-model-button")).to_have_text("tiny")
    page.get_by_role("button", name="Delete and train another").click()
    page.get_by_role("button", name="Yes, delete my model").click()
