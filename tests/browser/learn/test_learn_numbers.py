"""Numbers on the Learn tab in Chromium: their origin, what they highlight, and what changing one changes."""

import re
from typing import Any

import pytest
import torch
from playwright.sync_api import expect

from helpers.learn_page import move, number, numbers, open_rung, say, settle, stamps, table, unfolded
from helpers.oracles import published
from helpers.oracles.published import assert_close
from model import ladder
from model.ladder.block import gelu


def cell(page: Any, name: str, row: int, column: int) -> Any:
    return table(page, name).locator("tbody tr").nth(row).locator("td").nth(column)


def lit(page: Any, name: str, css: str) -> list[tuple[int, int]]:
    places = f"""t => [...t.querySelectorAll('tbody tr')].flatMap((line, r) =>
        [...line.querySelectorAll('td')].flatMap((c, i) => c.classList.contains('{css}') ? [[r, i]] : []))"""
    return [(r, c) for r, c in table(page, name).evaluate(places)]


@pytest.mark.slow
def test_pointing_at_a_number_highlights_the_numbers_it_is_computed_from(page: Any) -> None:
    open_rung(page, 5)
    cell(page, "Attention scores", 3, 4).hover()
    assert lit(page, "The words x", "hl-left") == [(3, 0), (3, 1), (3, 2)]
    assert lit(page, "The words x", "hl-right") == [(4, 0), (4, 1), (4, 2)]
    terms, total = unfolded(page)
    assert_close(total, published.SIMPLE_SCORES[3][4])
    so_far = [number(text[2:]) for text in page.locator(".hl-picture > .hl-unfold .hl-term i").all_text_contents()]
    assert_close(so_far, torch.tensor([term[2] for term in terms]).cumsum(0)[1:].tolist(), atol=2e-4)
    cell(page, "Context vectors", 2, 1).hover()
    assert lit(page, "Attention weights", "hl-left") == [(2, i) for i in range(6)]
    assert lit(page, "The words x", "hl-right") == [(i, 1) for i in range(6)]
    cell(page, "Context vectors", 2, 1).locator("button").click()  # so that the pointer can move to the terms
    for term in (3, 4):  # leaving the table draws the terms again, under the pointer
        page.locator(".hl-picture > .hl-unfold .hl-added").nth(term).hover()
    assert lit(page, "The words x", "hl-now") == [(4, 1)]


def test_the_weights_inside_a_block_are_opened(page: Any) -> None:
    open_rung(page, 9)
    weight = cell(page, "Attention weights, head 0", 3, 1).locator("button")
    weight.hover()  # the explanation opens, and makes room for itself
    weight.click()
    words = page.locator(".hl-picture > .hl-unfold").text_content()
    query, key, score = (
        number(found)
        for found in re.search(r"= (−?[\d.]+) × (−?[\d.]+) = (−?[\d.]+),", words).groups()  # type: ignore[union-attr]
    )
    assert abs(query * key - score) < 2e-4
    total = number(page.locator(".hl-picture > .hl-unfold output").text_content())
    assert_close(total, numbers(page, "Attention weights, head 0")[3][1])
    assert lit(page, "Layer norm", "hl-left") == [(3, i) for i in range(3)]


@pytest.mark.slow
def test_the_hidden_numbers_are_those_of_the_word_that_is_pointed_at(page: Any) -> None:
    open_rung(page, 9)
    cell(page, "What the MLP adds", 3, 1).locator("button").click()
    figure = page.locator("figure.hl-figure", has=page.get_by_role("table", name="Hidden numbers", exact=True))
    expect(figure.locator("figcaption")).to_contain_text("of “with”")
    assert lit(page, "Hidden numbers", "hl-left") == [(i, 1) for i in range(12)]
    before, after = torch.tensor(numbers(page, "Hidden numbers")).T
    assert_close(gelu(before), after, atol=1e-2)  # shown with two decimals
    factors = page.locator(".hl-picture > .hl-unfold .hl-term small").all_text_contents()[:12]
    assert_close([number(text.split(" × ")[0]) for text in factors], after, atol=6e-3)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.1, 1.0])
