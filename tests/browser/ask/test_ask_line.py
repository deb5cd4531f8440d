"""The line that asks about what is selected, and the place of an answer: beside the field, which nothing moves."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers import also_slow
from helpers.page import opened_stage as opened
from helpers.page import two_frames
from helpers.server import Server
from helpers.tabs import Profiles

PARTS = """() => [".hs-sentence-text", ".hs-verdict", ".hs-ghosts", ".hs-ask-line", ".hs-all-heads"]
  .map((name) => document.querySelector(name).getBoundingClientRect())
  .map(({ x, y, width, height }) => [x, y + scrollY, width, height].map(Math.round))"""
COUNT_SHIFTS = """() => { window.shifts = []; new PerformanceObserver((list) => {
  for (const { value, sources, hadRecentInput } of list.getEntries())
    if (!hadRecentInput)
      shifts.push([value, ...sources.map(({ node }) => (node?.parentElement ?? node)?.outerHTML.slice(0, 100))]);
}).observe({ type: "layout-shift" }); }"""
SETTLED = "() => new Promise((done) => setTimeout(() => done(shifts), 500))"


def line(page: Any) -> Any:
    return page.get_by_role("region", name="Questions about what is selected")


def answer_of(page: Any) -> Any:
    return page.get_by_role("region", name="Ask", exact=True)


def ask(page: Any, question: str) -> Any:
    line(page).get_by_role("button", name=question).click()
    expect(answer_of(page)).to_have_attribute("aria-busy", "false", timeout=60_000)
    expect(answer_of(page).locator(".hs-caution")).to_be_visible()
    return answer_of(page)


@pytest.mark.parametrize("width", [390, 1024, *also_slow(1440)])
def test_an_answer_moves_nothing_when_it_arrives(browser: Profiles, story: Server, width: int) -> None:
    """By the browser's own count, until half a second after it. On a phone the field makes room when the question is
    asked; elsewhere it changes its ink alone.
    """
    page = opened(browser, story, width, 844 if width == 390 else 800)
    before = page.evaluate(PARTS)
    for subject, question in (("the text", "Which heads does it need?"), ("head 7·6", "What is it for?")):
        line(page).get_by_role("radio", name=subject, exact=True).click()
        two_frames(page)  # what the visitor changed is drawn
        page.evaluate(COUNT_SHIFTS)
        answer = ask(page, question)
        assert page.evaluate(SETTLED) == []
        above = slice(-1) if width == 390 else slice(None)
        assert page.evaluate(PARTS)[above] == before[above]
        field, box = page.locator(".hs-all-heads").bounding_box(), answer.bounding_box()
        if width == 390:
            own = line(page).bounding_box()
            assert 0 <= own["y"] <= box["y"] - own["height"] < 100
            assert box["y"] + box["height"] <= field["y"]
        else:
            assert box["x"] >= field["x"] + field["width"]
        assert page.locator(".hs-of-answer .hs-numbered").count() > 0
        expect(page.locator(".hs-field-heading p")).to_contain_text("in nats" if "text" in subject else "by chance .50")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("width", [390, 1024, 1440])
def test_the_line_collides_with_nothing(browser: Profiles, story: Server, width: int) -> None:
    page = opened(browser, story, width)
    for subject in line(page).locator(".hs-subject").all():
        subject.click()
        own = line(page).bounding_box()
        last = line(page).get_by_role("button", name="More questions").bounding_box()
        assert last["x"] + last["width"] <= own["x"] + own["width"]
        for name in (".hs-stage-say", ".hs-next-words", ".hs-field-heading", ".hs-card-words", ".hs-all-heads"):
            box = page.locator(name).bounding_box()
            apart = (
                own["x"] + own["width"] <= box["x"]
                or own["y"] + own["height"] <= box["y"]
                or box["y"] + box["height"] <= own["y"]
            )
            assert apart, (name, own, box)


def test_three_questions_suit_what_is_selected(browser: Profiles, story: Server) -> None:
    page = opened(browser, story)
    offered = line(page).locator(".hs-offered")
    expect(offered).to_have_text(["Why kite?", "What did each layer expect?", "Show me the arithmetic"])
    page.locator("[data-head='0,4']").click()
    expect(line(page).locator("[aria-checked=true]")).to_have_text("head 0·4")
    expect(offered.first).to_have_text("What is it for?")
    page.locator("[data-i='10'] .hs-letters").click()
    expect(offered.first).to_have_text(re.compile(r"^Why (?!kite).+\?$"))
    line(page).get_by_role("radio", name="the text", exact=True).click()
    expect(offered.first).to_have_text("Which heads does it need?")


def test_a_typed_word_finds_a_question_and_escape_returns_the_focus(browser: Profiles, story: Server) -> None:
    page = opened(browser, story)
    page.keyboard.press("/")
    more = line(page).get_by_role("button", name="More questions")
    field = page.get_by_role("searchbox", name="Find a question")
    expect(field).to_be_focused()
    listed = answer_of(page).locator(".hs-questions li:visible")
    expect(listed).to_have_count(12)
    field.fill("layer pred")
    expect(listed).to_have_count(1)
    field.press("Enter")
    title = answer_of(page).get_by_role("heading", name="What did each layer expect?")
    expect(title).to_be_focused()
    expect(title).to_be_in_viewport()
    page.keyboard.press("Escape")
    expect(answer_of(page)).to_be_hidden()
    expect(more).to_be_focused()
    second = line(page).locator(".hs-offered").nth(1)
    second.focus()
    second.press("Enter")
    expect(answer_of(page)).to_be_visible()
    expect(second).to_be_focused()
    expect(second).to_be_in_viewport()
    page.keyboard.press("Escape")
    expect(second).to_be_focused()


def test_a_link_to_a_question_opens_beside_the_field(browser: Profiles, story: Server) -> None:
    page = opened(browser, story)
    page.get_by_role("button", name=re.compile("^new, ")).click()
    page.wait_for_url("**ids=**")
    page.goto(f"{page.url}&ask=knockout")
    expect(answer_of(page).locator("tr[data-picture]").first).to_be_visible()
    expect(page.locator(".hs-all-heads")).to_be_visible()
    answer_of(page).locator("summary").click()
    expect(answer_of(page).locator("pre")).to_contain_text("v1/lens/knockout")


def test_an_open_answer_has_a_column_of_its_own_among_the_details(browser: Profiles, story: Server) -> None:
    page = opened(browser, story)
    ask(page, "What did each layer expect?")
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("button", name="All details").click()
    expect(page.locator(".hs-panels.hs-asking")).to_be_visible()
    parts = [page.locator(f".hs-panels {name}").bounding_box() for name in (".hs-written", ".hs-heads", ".hs-open")]
    assert all(part["width"] > 200 for part in parts)
    assert answer_of(page).bounding_box()["x"] > parts[1]["x"] + parts[1]["width"]
