"""Another continuation beside the first: on the page, and as an event that anybody can send."""

import re
from typing import Any

from playwright.sync_api import expect

from helpers.page import (
    change_settings,
    choose_model,
    is_shown_as,
    readout,
    stop_button,
    write,
    write_button,
    write_slowly,
)
from helpers.server import CONTEXT, Server
from model import LoadedModel
from model.lens.residuals import Residuals


def side(page: Any, name: str) -> Any:
    return page.get_by_role("region", name=name)


def text(part: Any) -> Any:
    return part.get_by_role("group", name="Text", exact=True)


def opened_text(page: Any) -> str:
    # Looked for and taken at once: where a model was just chosen, its text takes the place of another.
    is_opening = "() => [...document.querySelectorAll('.hs-text')].map((e) => e.textContent).find((t) => t.length > 25)"
    found: str = page.wait_for_function(is_opening).json_value()
    assert found.startswith("ROMEO:")
    return found


def branch_at(part: Any, page: Any, step: int, row: int = 0) -> str:
    """Click an alternative to the token at ``step`` that can be branched to; its text."""
    part.get_by_label("Step", exact=True).fill(str(step))
    part.locator(".hs-bars table[aria-busy=false]").filter(has_text=f"Token {step}, after").wait_for()
    button = part.locator(".hs-alternative:enabled").nth(row)
    token = re.search("“(.+)”", button.get_attribute("aria-label"))
    button.click()
    assert token
    return token[1].replace("·", " ").replace("↵", "\n")


def expected_text(loaded: LoadedModel, prompt: str, length: int = 200) -> str:
    steps = loaded.generate(prompt, length, temperature=0.8, seed=1)
    return prompt + "".join(step.text for step in steps)


def test_both_texts_stay_side_by_side(page: Any, server: Server) -> None:
    loaded = server.services.served.models["tiny"]
    change_settings(page, seed=1)
    first = opened_text(page)
    token = branch_at(page, page, 30)
    left, right = side(page, "First text"), side(page, f"Branch at token 30: “{token}” instead of “{first[30]}”")
    expect(text(left)).to_have_text(first)
    expect(text(right)).to_have_text(expected_text(loaded, first[:30] + token))
    boxes = [part.bounding_box() for part in (left, right)]
    assert boxes[0]["y"] == boxes[1]["y"] and boxes[0]["x"] < boxes[1]["x"]
    # What is open is open on both sides, each with its own numbers.
    left.get_by_role("button", name="L2 H1,").click()
    for part in (left, right):
        panel = part.get_by_role("region", name="Attention weights, L2 H1")
        expect(panel.locator(".hs-number")).not_to_be_empty()
        query, key, shown = readout(panel)
        attention = loaded.trace(text(part).text_content()[:CONTEXT]).attention
        assert is_shown_as(float(attention[2, 1, query, key]), shown)
    # The branch knows how probable the tokens were that both share.
    logprob = Residuals(loaded.gpt, loaded.read_prompt(first[:30])).logprobs()[19]
    right.get_by_label("Step", exact=True).fill("20")
    expect(right.locator(".hs-scrubber-status")).to_contain_text(f"{-logprob / 0.6931471805599453:.2f} bits")


def test_a_branch_of_a_branch_a_close_and_a_keep(page: Any, server: Server) -> None:
    loaded = server.services.served.models["tiny"]
    change_settings(page, seed=1)
    first = opened_text(page)
    token = branch_at(page, page, 30)
    right = side(page, "Branch at token 30")
    second = expected_text(loaded, first[:30] + token)
    expect(text(right)).to_have_text(second)
    other = branch_at(right, page, 40, row=1)
    expect(text(side(page, "Branch at token 40"))).to_have_text(expected_text(loaded, second[:40] + other))
    expect(text(side(page, "Branch at token 30"))).to_have_text(second)
    expect(side(page, "First text")).to_have_count(0)
    xs = [side(page, f"Branch at token {at}").bounding_box()["x"] for at in (30, 40)]
    assert xs[0] < xs[1]
    page.get_by_role("button", name="Close branch").click()
    expect(text(page)).to_have_count(1)
    expect(text(page)).to_have_text(second)
    token = branch_at(page, page, 35)
    third = expected_text(loaded, second[:35] + token)
    expect(text(side(page, "Branch at token 35"))).to_have_text(third)
    page.get_by_role("button", name="Keep only this").click()
    expect(text(page)).to_have_count(1)
    expect(text(page)).to_have_text(third)
    write(page, "now ")
    expect(text(page)).to_have_text(expected_text(loaded, "now "))