def test_what_epsilon_does_is_said_in_numbers(page: Any, scale: float) -> None:
    open_rung(page, 9)
    move(page, "x ×", [0.1, 0.2, 0.5, 1.0].index(scale), str(scale).removesuffix(".0"))
    settle(page, 9)
    variance = (scale * torch.tensor(published.INPUTS)).var(dim=1, correction=0)
    percent = 100 * (1 - (variance / (variance + 1e-5)).sqrt())
    expect(page.get_by_text(f"ε avoids a division by 0 and takes off {percent.max():.2f}% at most.")).to_be_visible()


@pytest.mark.slow
def test_the_strips_have_a_table(page: Any) -> None:
    open_rung(page, 10)
    strip = page.locator("figure.hl-figure", has=page.locator(".hl-strip")).first
    strip.get_by_role("button", name="Show Token embedding as a table").click()
    values = [number(found) for found in strip.locator("td").all_text_contents()]
    assert len(values) == 32
    assert strip.locator(".hl-strip-value").text_content() == f"number 0: {values[0]:.4f}".replace("-", "−")


@pytest.mark.slow
def test_the_way_to_a_training_of_ones_own(page: Any) -> None:
    open_rung(page, 3)
    page.get_by_role("link", name="train your own", exact=True).click()
    expect(page.get_by_role("heading", name="Train your own GPT")).to_be_visible()


def test_a_number_is_typed_and_everything_follows(page: Any) -> None:
    open_rung(page, 5)
    cell(page, "The words x", 1, 0).click()
    page.keyboard.type("-1.5")
    expect(page.get_by_label("Change this number:")).to_have_value("-1.5")
    expect(cell(page, "The words x", 1, 0)).to_have_text("−1.50")
    expect(page.get_by_text("You have changed 1 number; all that follows is recomputed.")).to_be_visible()
    x = torch.tensor(published.INPUTS)
    x[1, 0] = -1.5
    expected = ladder.attention_without_weights(x)
    assert_close(numbers(page, "Attention scores"), expected.scores)
    assert_close(numbers(page, "Context vectors"), expected.context)
    open_rung(page, 7)  # the other rungs change too
    expect(cell(page, "The words x", 1, 0)).to_have_text("−1.50")
    page.get_by_role("button", name="linear layers, seed 789").click()
    page.get_by_role("button", name="Reset the numbers").click()
    expect(cell(page, "The words x", 1, 0)).to_have_text("0.55")
    settle(page, 7)
    assert_close(numbers(page, "Attention weights"), published.CAUSAL_WEIGHTS)


@pytest.mark.slow
def test_a_score_is_typed_over_a_zero_and_only_the_softmax_follows(page: Any) -> None:
    open_rung(page, 4)
    before = numbers(page, "Averages")
    cell(page, "Scores, the future masked", 2, 0).click()
    page.keyboard.type("2")
    expect(page.get_by_text("With your scores the average is weighted")).to_be_visible()
    settle(page, 4)
    scores = torch.zeros(6, 6)
    scores[2, 0] = 2
    x = torch.tensor(published.INPUTS)
    assert_close(numbers(page, "Weights"), ladder.average_by_softmax(torch.eye(6), scores))
    assert_close(numbers(page, "Averages"), ladder.average_by_softmax(x, scores))
    cell(page, "Averages", 2, 1).click()
    terms, total = unfolded(page)
    assert_close(sum(term[2] for term in terms), total, atol=3e-4)
    expect(page.locator(".hl-sticky .hl-stamp")).to_be_hidden()  # the three ways now differ
    cell(page, "Scores, the future masked", 0, 3).click()
    expect(page.get_by_label("Change this number:")).to_have_count(0)  # the future stays masked
    page.get_by_role("button", name="a loop", exact=True).click()
    assert numbers(page, "Averages") == before
    page.get_by_role("button", name="Reset the scores").click()
    expect(cell(page, "Scores, the future masked", 2, 0)).to_have_text("0.00")
    assert max(stamps(page)) <= 1e-6


