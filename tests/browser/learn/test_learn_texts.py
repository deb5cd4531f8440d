"""The Learn tab with texts of all kinds: published windows and losses, what is kept, and texts that a model cannot
read.
"""

import re
from typing import Any

import pytest
import torch
from playwright.sync_api import expect

from helpers import also_slow
from helpers.gate import Gate, News
from helpers.learn_page import LAST_PAGE, move, numbers, open_rung, say, settle, stamps, table
from helpers.oracles import published
from helpers.page import show_page
from helpers.texts import Texts
from model import ladder
from model.ladder.bigram import BigramTraining
from model.ladder.terms import seeded
from web.learn.lesson_request import MAX_TRAINING_TEXT_CHARACTERS

TRAINING_TEXT = "to be or not to be, that is the question. " * 40


def train(page: Any) -> str:
    """Press the button and return the final message."""
    page.get_by_role("button", name="Train it").click()
    done = page.get_by_text(re.compile(r"^Done\. Loss on the training part"))
    expect(done).to_be_visible(timeout=120_000)
    return done.text_content()


@pytest.mark.slow  # 10,000 steps; that a training learns is tried in test_learn.py
def test_the_published_losses_of_the_bigram_model(page: Any, texts: Texts) -> None:
    text = texts.shakespeare
    tokenizer = ladder.CharacterTokenizer(text)
    alphabet = "".join(tokenizer.characters)
    training = text[: int(published.SPLIT * len(text))]
    # Its loss on the published batch is tested in tests/parity/test_book_text.py.
    model = seeded(1337, lambda: ladder.BigramModel(65))
    # As much text as may be pasted, from all parts and with every character, so that the table is the published one.
    piece, n_pieces = 1_000, MAX_TRAINING_TEXT_CHARACTERS // 1_000 - 1
    step = len(training) // n_pieces
    training_text = "".join(training[i * step : i * step + piece] for i in range(n_pieces)) + alphabet
    ids = torch.tensor([tokenizer.encode(training_text)])
    open_rung(page, 3)
    # Set as if pasted, since Playwright would type it line by line.
    page.get_by_label("Text to learn from", exact=True).evaluate("(box, text) => (box.value = text)", training_text)
    ids = ids[:, : int(published.SPLIT * ids.shape[1])]
    untrained, trained, held_out, uniform, _ = map(float, re.findall(r"\d+\.\d{4}", train(page)))
    assert untrained == pytest.approx(model.loss(ids[:, :-1], ids[:, 1:]).item(), abs=1e-4)
    made = ladder.counted_bigram_loss(ids[0], 65)
    assert trained == pytest.approx(texts.expect(published.BIGRAM_LOSS_TRAINED, made), abs=texts.expect(0.03, 0.06))
    assert held_out == pytest.approx(trained, abs=0.3)  # its end is the alphabet
    assert uniform == pytest.approx(4.174, abs=1e-3)


@pytest.mark.slow
def test_text_and_training_stay_when_another_rung_is_opened(page: Any) -> None:
    open_rung(page, 3)
    text = page.get_by_label("Text to learn from", exact=True)
    text.fill(TRAINING_TEXT)
    move(page, "steps", 0, "200")
    said = train(page)
    wrote = page.get_by_label("Its text after training").text_content()
    follows = numbers(page, "Which character follows which")
    open_rung(page, 4)
    open_rung(page, 3)
    expect(page.get_by_text(said)).to_be_visible()
    expect(text).to_have_value(TRAINING_TEXT)
    expect(page.get_by_label("steps", exact=True)).to_have_attribute("aria-valuetext", "200")
    expect(page.get_by_label("Its text after training")).to_have_text(wrote)
    expect(page.locator(".hl-chart .hl-line-0")).to_have_attribute("points", re.compile("^\\d.+ "))
    assert numbers(page, "Which character follows which") == follows
    expect(page.locator(".hl-chips li")).to_have_count(33)
    say(page, "that is")
    expect(text).to_have_value(TRAINING_TEXT)
    expect(page.get_by_text("Your sentence has changed: train again")).to_be_visible()
    train(page)
    expect(page.locator(".hl-chips li")).to_have_count(7)


