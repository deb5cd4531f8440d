"""Why this word, answered on the stage in the place of the open head."""

import json
import re
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from helpers import also_slow
from helpers.page import opened_stage as opened
from helpers.server import Server
from helpers.tabs import Profiles

PLACES = """() => [".hs-sentence-text", ".hs-verdict", ".hs-next-words", ".hs-all-heads"]
  .map((name) => document.querySelector(name)).filter((each) => each.offsetParent)
  .map((each) => each.getBoundingClientRect().toJSON())"""
SHIFTS = """() => { window.shift = 0; new PerformanceObserver((list) => {
  for (const { value, hadRecentInput } of list.getEntries())
    if (!hadRecentInput) window.shift += value; }).observe({ type: "layout-shift" }); }"""


def answer_of(page: Any) -> Any:
    return page.get_by_role("region", name="Answer", exact=True)


def ask(page: Any) -> Any:
    page.get_by_role("button", name="Why “kite”?").click()
    answer = answer_of(page)
    expect(answer.locator(".hs-why-total b")).to_have_text("16.1")
    return answer


@pytest.mark.parametrize("width", [390, 1440, *also_slow(1024)])
def test_the_answer_moves_nothing(browser: Profiles, story: Server, width: int) -> None:
    """On a phone the field makes room for it, which stands right below the questions."""
    page = opened(browser, story, width)
    before = page.evaluate(PLACES)
    scrolled = page.evaluate("scrollY")
    page.evaluate(SHIFTS)
    answer = ask(page)
    by = page.evaluate("scrollY") - scrolled
    assert width == 390 or by == 0
    after = page.evaluate(PLACES)
    for one, other in list(zip(before, after, strict=True))[: 3 if width == 390 else 4]:
        assert (other["top"] + by, other["height"], other["left"]) == (one["top"], one["height"], one["left"])
    assert page.evaluate("shift") == 0
    field, box = page.locator(".hs-all-heads").bounding_box(), answer.bounding_box()
    if width == 390:
        questions = page.locator(".hs-ask-line").bounding_box()
        assert 0 <= box["y"] - questions["y"] - questions["height"] < 40
        assert 0 <= questions["y"] and box["y"] + box["height"] <= field["y"]
    else:
        assert box["x"] >= field["x"] + field["width"]
        expect(page.locator(".hs-card")).to_be_hidden()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_its_numbers_are_those_of_the_route(browser: Profiles, story: Server) -> None:
    page = opened(browser, story)
    answer = ask(page)
    answer.locator("summary").click()
    body = json.loads(answer.locator("pre").inner_text().split("-d '")[1].split("\n}'")[0] + "}")
    found = httpx.post(f"{story.url}/v1/lens/attribution", json=body, timeout=60).json()
    values = [float(text.replace("−", "-")) for text in answer.locator(".hs-why-bar b").all_inner_texts()]
    assert values[-1] == pytest.approx(found["logit"], abs=0.051)
    assert sum(values[:-1]) == pytest.approx(values[-1], abs=0.05 * len(values))  # each is rounded by itself
    heads = answer.locator(".hs-why-head")
    for i in range(heads.count()):
        head, layer = map(int, re.findall(r"\d+", heads.nth(i).locator("button").inner_text()))
        assert values[i + 2] == pytest.approx(found["heads"][layer][head], abs=0.051)
    assert answer.locator(".hs-why-numbers tr").count() == 1 + 64 + 8 + 4


def test_a_head_of_the_answer_lights_its_tile_and_opens(browser: Profiles, story: Server) -> None:
    page = opened(browser, story)
    answer = ask(page)
    row = answer.locator(".hs-why-head").first
    row.hover()
    expect(page.locator(".hs-head-tile.hs-lit")).to_have_count(1)
    row.locator("button").click()
    expect(page.locator(".hs-head-tile.hs-open-tile")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(answer).to_be_hidden()
    expect(page.locator(".hs-card")).to_contain_text("Head 3 of layer 4")


def test_back_closes_it_and_a_reload_keeps_it(browser: Profiles, story: Server) -> None:
    page = opened(browser, story)
    ask(page)
    page.reload()
    expect(answer_of(page).locator(".hs-why-total b")).to_have_text("16.1")
    page.go_back()
    expect(answer_of(page)).to_be_hidden()
    answer_of_link = opened(browser, story, path="/?model=stories-bpe")
    expect(answer_of(answer_of_link)).to_be_hidden()


def test_it_follows_the_switch(browser: Profiles, story: Server) -> None:
    """Without the heads that copy, another word is next; the answer is about that one and its largest cause."""
    page = opened(browser, story)
    answer = ask(page)
    page.locator(".hs-verdict .hs-main-action:not([title])").click()
    expect(answer.locator("h3")).not_to_contain_text("kite")
    expect(answer.locator(".hs-why-say")).to_contain_text("comes from all 8 MLPs")
