"""The exercises of the Learn tab in Chromium, the recorded training that can be replayed, and the last page."""

import math
import re
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers.learn_page import LAST_PAGE, move, number, numbers, open_rung, say, settle
from helpers.page import show_page
from web.learn.lesson_request import MAX_TRAINING_TEXT_CHARACTERS

pytestmark = pytest.mark.gradio

TRAINING_TEXT = "to be or not to be, that is the question. " * 40


def exercise(page: Any, place: int) -> Any:
    return page.locator(".hl-step > .hl-exercises > ol > li").nth(place)


@pytest.mark.slow
def test_the_prediction_about_the_model_is_posed_anew_for_another_text(page: Any) -> None:
    open_rung(page, 10)
    asked = page.locator(".hl-prediction")
    said = asked.get_by_role("status")
    expect(asked).to_contain_text("of what follows “p” first appear?")
    asked.get_by_role("button", name="Only after the last layer").click()
    expect(said).to_have_text(re.compile("^(Yes|No: ).* first appears (after layer|with the embedding)"))
    page.get_by_role("group", name="All heads").get_by_role("button", name=re.compile("^1·1")).click()
    settle(page, 10)
    expect(said).to_have_text(re.compile("^(Yes|No: )"))
    say(page, "To be")
    expect(asked).to_contain_text("of what follows “e” first appear?")
    expect(said).to_be_hidden()


@pytest.mark.slow
def test_an_answer_is_not_taken_for_one_to_another_question(page: Any) -> None:
    open_rung(page, 5)
    asked = page.locator(".hl-prediction")
    said = asked.get_by_role("status")
    asked.get_by_role("button", name="“step”, the last word").click()
    expect(said).to_have_text(re.compile("^No: “starts”"))
    say(page, "To be or not")
    expect(asked).to_contain_text("one word of your sentence")
    expect(said).to_be_hidden()
    expect(asked.get_by_role("button", name="Which of them comes first")).to_be_enabled()
    page.reload()
    show_page(page, "Learn")
    settle(page, 5)
    expect(said).to_be_hidden()
    page.get_by_role("button", name="Raschka’s sentence").click()
    expect(said).to_have_text(re.compile("^No: “starts”"))


@pytest.mark.slow
def test_the_prediction_about_another_token_of_the_model_s_text_is_another(page: Any) -> None:
    open_rung(page, 10)
    asked = page.locator(".hl-prediction")
    asked.get_by_role("button", name="Only after the last layer").click()
    page.get_by_role("group", name="The token to follow").get_by_role("button").nth(1).click()
    settle(page, 10)
    expect(asked.get_by_role("status")).to_have_text(re.compile("^(Yes|No: )"))
    open_rung(page, 9)
    open_rung(page, 10)
    expect(asked).to_contain_text("of what follows “o” first appear?")
    expect(asked.get_by_role("status")).to_be_hidden()


@pytest.mark.slow
def test_every_rung_has_an_exercise_on_the_visitor_s_own_sentence(page: Any) -> None:
    own = page.get_by_role("region", name="An exercise on your sentence")
    for rung in range(1, LAST_PAGE):
        open_rung(page, rung)
        settle(page, rung)
        expect(own.get_by_label("Your number")).to_be_visible()
        assert "NaN" not in own.text_content() and "undefined" not in own.text_content()
    open_rung(page, 5)
    score = numbers(page, "Attention scores")[1][0]
    own.get_by_label("Your number").fill("0")
    own.get_by_role("button", name="Check").click()
    expect(own.get_by_role("status")).to_have_text(re.compile("^Not yet. .*Hint: "))
    own.get_by_label("Your number").fill(str(score))
    own.get_by_role("button", name="Check").click()
    expect(own.get_by_role("status")).to_have_text(re.compile("^Yes"))
    page.get_by_role("button", name="Hello shiny sun").click()
    expect(own).to_contain_text("“shiny” has the numbers 0.5300, 0.3400, 0.9800")
    expect(own.get_by_label("Your number")).to_be_enabled()
    open_rung(page, 7)
    a, b = numbers(page, "Weights without the mask")[1][:2]
    own.get_by_label("Your number").fill(f"{a}/{a + b}")
    own.get_by_role("button", name="Check").click()
    expect(own.get_by_role("status")).to_have_text(re.compile("^Yes"))


