"""The two questions of the first screen, answered in plain words in their place, and the way to the full comparison."""

import re
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from helpers.models import last_probabilities
from helpers.page import expect_drawn, text
from helpers.server import Server

OFF = re.compile("What if these .*heads were off")
JARGON = re.compile(r"·|logit|token|nats|L\d H\d|\d\.\d{3}")


def opened(browser: Any, server: Server, details: str = "") -> Any:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.add_init_script(f'localStorage["headscope-details"] = "{details}"; localStorage["headscope-speed"] = "60"')
    page.goto(server.url)
    expect_drawn(page)
    expect(page.locator(".hs-finding p")).to_contain_text("92%")
    return page


def answer(page: Any) -> Any:
    return page.get_by_role("region", name="Answer", exact=True)


def ask(page: Any, name: str | re.Pattern[str]) -> Any:
    page.get_by_role("button", name=name).click()
    return answer(page)


def shares(said: str) -> list[float]:
    return [float(part) / 100 for part in re.findall(r"([\d.]+)%", said)]


@pytest.mark.slow
def test_without_such_heads_the_text_is_written_twice_in_place(browser: Any, story: Server) -> None:
    page = opened(browser, story)
    before, sentence, address = text(page).text_content(), page.locator(".hs-finding p").text_content(), page.url
    entries = page.evaluate("history.length")
    shown = ask(page, OFF)
    expect(shown.locator("[data-state=done]")).to_be_visible()
    assert not JARGON.search(shown.inner_text())
    muted = page.locator(".hs-heads .hs-grid .hs-muted")
    heads = [
        tuple(map(int, place.split(","))) for place in muted.evaluate_all("(all) => all.map((e) => e.dataset.picture)")
    ]
    said = shown.get_by_role("status").text_content()
    n = len(heads)
    assert said.startswith(
        f"{n} heads look back at “kite” and copy it. Without these {n} heads, “kite”, the likeliest "
    )
    with_all, without = last_probabilities(story.served.models["stories-bpe"], before, heads)
    assert shares(said)[:2] == [pytest.approx(with_all, abs=0.006), pytest.approx(without, abs=0.0006)]
    # The bars are sorted, and their lines are on the scale of the bars.
    bars = page.get_by_role("region", name="Next token").locator("tbody tr")
    parts = bars.locator(".hs-amount").evaluate_all(
        "(all) => all.map((e) => ['--part', '--plain'].map((name) => Number(e.style.getPropertyValue(name))))"
    )
    assert len(set(bars.locator(".hs-amount").evaluate_all("(all) => all.map((e) => e.clientWidth)"))) == 1
    assert [part for part, _ in parts] == sorted((part for part, _ in parts), reverse=True)
    assert max(plain for _, plain in parts) == pytest.approx(with_all, abs=1e-3)
    assert shares(said)[2] == pytest.approx(parts[0][0], abs=0.006)
    first, second = shown.locator(".hs-text").all_text_contents()
    assert first.startswith(before) and not second.startswith(before)
    assert len(second) < len(before) + 150  # it stops soon after the texts have diverged
    diverging = shown.locator(".hs-diverge").all_text_contents()
    assert diverging[0] == " kite" != diverging[1]
    for part in shown.locator(".hs-diverge").all():
        expect(part).to_be_in_viewport()
    # Back closes the answer; playing it has added no entry.
    page.mouse.move(5, 5)
    assert page.evaluate("history.length") == entries + 1
    page.evaluate("history.back()")
    expect(shown).to_be_hidden()
    expect(muted).to_have_count(0)
    expect(page.locator(".hs-finding p")).to_have_text(sentence)
    assert page.url == address
    # The full comparison, and back to the text that was left.
    shown = ask(page, OFF)
    shown.get_by_role("button", name="Compare them in full").click()
    compare = page.get_by_role("region", name="Compare", exact=True)
    expect(compare).to_contain_text("Without 7 heads")
    page.wait_for_url("**b_sha256=**")
    page.get_by_role("button", name="Close compare").click()
    page.mouse.move(5, 5)
    expect(compare).to_have_count(0)
    expect(text(page)).to_have_text(before)
    expect(page.locator(".hs-finding p")).to_have_text(sentence)
    page.wait_for_function("(address) => location.href === address", arg=address)