@pytest.mark.slow
def test_a_training_that_was_left_is_stopped(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, advance = Gate(News()), BigramTraining.advance
    monkeypatch.setattr(
        BigramTraining, "advance", lambda training, _: gate.pass_through(lambda: False) and advance(training, 0)
    )
    gate.release(3)
    open_rung(page, 3)
    page.get_by_label("Text to learn from", exact=True).fill(TRAINING_TEXT)
    move(page, "steps", 0, "200")
    page.get_by_role("button", name="Train it").click()
    expect(page.get_by_text(re.compile(r"^Step 3 of 200: the loss is \d"))).to_be_visible()
    open_rung(page, 4)
    open_rung(page, 3)
    expect(page.get_by_text(re.compile(r"^Stopped, the last loss was \d"))).to_be_visible()
    gate.release()  # the report at which the server notices
    expect(page.get_by_role("button", name="Train it")).to_be_enabled()


def test_who_would_write_the_text_is_named(page: Any) -> None:
    open_rung(page, 3)
    expect(page.get_by_placeholder("leave this empty: tiny will write one.")).to_be_visible()
    with page.expect_request("**/learn/bigram") as asked:
        page.get_by_role("button", name="Train it").click()
    assert asked.value.post_data_json["model"] == "tiny"
    page.get_by_role("button", name="Stop").click()


@pytest.mark.slow
def test_the_rows_of_the_table_add_up_to_1(page: Any) -> None:
    open_rung(page, 3)
    sums = [sum(row) for row in numbers(page, "Which character follows which")]
    assert sums == [pytest.approx(1, abs=0.0005 * 15)] * 14
    table(page, "Which character follows which").locator("tbody tr:first-child td button").last.click()
    expect(page.get_by_text("Any other character after")).to_be_visible()


@pytest.mark.slow
def test_a_sentence_may_lie_below_the_floor_of_the_training_text(page: Any) -> None:
    open_rung(page, 3)
    said = "= 2.4507, is the loss on your sentence. The floor of part 2, 2.4519, holds"
    expect(page.get_by_text(said)).to_be_visible()


@pytest.mark.parametrize(
    ("sentence", "read", "more"),
    [
        ("Hi 🦊 there", "Hi  there", ""),
        *also_slow(
            (
                "🦊 🦊",
                " ".join(published.SENTENCE),
                " Your sentence contains nothing else, so the picture shows Raschka’s sentence.",
            )
        ),
    ],
)
def test_what_a_model_cannot_read_is_named_and_left_out(page: Any, sentence: str, read: str, more: str) -> None:
    open_rung(page, 10)
    say(page, sentence)
    expect(page.locator(".hl-note")).to_have_text(
        f"tiny reads single characters and has never seen '🦊', which the picture leaves out.{more}"
    )
    settle(page, 10)
    expect(page.locator(".hl-problem").first).to_be_empty()
    assert max(stamps(page)) <= 1e-5
    expect(page.locator(".hl-real .hl-unfold")).to_contain_text(f"softmax over the {len(read)} keys so far")
    page.get_by_role("link", name="Open this head in Look").click()
    expect(page.get_by_role("group", name="Text", exact=True)).to_have_text(read)


@pytest.mark.slow
def test_a_space_can_be_seen_in_the_arithmetic(page: Any) -> None:
    open_rung(page, 10)
    say(page, "I ")
    expect(page.locator(".hl-real .hl-unfold p").first).to_contain_text(": · (query) looks at ")


@pytest.mark.slow
def test_who_starts_over_finds_nothing_answered(page: Any) -> None:
    open_rung(page, 1)
    page.get_by_role("button", name="The word list").click()
    say(page, "What is in a name?")
    open_rung(page, LAST_PAGE)
    page.get_by_role("button", name="Start over").click()
    settle(page, 1)
    expect(page.get_by_role("button", name="The word list")).to_be_enabled()
    expect(page.get_by_label("Your sentence", exact=True)).to_have_value(" ".join(published.SENTENCE))
    expect(page.locator(".hl-seen")).to_have_count(1)
    page.reload()
    show_page(page, "Learn")
    settle(page, 1)
    expect(page.get_by_role("button", name="The word list")).to_be_enabled()


@pytest.mark.slow
def test_a_technical_term_is_defined_where_it_is_first_used(page: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    for rung, name in ((2, "seed"), (3, "logits"), (3, "nats"), (5, "dot product")):
        open_rung(page, rung)
        word = page.get_by_role("button", name=name, exact=True)
        opened = "e => getComputedStyle(e, '::after').content"
        assert word.evaluate(opened) == "none"
        word.focus()
        assert word.get_attribute("data-definition") in word.evaluate(opened)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")  # it stays within the page
        word.press("Escape")
        assert word.evaluate(opened) == "none"