def test_the_last_page_says_what_was_learned(page: Any) -> None:
    open_rung(page, 1)
    page.get_by_role("button", name="The word list").click()
    task = exercise(page, 0)
    task.get_by_label("Your number").fill("9")
    task.get_by_role("button", name="Check").click()
    open_rung(page, LAST_PAGE)
    expect(page.get_by_role("heading", name="What you know now")).to_be_visible()
    expect(page.get_by_text("You have seen 1 of 11 rungs, predicted 1 of 11 results and solved 1 of")).to_be_visible()
    rows = page.get_by_role("table", name="Your progress").locator("tbody tr")
    expect(rows).to_have_count(11)
    expect(rows.first).to_contain_text("1 of 4")
    # Every rung is linked from the formula, and each part of the picture is a link.
    links = page.locator(".hl-formula a > sup").all_text_contents()
    assert sorted(set(map(int, links))) == list(range(1, 11))
    expect(page.locator(".hl-diagram .hl-part:visible")).to_have_count(10)
    for title, rung in [("Attention", 8), ("Softmax", 5)]:
        page.locator(f".hl-diagram .hl-part[aria-label^='{title}']:visible").click()
        settle(page, rung)
        open_rung(page, LAST_PAGE)
    page.locator(".hl-formula a", has_text="mask").click()
    settle(page, 7)
    open_rung(page, LAST_PAGE)
    page.get_by_role("link", name="Ask", exact=True).click()
    expect(page.get_by_role("region", name="Ask").get_by_role("button", name="What is this head for?")).to_be_visible()


@pytest.mark.slow
def test_the_training_can_be_looked_back_through(page: Any) -> None:
    open_rung(page, 3)
    expect(page.get_by_text("4.8786 (printed, of one batch)")).to_be_visible()
    expect(page.get_by_text("when the input is [18, 47] the target is 56")).to_be_visible()
    # It opens with the lecture's training, at its last step.
    expect(page.get_by_text("Already trained: the experiment of Andrej Karpathy’s lecture")).to_be_visible()
    for slider in ("the table after step", "steps"):
        expect(page.get_by_label(slider, exact=True)).to_have_attribute("aria-valuetext", "10,000")
    expect(page.get_by_text("training loss of 50 batches at a time: it may dip below the floor")).to_be_visible()
    expect(page.get_by_text("the loss is 2.4667 on the training part, 2.4864 on the held-out tenth")).to_be_visible()
    experiment = page.get_by_role("table", name="Karpathy’s experiment and yours")
    for part, loss in (("training part", 2.4667), ("held-out tenth", 2.4864)):  # one experiment, one number
        expect(experiment.get_by_role("row", name=f"trained, on the {part}")).to_contain_text(f"{loss} (measured here)")
    chips = page.locator(".hl-chips li")
    expect(chips).to_have_count(33)
    chips.nth(1).get_by_role("button").click()
    p, nats = (number(found) for found in chips.nth(1).locator("small").text_content().split(" · "))
    total = number(page.locator(".hl-picture .hl-unfold output").text_content())
    assert total == pytest.approx(-math.log(p), abs=2e-3) and total == pytest.approx(nats, abs=6e-3)
    expect(page.get_by_text("Its 65 characters, sorted")).to_be_visible()
    expect(page.get_by_text("shape (1115394,)")).to_be_visible()
    page.get_by_label("the table after step").fill("0")
    expect(page.get_by_text("the loss is 4.7262 on the training part")).to_be_visible()
    page.get_by_label("Text to learn from", exact=True).fill(TRAINING_TEXT)
    move(page, "steps", 0, "200")
    page.get_by_role("button", name="Train it").click()
    done = page.get_by_text(re.compile(r"^Done\. Loss on the training part"))
    expect(done).to_be_visible(timeout=60_000)
    expect(done).to_contain_text("On the held-out tenth it is")
    alphabet = len(set(TRAINING_TEXT))
    expect(page.get_by_text(f"predicts the next of {alphabet} characters")).to_be_visible()
    expect(page.locator(".hl-chart .hl-line-1")).to_have_attribute("points", re.compile("^\\d.+ "))
    trained = numbers(page, "Which character follows which")
    wrote = page.get_by_label("Its text after training").text_content()
    page.get_by_label("the table after step").fill("0")
    expect(page.get_by_text(re.compile("^After step 0: the loss is "))).to_be_visible()
    assert numbers(page, "Which character follows which") != trained
    expect(page.get_by_label("Its text after training")).not_to_have_text(wrote)
    assert all(max(row) < 0.99 for row in numbers(page, "Which character follows which"))


@pytest.mark.slow
def test_a_text_that_is_too_long_is_refused_before_it_is_sent(page: Any) -> None:
    open_rung(page, 3)
    text = page.get_by_label("Text to learn from", exact=True)
    paste = "(box, text) => { box.value = text; box.dispatchEvent(new Event('input')); }"
    text.evaluate(paste, "to be or not " * 80_000)
    expect(
        page.get_by_text("The text has 1,040,000 characters; a bigram model learns from 40,000 at most.")
    ).to_be_visible()
    expect(page.get_by_role("button", name="Train it")).to_be_disabled()
    page.get_by_role("button", name="Use the first 40,000").click()
    assert len(text.input_value()) == MAX_TRAINING_TEXT_CHARACTERS
    expect(page.get_by_role("button", name="Train it")).to_be_enabled()