def test_why_this_word_names_the_heads_that_speak_for_it(browser: Any, story: Server) -> None:
    page = opened(browser, story)
    before = text(page).text_content()
    shown = ask(page, "Why this word?")
    rows = shown.get_by_role("listitem")
    expect(rows.first).to_contain_text("looks at “kite”")
    said = shown.get_by_role("status").text_content()
    assert not JARGON.search(shown.inner_text())
    heads = [tuple(map(int, re.findall(r"\d+", row)[:2])) for row in rows.all_text_contents()]
    ids = story.served.models["stories-bpe"].tokenizer.encode(before)
    body = {"tokens": ids, "position": len(ids) - 2, "token": ids[-1], "against": "likeliest"}
    told = httpx.post(f"{story.url}/v1/lens/attribution", json=body, timeout=60).raise_for_status().json()
    part, total = sum(told["heads"][layer][head] for layer, head in heads), sum(map(sum, told["heads"]))
    assert part > total > 0
    other = told["against"]["text"].strip()
    assert said == (
        f"{len(heads)} heads favour “kite” over “{other}”: they add more than all 64 together, "
        "as others count against it. All look back at an earlier “kite”."
    )
    with_all, without = last_probabilities(story.served.models["stories-bpe"], before, heads)
    assert without < 0.1 * with_all
    # The arithmetic is that of the head that was opened.
    panel = page.locator(".hs-open")
    opened_head = re.compile("L{} H{}".format(*heads[0]))
    expect(panel).to_have_attribute("aria-label", opened_head)
    shown.get_by_role("button", name="Show me the arithmetic").click()
    expect(page.get_by_role("region", name="Ask", exact=True).locator(".hs-plain")).to_contain_text(opened_head)
    expect(panel).to_have_attribute("aria-label", opened_head)
    page.get_by_role("button", name="Close Ask").click()
    shown = ask(page, "Why this word?")
    # Each opens its head; another word of the text is explained in the same place.
    rows.first.get_by_role("button").click()
    layer, head = heads[0]
    expect(page.locator(".hs-open")).to_have_attribute("aria-label", re.compile(f"L{layer} H{head}"))
    text(page).locator("[data-i='20']").click()
    expect(shown.get_by_role("status")).not_to_have_text(said)
    page.keyboard.press("Escape")
    expect(shown).to_be_hidden()
    shown = ask(page, "Why this word?")
    shown.get_by_role("button", name="All the numbers").click()
    expect(shown).to_be_hidden()
    expect(page.get_by_role("region", name="Ask", exact=True)).to_contain_text("logit")


def test_another_word_instead_is_written_next_to_the_text(browser: Any, story: Server) -> None:
    page = opened(browser, story)
    page.get_by_role("button", name="What if it were “new”?").click()
    shown = answer(page)
    expect(shown.locator("[data-state=done]")).to_be_visible()
    assert shown.locator(".hs-diverge").all_text_contents() == [" kite", " new"]
    assert not JARGON.search(shown.inner_text())
    shown.get_by_role("button", name="Close").click()
    expect(shown).to_be_hidden()
    expect(page.get_by_role("button", name="What if it were “new”?")).to_be_focused()


@pytest.mark.slow
def test_with_details_the_comparison_opens_and_one_back_leaves_it(browser: Any, story: Server) -> None:
    page = opened(browser, story, details="on")
    before, sentence, address = text(page).text_content(), page.locator(".hs-finding p").text_content(), page.url
    entries = page.evaluate("history.length")
    page.get_by_role("button", name=OFF).click()
    page.mouse.move(5, 5)
    compare = page.get_by_role("region", name="Compare", exact=True)
    expect(compare).to_contain_text("Without 7 heads")
    page.wait_for_url("**b_sha256=**")  # its texts have been played
    expect(compare).to_have_attribute("data-state", "done")
    assert page.evaluate("history.length") == entries + 1
    page.evaluate("history.back()")
    expect(compare).to_have_count(0)
    expect(text(page)).to_have_text(before)
    expect(page.locator(".hs-finding p")).to_have_text(sentence)
    assert page.url == address
    # Forward opens the comparison again, from which Back leads to the text again.
    page.evaluate("history.forward()")
    expect(compare).to_contain_text("Without 7 heads")
    page.wait_for_function("document.querySelectorAll('.hs-pair-text .hs-token').length > 60")
    page.evaluate("history.back()")
    expect(compare).to_have_count(0)
    expect(text(page)).to_have_text(before)
