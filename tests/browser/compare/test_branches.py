"""Another continuation next to the first: on the page, and as an event that any client can send."""

import math
import re
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers.page import (
    change_settings,
    check_number,
    choose_model,
    expect_drawn,
    is_shown_as,
    keep,
    readout,
    stop_button,
    write,
    write_button,
    write_slowly,
)
from helpers.server import CONTEXT, Server
from model import LoadedModel
from model.lens.text_pass import TextPass


def side(page: Any, name: str | re.Pattern[str]) -> Any:
    return page.get_by_role("region", name=name)


def text(page: Any, letter: str = "") -> Any:
    """The text shown alone, or the text of side A or B."""
    return page.get_by_role("group", name=f"Text {letter}".strip(), exact=True)


def opened_text(page: Any) -> str:
    # Located and read in one call: after a model is chosen, its text replaces another.
    is_opening = "() => [...document.querySelectorAll('.hs-text')].map((e) => e.textContent).find((t) => t.length > 25)"
    found: str = page.wait_for_function(is_opening).json_value()
    assert found.startswith("ROMEO:")
    return found


def branch_at(part: Any, page: Any, step: int, row: int = 0) -> str:
    """Click an alternative to the token at ``step`` and return the alternative's text."""
    part.get_by_label("Step", exact=True).fill(str(step))
    part.locator(".hs-bars table[aria-busy=false]").filter(has_text=f"Token {step}, after").wait_for()
    button = part.locator(".hs-alternative:enabled").nth(row)
    token = re.search("“(.+)”", button.get_attribute("aria-label"))
    button.click()
    assert token
    return token[1].replace("·", " ").replace("↵", "\n")


def expected_text(loaded: LoadedModel, prompt: str, length: int = 40, seed: int = 1) -> str:
    steps = loaded.generate(prompt, length, temperature=0.8, seed=seed)
    return prompt + "".join(step.text for step in steps)


def test_both_texts_stay_side_by_side(page: Any, server: Server) -> None:
    loaded = server.services.served.models["tiny"]
    change_settings(page, seed=1)
    first = opened_text(page)
    token = branch_at(page, page, 30)
    left, right = side(page, "First text"), side(page, "Branch at token 30: ")
    second = expected_text(loaded, first[:30] + token)
    expect(text(left, "A")).to_have_text(first)
    expect(text(right, "B")).to_have_text(second)
    boxes = [part.bounding_box() for part in (left, right)]
    assert boxes[0]["y"] == boxes[1]["y"] and boxes[0]["x"] < boxes[1]["x"]
    # The common beginning is grey, and the point where they diverge is marked.
    for part in (left, right):
        expect(part.locator(".hs-shared")).to_have_count(30)
        assert part.locator(".hs-divergence").get_attribute("data-i") == "30"
    # The same head is open on both sides, each with its own numbers.
    page.get_by_label("Head of both sides").select_option(label="2·1")
    for letter, ids in (("A", first), ("B", second)):
        panel = side(page, f"Attention weights {letter}, head 1 of layer 2")
        expect(panel.locator(".hs-number")).not_to_be_empty()
        query, key, number = readout(panel)
        attention = loaded.trace(ids[:CONTEXT]).attention
        assert is_shown_as(float(attention[2, 1, query, key]), number)
    # The branch knows the probabilities of the shared tokens.
    logprob = TextPass(loaded.gpt, loaded.parse_prompt(first[:30])).logprobs()[19]
    page.get_by_label("Step", exact=True).fill("20")
    percent = 100 * math.exp(logprob)
    probability = "under 0.1%" if percent < 0.095 else f"{percent:.{1 if percent < 9.95 else 0}f}%"
    expect(page.locator(".hs-pair-step")).to_have_text(re.compile(f"A.*probability {probability}.*B.*{probability}"))


@pytest.mark.slow
def test_a_branch_of_a_kept_text(page: Any, server: Server) -> None:
    loaded = server.services.served.models["tiny"]
    change_settings(page, seed=1)
    first = opened_text(page)
    token = branch_at(page, page, 30)
    second = expected_text(loaded, first[:30] + token)
    expect(text(page, "B")).to_have_text(second)
    expect(write_button(page)).to_be_visible()
    keep(page, "B")
    expect(text(page)).to_have_text(second)
    expect_drawn(page)
    other = branch_at(page, page, 40, row=1)
    third = expected_text(loaded, second[:40] + other)
    expect(text(page, "B")).to_have_text(third)
    expect(text(page, "A")).to_have_text(second)
    page.get_by_role("button", name="Back to the text").click()
    expect(text(page)).to_have_text(second)
    expect(text(page, "B")).to_have_count(0)
    check_number(page, loaded)
    write(page, "now ")
    expect(text(page)).to_have_text(expected_text(loaded, "now "))


