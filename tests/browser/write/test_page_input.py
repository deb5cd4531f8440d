"""Input that a visitor may type: code that must stay text, and text that the model cannot read."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers.gate import wait_for_end
from helpers.models import tiny_bpe, tiny_model
from helpers.page import (
    change_settings,
    choose_model,
    expect_drawn,
    number_field,
    opened_settings,
    stop,
    text,
    write,
    write_button,
)
from helpers.server import CONTEXT, Server

# Each would leave a mark on the page if it were executed.
CODE = (
    "<script>pwned=1</script>",
    "<img src=x onerror=pwned=1>",
    "${window.pwned = 1}",
    "{{value}}${pwned=1}`",
    "{{#each x}}${",
    "</div></html>\\",
)


def test_code_is_shown_as_text(page: Any) -> None:
    page.get_by_role("button", name="Show as a table").click()
    change_settings(page, length=8)
    for code in CODE:
        write(page, code)
        expect(text(page)).to_have_text(re.compile("^" + re.escape(code)))
        expect(page.locator(".hs-workspace[data-state=done]")).to_be_visible()
        expect(page.get_by_text("tokens written")).to_be_visible()
        expect(page.get_by_role("table", name="Attention weights")).to_be_visible()
        assert page.evaluate("typeof pwned") == "undefined", code


@pytest.mark.slow
def test_markup_written_by_a_model_is_shown_as_text(page: Any, server: Server, slow: Any) -> None:
    choose_model(page, "slow")
    change_settings(page, length=60)
    write(page, "<b>")
    for _ in range(41):
        slow.gate.release()
    expect(text(page)).to_have_text(re.compile("^<b>.{41}$", re.DOTALL))
    stop(page, server)
    expect(page.get_by_text("stopped after 41 tokens")).to_be_visible()
    assert page.locator(".headscope b b, .hs-text b").count() == 0


SIGNS = """(span) => {
  const read = (node) => {
    if (node.nodeType === Node.TEXT_NODE) return node.data;
    if (node.className === "hs-word") return [...node.childNodes].map(read).join("");
    const sign = getComputedStyle(node, "::before").content.replaceAll('"', "");
    return getComputedStyle(node).backgroundImage === "none" ? sign : "·";
  };
  return [...span.childNodes].map(read).join("");
}"""


@pytest.mark.slow
def test_spaces_inside_tokens_are_seen(browser: Any, launch: Callable[..., Server], tmp_path: Path) -> None:
    tiny_model(0, tiny_bpe(), context_length=64).save(tmp_path / "pieces")
    server = launch(tmp_path / "pieces")
    loaded = server.services.served.models["pieces"]
    prompt = "It's a fine\n\n  day\n,  isn't\tit?"
    page = browser.new_page()
    page.goto(server.url)
    expect_drawn(page)
    change_settings(page, length=8)
    write(page, prompt)
    expect(text(page)).to_have_text(re.compile("^" + re.escape(prompt)))
    tokens = [token.text for token in loaded.tokens(loaded.parse_prompt(prompt))]
    assert any(len(token) > 1 and token.strip() and " " in token for token in tokens)
    spans = page.locator(".hs-writing .hs-token")
    assert spans.all_text_contents()[: len(tokens)] == tokens
    for sign, token in zip(spans.evaluate_all(f"spans => spans.map({SIGNS})"), tokens, strict=False):
        if len(token) > 1:  # the sign of a token that is one space is its own
            assert sign == token.replace(" ", "·").replace("\n", "↵").replace("\t", "⇥")


def test_a_bad_prompt_costs_nothing(page: Any) -> None:
    for prompt, said in (
        ("", "The prompt is empty"),
        ("caf\u00e9 \u4f60", "never seen '\u00e9', '\u4f60'"),
        ("a" * (CONTEXT + 1), f"The prompt has {CONTEXT + 1} tokens, but this model reads at most {CONTEXT} at once"),
    ):
        before = text(page).text_content()
        write(page, prompt)
        expect(page.locator(".hs-notices").get_by_text(said)).to_be_visible()
        assert text(page).text_content() == before
        expect(write_button(page)).to_be_visible()
        write(page, "now ")
        expect(text(page)).not_to_have_text(before)
        expect(text(page)).to_have_text(re.compile("^now "))
        expect(page.locator(".hs-workspace[data-state=done]")).to_be_visible()
        expect(page.locator(".hs-notices").get_by_text(said)).to_have_count(0)


def test_a_refusal_is_shown_below_the_prompt_until_that_or_the_model_changes(page: Any, slow: Any) -> None:
    """``slow`` is another model to choose."""
    refusal = page.locator(".hs-refusal p")
    for prompt in ("", "caf\u00e9 0123456789 \u4f60 " * 4):
        write(page, prompt)
        expect(refusal).to_have_count(1)
    box, bar = refusal.bounding_box(), page.locator(".hs-topbar").bounding_box()
    assert 0 <= box["y"] - (bar["y"] + bar["height"]) < 20
    assert refusal.evaluate("e => e.scrollWidth <= e.clientWidth && e.scrollHeight <= e.clientHeight")
    expect(page.locator(".hs-text-box .hs-notices").get_by_text("never seen")).to_have_count(0)
    page.get_by_label("Prompt").press("End")
    page.get_by_label("Prompt").press("a")
    expect(refusal).to_have_count(0)
    write(page, "\u4f60")
    expect(refusal).to_have_count(1)
    choose_model(page, "slow")
    expect(refusal).to_have_count(0)


def test_a_full_context_is_named(page: Any) -> None:
    write(page, "a" * CONTEXT)
    expect(page.get_by_text(f"The context of {CONTEXT} tokens is full")).to_be_visible()
    page.locator(".hs-token").nth(CONTEXT).hover()
    expect(page.locator(".hs-readout")).to_have_text(re.compile("has not been read"))


def test_a_number_out_of_range_is_clamped(page: Any) -> None:
    with opened_settings(page) as panel:
        field = number_field(panel, "temperature")
        for typed, taken in (("1e9", "2"), ("-1", "0"), ("0.333", "0.35")):
            field.fill(typed)
            field.press("Tab")
            assert float(field.input_value()) == float(taken)
            expect(panel.get_by_label("temperature", exact=True)).to_have_value(taken)


def test_leaving_ends_the_writing(browser: Any, server: Server, slow: Any) -> None:
    page = browser.new_page()
    page.goto(server.url)
    choose_model(page, "slow")
    write(page, "ab")
    slow.gate.release()
    expect(text(page)).to_have_text(re.compile("^ab.$", re.DOTALL))
    (generation,) = server.running
    page.goto("about:blank")
    assert generation.stopped.wait(timeout=10)
    wait_for_end(generation)
