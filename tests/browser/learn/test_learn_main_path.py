"""The main path of Learn: short rungs, a picture of the GPT that fills, and heads that learn while one watches."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers.learn_page import CELLS, open_rung, say, table

SCREENS = 4.5
LONG_SENTENCE = "The cat that chased the mice was tired and slept"
HEIGHT = """async () => {
  document.querySelectorAll('.hl-fold').forEach((fold) => (fold.open = false));
  document.querySelectorAll('.hl-sticky').forEach((figure) => figure.classList.remove('hl-whole'));
  await new Promise(requestAnimationFrame);
  return document.documentElement.scrollHeight / innerHeight;
}"""
SCROLLED = """() => [...document.querySelectorAll('.hl-picture .hl-figure .hl-scroll')]
  .filter((box) => box.offsetParent && box.scrollWidth > box.clientWidth)
  .map((box) => box.parentElement.querySelector('figcaption').textContent)"""
KNOWN = """() => Object.fromEntries([...document.querySelectorAll('.hl-tall .hl-part')].map(
  (part) => [part.querySelector('text').textContent, Number(part.style.getPropertyValue('--known'))]))"""

TOP = "element => element.getBoundingClientRect().top"


def test_every_rung_is_short_and_fills_the_picture_of_the_gpt(page: Any) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    for rung in range(1, 12):
        open_rung(page, rung)
        if rung == 5:
            known = page.evaluate(KNOWN)
            assert (known["embedding"], known["attention"], known["MLP"]) == (1, 2 / 6, 0)
        assert page.evaluate(HEIGHT) <= SCREENS, rung
    assert set(page.evaluate(KNOWN).values()) == {1}


@pytest.mark.slow
def test_a_long_sentence_makes_no_rung_long(page: Any) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    say(page, LONG_SENTENCE)
    for rung in range(1, 12):
        open_rung(page, rung)
        assert page.evaluate(HEIGHT) <= SCREENS, rung


@pytest.mark.slow
def test_two_trained_heads_stand_side_by_side(page: Any) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    for sentence in (LONG_SENTENCE, "Your journey starts with one step"):
        say(page, sentence)
        for rung in (6, 8):
            open_rung(page, rung)
            expect(page.get_by_text("The two that differ most")).to_be_visible()
            assert page.evaluate(SCROLLED) == [], rung


def read_on_a_phone(page: Any, rung: int, step: int) -> Any:
    """Scroll to a step beside the figure that is pinned."""
    page.set_viewport_size({"width": 390, "height": 844})
    open_rung(page, rung)
    page.get_by_role("button", name="Whole figure").dispatch_event("click")
    read = page.locator(".hl-step").nth(step)
    read.evaluate("step => scrollBy(0, step.getBoundingClientRect().top - innerHeight / 2)")
    expect(read).to_contain_class("hl-reading")
    return read


@pytest.mark.slow
def test_a_phone_shows_the_part_of_the_figure_that_a_step_is_about(page: Any) -> None:
    ends = [
        (5, 4, table(page, "Context vectors").locator("td")),
        (7, 2, table(page, "Masked scores").locator("td")),
        (8, 0, table(page, "Head 1 of two").locator("td")),
        (9, 3, page.locator(".hl-sticky").get_by_role("table", name="MLP 6 adds to the logit of").locator("td")),
    ]
    for rung, step, parts in ends:
        read_on_a_phone(page, rung, step)
        expect(parts.last).to_be_in_viewport(ratio=0.9)


@pytest.mark.slow
def test_the_whole_figure_opens_in_view_and_closes_where_one_was_reading(page: Any) -> None:
    step = read_on_a_phone(page, 7, 2)
    whole = page.get_by_role("button", name="Whole figure")
    top = step.evaluate(TOP)
    whole.dispatch_event("click")
    expect(table(page, "Masked scores")).to_be_in_viewport()
    whole.dispatch_event("click")
    expect(step).to_contain_class("hl-reading")
    assert step.evaluate(TOP) == pytest.approx(top, abs=1)


def status(page: Any) -> Any:
    return page.locator(".hl-step [role=status]").filter(has_text="of 150")


@pytest.mark.slow
def test_a_verb_learns_to_find_its_subject(page: Any) -> None:
    page.emulate_media(reduced_motion="reduce")
    open_rung(page, 6)
    learn = page.get_by_role("button", name="Learn 150 steps")
    found, compared = status(page).all()
    tips = page.get_by_label("Queries q of verbs and keys k of other words").locator("polygon").first
    start = tips.get_attribute("points")
    learn.first.click()
    expect(found).to_have_text(re.compile(r"Seed 1, step 150 of 150: mean weight on the subject (0\.[89]|1)\d*"))
    assert tips.get_attribute("points") != start
    bars = page.get_by_role("table", name="What “sleep” looks at")
    expect(bars.get_by_role("row", name=re.compile(r"^dogs (0\.9\d|1\.00)"))).to_be_visible()
    expect(compared).to_contain_text("step 0 of 150")
    learn.last.click()
    weights = r"0\.[89]\d with the division, 0\.[0-4]\d without"
    gradients = r"where the gradient is [12]\d\.\d times smaller"
    expect(compared).to_have_text(re.compile(rf"{weights}, {gradients}\."))


@pytest.mark.slow
def test_two_heads_learn_two_jobs(page: Any) -> None:
    open_rung(page, 8)
    say(page, "What is in a name?")
    page.get_by_role("button", name="Learn 150 steps").click()
    losses = r"mean loss one head 0\.[4-9]\d*, two heads 0\.[01]\d*"
    expect(status(page)).to_have_text(re.compile(f"step 150 of 150: {losses}"))
    jobs = [
        float(text) for text in table(page, "Loss of each job, in nats").locator("td:last-child").all_text_contents()
    ]
    assert len(jobs) == 4 and max(jobs[:2]) > 0.7 and max(jobs[2:]) < 0.2
    heads = [table(page, f"Head {head} of two").evaluate(CELLS) for head in (0, 1)]
    previous = [[float(row[i + 1]) for i, row in enumerate(head)] for head in heads]
    first = [[float(row[0]) for row in head] for head in heads]
    assert sorted([min(previous[0]) > 0.9, min(previous[1]) > 0.9]) == [False, True]
    assert sorted([min(first[0]) > 0.9, min(first[1]) > 0.9]) == [False, True]