@pytest.mark.slow
def test_a_new_text_closes_the_branch(page: Any, server: Server) -> None:
    change_settings(page, seed=1)
    branch_at(page, page, 30)
    expect(text(page, "B")).to_be_visible()
    expect(write_button(page)).to_be_visible()
    write(page, "now ")
    expect(text(page, "B")).to_have_count(0)
    expect(text(page)).to_have_text(expected_text(server.services.served.models["tiny"], "now "))


@pytest.mark.slow
def test_both_may_be_written_at_once_and_are_stopped_together(page: Any, server: Server, slow: Any) -> None:
    write_slowly(page, slow, 4)
    branch_at(page, page, 4)
    expect(text(page, "B")).to_have_text(re.compile("^ab.{3}$", re.DOTALL))
    generations = list(server.running)
    assert len(generations) == 2
    stop_button(page).click()
    for generation in generations:
        assert generation.stopped.wait(timeout=10)
    slow.gate.release(4)
    expect(write_button(page)).to_be_visible()
    expect(page.get_by_text("writing:")).to_have_count(0)


@pytest.mark.slow
def test_a_closed_branch_is_written_no_further(page: Any, server: Server, slow: Any) -> None:
    choose_model(page, "slow")
    page.wait_for_url("**model=slow**")  # the text on the screen is that of this model
    first = opened_text(page)
    branch_at(page, page, 10)
    slow.gate.release(2)
    expect(text(page, "B")).to_have_text(re.compile("^.{13}$", re.DOTALL))
    # The clock follows the text being written, and the other text is at the same step.
    expect(page.locator(".hs-pair-step")).to_have_text(re.compile("A.*token 12.*B.*token 12"))
    (generation,) = server.running
    page.get_by_role("button", name="Back to the text").click()
    assert generation.stopped.wait(timeout=10)
    slow.gate.release(2)
    expect(write_button(page)).to_be_visible()
    expect(text(page, "B")).to_have_count(0)
    expect(text(page)).to_have_text(first)


@pytest.mark.slow
def test_two_texts_are_stacked_on_a_phone(browser: Any, server: Server) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(server.url)
    expect_drawn(page)
    write(page, "ROMEO:")
    expect(page.get_by_text("tokens written")).to_be_visible()
    branch_at(page, page, 30)
    expect(page.get_by_role("button", name="Back to the text")).to_be_in_viewport()
    page.get_by_text("Both texts, token by token").click()
    left, right = side(page, "First text").bounding_box(), side(page, "Branch at token 30").bounding_box()
    assert left["x"] == right["x"] and right["y"] >= left["y"] + left["height"]
    expect(side(page, "Next token of both")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.slow
def test_there_is_no_branch_where_the_context_is_full(page: Any, server: Server) -> None:
    write(page, "a" * CONTEXT)
    expect(page.get_by_text("tokens is full")).to_be_visible()
    expect(page.locator(".hs-is-written")).to_have_count(1)
    expect(page.locator(".hs-alternative:enabled")).to_have_count(0)


@pytest.mark.slow
def test_another_text_next_to_the_first(page: Any, server: Server) -> None:
    loaded = server.services.served.models["tiny"]
    change_settings(page, seed=1)
    write(page, "now ")
    first = expected_text(loaded, "now ")
    expect(text(page)).to_have_text(first)
    page.get_by_role("button", name="Write another").click()
    right = side(page, re.compile(r"^Another text, seed \d+$"))
    expect(right).to_be_visible()
    seed = int(right.get_attribute("aria-label").split()[-1])
    second = expected_text(loaded, "now ", seed=seed)
    expect(text(page, "B")).to_have_text(second)
    assert seed != 1 and second != first
    expect(text(page, "A")).to_have_text(first)
    # If hardly any token is shared, the page says so and draws no difference.
    difference = page.get_by_role("region", name="Difference, B minus A")
    shared = next(i for i, (one, other) in enumerate(zip(first, second, strict=False)) if one != other)
    if shared < 0.1 * max(len(first), len(second)):  # the seed is any
        expect(difference).to_contain_text(f"two different texts: they share their first {shared} tokens")
        expect(difference.locator(".hs-board")).to_be_hidden()
    for letter in "AB":
        expect(page.get_by_role("region", name=re.compile(f"^Attention weights {letter},"))).to_be_visible()
    keep(page, "B")
    expect(text(page)).to_have_text(second)