@pytest.mark.slow
def test_two_words_are_swapped_and_keep_their_context_vectors(page: Any) -> None:
    open_rung(page, 5)
    before = numbers(page, "Context vectors")
    page.get_by_role("button", name="Swap two words").click()
    expect(page.get_by_text("“step” and “journey” have changed places")).to_be_visible()
    rows = table(page, "Context vectors").locator("tbody th")
    expect(rows).to_have_text(["Your", "step", "starts", "with", "one", "journey"])
    after = numbers(page, "Context vectors")
    assert_close([after[i] for i in (0, 5, 2, 3, 4, 1)], before)
    assert max(stamps(page)) <= 1e-6 and len(stamps(page)) == 3
    cell(page, "The words x", 1, 0).click()  # a changed number stays with its word
    page.keyboard.type("1")
    expect(cell(page, "The words x", 1, 0)).to_have_text("1.00")
    settle(page, 5)
    page.get_by_role("button", name="Swap them back").click()
    expect(cell(page, "The words x", 5, 0)).to_have_text("1.00")
    expect(cell(page, "The words x", 1, 0)).to_have_text("0.55")
    say(page, "Hello")
    expect(page.get_by_role("button", name="Swap two words")).to_be_hidden()


@pytest.mark.slow
def test_dragging_a_number_changes_it(page: Any) -> None:
    open_rung(page, 6)
    cell(page, "W query", 0, 0).scroll_into_view_if_needed()
    box = cell(page, "W query", 0, 0).bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 40, y, steps=4)
    page.mouse.up()
    shown = 0.2961 + 0.4
    expect(cell(page, "W query", 0, 0)).to_have_text(re.compile(r"0\.6\d+|0\.7\d+"))
    assert number(cell(page, "W query", 0, 0).text_content()) == pytest.approx(shown, abs=0.02)
    settle(page, 6)
    w = torch.tensor(numbers(page, "W query"))
    assert_close(numbers(page, "Queries"), torch.tensor(published.INPUTS) @ w, atol=2e-4)
    page.get_by_role("button", name="Reset the matrices").click()
    expect(cell(page, "W query", 0, 0)).to_have_text("0.30")


@pytest.mark.slow
def test_where_the_numbers_of_a_sentence_are_from_is_said(page: Any) -> None:
    open_rung(page, 5)
    expect(page.get_by_text("They are made-up numbers, those that Raschka’s book uses.")).to_be_visible()
    say(page, "Your journey starts with one step.")
    expect(page.locator(".hl-note")).to_have_text("Raschka’s book has no numbers for “.”: the pictures leave it out.")
    assert_close(numbers(page, "Context vectors"), published.SIMPLE_CONTEXT)
    say(page, "What is in a name")
    expect(page.get_by_text("They are trained: the token embeddings of tiny")).to_be_visible()
    page.get_by_role("button", name="random", exact=True).click()
    expect(page.get_by_text("They are random: the sums of rung 2 (seed 123).")).to_be_visible()


def test_weights_are_transferred(page: Any) -> None:
    open_rung(page, 6)
    verdict = page.get_by_text(re.compile("The two outputs differ"))
    expect(verdict).to_be_visible()
    for group in page.get_by_role("group", name="copy").all():
        group.get_by_role("button", name=".reshape(3, 2)").click()
    expect(verdict).to_be_visible()
    for group in page.get_by_role("group", name="copy").all():
        group.get_by_role("button", name=".T", exact=True).click()
    expect(page.get_by_text("Solved: both outputs are the same")).to_be_visible()


@pytest.mark.slow
def test_a_click_uncovers_the_rest_of_the_table(page: Any) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    open_rung(page, 9)
    shown, panel = table(page, "Hidden numbers"), page.locator(".hl-picture > .hl-unfold")
    shown.evaluate("table => table.scrollIntoView({ block: 'end' })")
    shown.locator("tbody button").nth(2).click()
    bottom, top = (each.bounding_box() for each in (shown, panel))
    assert bottom["y"] + bottom["height"] <= top["y"]