def test_a_new_text_closes_the_branch(page: Any, server: Server) -> None:
    change_settings(page, seed=1)
    branch_at(page, page, 30)
    expect(text(page)).to_have_count(2)
    expect(write_button(page)).to_be_visible()
    write(page, "now ")
    expect(text(page)).to_have_count(1)
    expect(text(page)).to_have_text(expected_text(server.services.served.models["tiny"], "now "))


def test_both_may_be_written_at_once_and_are_stopped_together(page: Any, server: Server, slow: Any) -> None:
    write_slowly(page, slow, 4)
    branch_at(page, page, 4)
    expect(text(side(page, "Branch at token 4"))).to_have_text(re.compile("^ab.{3}$", re.DOTALL))
    generations = list(server.services.engines.running)
    assert len(generations) == 2
    stop_button(page).click()
    for generation in generations:
        assert generation.stopped.wait(timeout=10)
    slow.gate.release(4)
    expect(write_button(page)).to_be_visible()
    expect(side(page, "First text").get_by_text("stopped after")).to_be_visible()
    expect(side(page, "Branch at").get_by_text("stopped after")).to_be_visible()


def test_a_closed_branch_is_written_no_further(page: Any, server: Server, slow: Any) -> None:
    choose_model(page, "slow")
    first = opened_text(page)
    branch_at(page, page, 10)
    slow.gate.release(2)
    expect(text(side(page, "Branch at token 10"))).to_have_text(re.compile("^.{13}$", re.DOTALL))
    (generation,) = server.services.engines.running
    page.get_by_role("button", name="Close branch").click()
    assert generation.stopped.wait(timeout=10)
    slow.gate.release(2)
    expect(write_button(page)).to_be_visible()
    expect(text(page)).to_have_count(1)
    expect(text(page)).to_have_text(first)


def test_stacked_on_a_phone(browser: Any, server: Server) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(server.url)
    expect(page.locator(".hs-number")).not_to_be_empty()
    branch_at(page, page, 20)
    left, right = side(page, "First text").bounding_box(), side(page, "Branch at token 20").bounding_box()
    assert left["x"] == right["x"] and right["y"] > left["y"] + left["height"]
    expect(side(page, "Branch at token 20").get_by_role("button", name="Close branch")).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.close()


def test_no_branch_beyond_the_context(page: Any, server: Server) -> None:
    write(page, "a" * CONTEXT)
    expect(page.get_by_text("tokens is full")).to_be_visible()
    expect(page.locator(".hs-is-written")).to_have_count(1)
    expect(page.locator(".hs-alternative:enabled")).to_have_count(0)


def test_another_text_beside_the_first(page: Any, server: Server) -> None:
    loaded = server.services.served.models["tiny"]
    change_settings(page, seed=1)
    write(page, "now ")
    first = expected_text(loaded, "now ")
    expect(text(page)).to_have_text(first)
    page.get_by_role("button", name="Write another").click()
    right = page.get_by_role("region", name=re.compile(r"^Another text, seed \d+$"))
    expect(right).to_be_visible()
    seed = int(right.get_attribute("aria-label").split()[-1])
    second = "now " + "".join(step.text for step in loaded.generate("now ", 200, temperature=0.8, seed=seed))
    expect(text(right)).to_have_text(second)
    assert seed != 1 and second != first
    expect(text(side(page, "First text"))).to_have_text(first)
    right.get_by_role("button", name="Keep only this").click()
    expect(text(page)).to_have_text(second)
