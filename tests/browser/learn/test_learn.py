"""The Learn tab in Chromium: every rung shows the published numbers."""

import re
from typing import Any

import pytest
import torch
from playwright.sync_api import expect

from helpers.learn_page import move, number, numbers, open_rung, say, settle, stamps, table, unfolded
from helpers.oracles import published
from helpers.oracles.published import assert_close
from helpers.page import is_shown_as
from helpers.server import Server
from helpers.texts import MADE_TEA_IDS, Texts
from model import ladder


def ids(page: Any, place: int) -> list[str]:
    return page.locator(".hl-chips").nth(place).locator("small").all_text_contents()


def test_rung_1_text_to_tokens(page: Any, texts: Texts) -> None:
    open_rung(page, 1)
    expect(page.get_by_text("from 317 tokens: 256 bytes, 60 merges and a mark for the end of a text")).to_be_visible()
    say(page, "Hi there!")
    expect(page.locator(".hl-chips").nth(1)).to_contain_text("!")
    assert ids(page, 1) == [str(i) for i in published.CHAR_ENCODED_HI_THERE]
    assert "<|unk|>" in ids(page, 0)[0]  # the lesson's text does not have the word
    training_text = page.get_by_label("The training text", exact=True)
    training_text.fill(texts.verdict)
    training_text.blur()
    expect(page.get_by_text(f"from a list of {texts.expect(published.VERDICT_VOCABULARY, 13):,}")).to_be_visible()
    say(page, published.TEA_TEXT)
    expect(page.get_by_text(f"{len(published.TEA_WORD_IDS)} tokens from a list")).to_be_visible()
    expected = texts.expect(published.TEA_WORD_IDS, MADE_TEA_IDS)
    assert [int(text.split()[0]) for text in ids(page, 0)] == expected


@pytest.mark.slow
def test_rung_1_merges_step_by_step(page: Any) -> None:
    open_rung(page, 1)
    merging = page.locator("div", has=page.get_by_role("heading", name="Your sentence, merge by merge")).last
    words = merging.locator(".hl-spelled")
    assert words.locator("b").all_text_contents() == [*"YourĠjourneyĠstartsĠwithĠoneĠstep"]
    merge = merging.get_by_role("button", name="merge ▶")
    status, merged = merging.get_by_text(re.compile("^Step ")), 0
    while merge.is_enabled():
        merge.click()
        merged += int(re.search(r"in (\d+) place", status.text_content())[1])  # type: ignore[index]
    expect(status).to_have_text(re.compile("^Step (\\d+) of \\1,"))
    assert words.locator("b").count() == 33 - merged
    assert (
        words.locator("b").all_text_contents() == page.locator(".hl-chips").nth(2).locator("span").all_text_contents()
    )
    merging.get_by_role("button", name="◀ undo").click()
    expect(merge).to_be_enabled()
    move(page, "merges learned", 0, "0")
    expect(page.get_by_text("33 tokens instead of 33 bytes")).to_be_visible()


def test_rung_2_windows_one_target_at_a_time(page: Any) -> None:
    open_rung(page, 2)
    cells = table(page, "Window 1").locator("td span").all_text_contents()
    assert cells == ["journey", "starts", "with", "one", "starts", "with", "one", "step"]
    # One target at a time, with all tokens from which it may be predicted.
    expect(
        page.get_by_text("from “Your journey starts with” (4 tokens) the model has to predict “one”")
    ).to_be_visible()
    move(page, "example", 5, "6 of 8")
    expect(page.get_by_text("Window 1, target 1: from “journey starts” (2 tokens)")).to_be_visible()
    chips = page.locator(".hl-slide")
    assert chips.locator(".hl-given").all_text_contents() == ["journey", "starts"]
    assert chips.locator(".hl-wanted").all_text_contents() == ["with"]
    page.get_by_role("button", name="Predict “journey” from 1 token of window 0").click()
    expect(page.get_by_label("example", exact=True)).to_have_attribute("aria-valuetext", "1 of 8")
    table(page, "Their sum").locator("tbody tr").nth(2).locator("td").nth(1).hover()
    for name in ("Token embedding", "Position embedding"):
        expect(table(page, name).locator("tbody tr").nth(2).locator("td").nth(1)).to_have_class(
            re.compile("hl-left|hl-right")
        )
    move(page, "context_length", 2, "2")
    move(page, "stride", 2, "2")
    expect(page.get_by_text("2 windows of 2 from 6 tokens")).to_be_visible()
    assert table(page, "Window 1").locator("td span").all_text_contents() == ["starts", "with", "with", "one"]


@pytest.mark.slow
def test_rung_3_a_bigram_model_learns(page: Any, texts: Texts) -> None:
    text = texts.shakespeare[:20_000]
    tokenizer = ladder.CharacterTokenizer(text)
    trained_on = torch.tensor(tokenizer.encode(text[: int(published.SPLIT * len(text))]))
    floor = ladder.counted_bigram_loss(trained_on, len(tokenizer.characters))
    open_rung(page, 3)
    page.get_by_label("Text to learn from", exact=True).fill(text)
    page.get_by_role("button", name="Train it").click()
    done = page.get_by_text(re.compile(r"^Done\. Loss on the training part"))
    expect(done).to_be_visible(timeout=60_000)
    untrained, trained, held_out, n, uniform, shown_floor = (
        float(found) for found in re.findall(r"\d+\.\d{4}|\d+(?= characters)", done.text_content())
    )
    assert n == len(tokenizer.characters)
    assert trained < held_out < uniform
    assert_close([uniform, shown_floor], [torch.tensor(n).log().item(), floor])
    assert untrained > uniform > trained > floor > trained - 0.1
    expect(page.locator(".hl-chart .hl-line-0")).to_have_attribute("points", re.compile("^\\d.+ "))
    assert page.get_by_label("Its text after training").text_content() not in ("", "…")
    assert_close(max(max(row) for row in numbers(page, "Which character follows which")), 1.0, atol=1.0)
    expect(page.locator(".hl-chips li")).to_have_count(33)


@pytest.mark.slow
def test_rung_3_the_model_writes_the_text(page: Any) -> None:
    open_rung(page, 3)
    move(page, "steps", 0, "200")
    page.get_by_role("button", name="Train it").click()
    expect(page.get_by_text(re.compile(r"^Done\. Loss"))).to_be_visible(timeout=60_000)
    assert len(page.get_by_label("Text to learn from", exact=True).input_value()) > 300


@pytest.mark.slow
def test_rung_6_why_the_scale(page: Any) -> None:
    open_rung(page, 6)
    sharp = page.get_by_role("table", name="softmax of these scores × 8")
    expect(sharp).to_be_visible()
    assert_close([float(text) for text in sharp.locator("td:last-child").all_text_contents()], published.SOFTMAX_SHARP)
    move(page, "scores ×", 0, "1")
    diffuse = page.get_by_role("table", name="softmax of these scores × 1")
    expect(diffuse).to_be_visible()
    shown = [float(text) for text in diffuse.locator("td:last-child").all_text_contents()]
    assert_close(shown, published.SOFTMAX_DIFFUSE)
    sharpest = []
    for place, head_dim in ((4, 16), (8, 256)):
        move(page, "head_dim", place, str(head_dim))
        expect(page.get_by_text(f"head_dim {head_dim}: the scores have variance")).to_be_visible()
        unscaled, scaled = (
            float(t) for t in table(page, "Variance of the scores").locator("td:last-child").all_text_contents()
        )
        assert unscaled == pytest.approx(head_dim, rel=0.15) and scaled == pytest.approx(1, rel=0.15)
        one_query = table(page, "One query with 12 keys, without the division")
        weights = one_query.locator("td:last-child").all_text_contents()
        sharpest.append(max(map(float, weights)))
    assert sharpest[1] > 0.5


@pytest.mark.slow
def test_rung_7_masks_the_scores_of_rung_6(page: Any) -> None:
    say(page, "What is in a name?")
    open_rung(page, 6)
    scores = numbers(page, "Attention scores")
    open_rung(page, 7)
    expect(page.get_by_text("The scores of rung 6, from the same random matrices (seed 123).")).to_be_visible()
    assert numbers(page, "Attention scores") == scores
    page.get_by_role("button", name="Raschka’s sentence").click()
    open_with_the_book_s_matrices(page)
    assert numbers(page, "Attention scores") != scores
    expect(page.get_by_text("Scores from random linear layers (seed 789).")).to_be_visible()


def open_with_the_book_s_matrices(page: Any) -> None:
    open_rung(page, 7)
    page.get_by_role("button", name="linear layers, seed 789").click()
    settle(page, 7)


@pytest.mark.slow
def test_rung_7_the_mask_is_changed(page: Any) -> None:
    open_with_the_book_s_matrices(page)
    mask = table(page, "Masked scores").locator("tbody button")
    mask.nth(6 * 1 + 2).focus()
    page.keyboard.press("Enter")  # “journey” sees “starts”
    expect(page.get_by_text("You have changed 1 cell of the mask.")).to_contain_text(
        "“journey” sees “starts”, which it has to predict"
    )
    expect(mask.nth(6 * 1 + 2)).to_be_focused()
    expected = published.V2_WEIGHTS[1][:3]
    assert_close(numbers(page, "Attention weights")[1][:3], [weight / sum(expected) for weight in expected])
    assert_close(numbers(page, "Attention weights")[2:], published.CAUSAL_WEIGHTS[2:])
    mask.nth(6 * 3 + 1).click()
    expect(page.get_by_text("You have changed 2 cells of the mask.")).to_be_visible()
    expect(page.locator(".hl-picture > .hl-unfold")).to_contain_text("You have hidden journey from with.")
    assert numbers(page, "Masked scores")[3][1] == float("-inf") and numbers(page, "Attention weights")[3][1] == 0
    assert max(stamps(page)) <= 1e-6
    mask.nth(0).click()
    expect(page.locator(".hl-picture > .hl-unfold")).to_contain_text("A word always sees itself")
    page.get_by_role("button", name="Reset the mask").click()
    expect(page.get_by_role("button", name="Reset the mask")).to_be_hidden()
    assert_close(numbers(page, "Attention weights"), published.CAUSAL_WEIGHTS)


def test_rung_7_a_hidden_word_cannot_matter(page: Any) -> None:
    open_rung(page, 7)
    before, unmasked = numbers(page, "Attention weights"), numbers(page, "Weights without the mask")
    expect(page.get_by_text("Or change the last word’s numbers: with the mask, only its row changes.")).to_be_visible()
    table(page, "The words x").locator("tbody button").nth(3 * 5).click()
    page.keyboard.type("2")
    expect(page.get_by_text("You have changed 1 number")).to_be_visible()
    after = numbers(page, "Attention weights")
    assert after[:5] == before[:5] and after[5] != before[5]
    rows = zip(numbers(page, "Weights without the mask"), unmasked, strict=True)
    assert all(now != then for now, then in rows)


@pytest.mark.slow
def test_rung_7_a_larger_w_query_makes_the_weights_less_even(page: Any) -> None:
    say(page, "What is in a name")
    open_rung(page, 7)
    scores, last = torch.tensor(numbers(page, "Attention scores")), numbers(page, "Attention weights")[-1]
    move(page, "W query ×", 4, "100")
    settle(page, 7)
    said = "The scores of rung 6, from the same random matrices (seed 123), with W query × 100."
    expect(page.get_by_text(said)).to_be_visible()
    assert_close(numbers(page, "Attention scores"), scores * 100, atol=1e-2)
    assert max(numbers(page, "Attention weights")[-1]) > max(last)
    cell = table(page, "Attention scores").locator("tbody button").nth(1)
    cell.click()
    assert_close(unfolded(page)[1], number(cell.get_attribute("title")), atol=2e-4)


@pytest.mark.slow
def test_rung_8_measures_the_time_of_three_constructions(page: Any) -> None:
    open_rung(page, 8)
    move(page, "heads", 1, "2")
    move(page, "tokens", 0, "16")
    page.get_by_role("button", name="Measure now").click()
    expect(page.get_by_text("2 heads, 256 numbers per token, 16 tokens")).to_be_visible()
    times = table(page, "The same attention, built three ways").locator("td:last-child").all_text_contents()
    assert len(times) == 3 and all(re.fullmatch(r"\d+\.\d\d ms", text) for text in times)
    assert len(stamps(page)) == 5


def test_rung_10_a_head_of_the_model_and_the_way_to_it(page: Any, server: Server) -> None:
    open_rung(page, 10)
    loaded = server.services.served.models["tiny"]
    assert_close(numbers(page, "Raschka’s example, through MultiHeadAttention"), published.WEIGHT_SPLITS)
    page.get_by_role("group", name="All heads").get_by_role("button", name=re.compile("^1·2")).click()
    expect(page.get_by_role("application", name=re.compile("Matrix of head 2 of layer 1"))).to_be_visible()
    assert max(stamps(page)) <= 1e-5
    attention = loaded.trace(" ".join(published.SENTENCE)).attention[1, 2]
    board = page.get_by_role("application", name=re.compile("Matrix of head 2 of layer 1"))
    board.focus()
    for key in ("ArrowUp", "ArrowUp", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
    pair = page.locator(".hl-lesson .hs-pair small").all_text_contents()
    query, key = (int(re.search(r"\d+", text)[0]) for text in pair)  # type: ignore[index]
    shown = float(page.locator(".hl-lesson .hs-number").text_content())
    assert query == 30 and is_shown_as(float(attention[query, key]), shown)
    expect(page.locator(".hl-real .hl-unfold")).to_contain_text("Score in 1·2")
    expect(page.locator(".hl-real .hl-unfold")).to_contain_text(f"softmax over the {query + 1} keys so far")
    terms, total = unfolded(page, ".hl-real > .hl-unfold")
    assert len(terms) == 8 and sum(term[2] for term in terms) == pytest.approx(total, abs=1e-3)
    link = page.get_by_role("link", name="Open this head in Look")
    expect(link).to_have_attribute("href", re.compile(rf"locked={query}\.{key}$"))
    link.click()
    expect(page.get_by_role("region", name="Attention weights, head 2 of layer 1")).to_be_visible()
    expect(page.get_by_role("group", name="Text", exact=True)).to_have_text(" ".join(published.SENTENCE))


@pytest.mark.slow
def test_rung_10_follows_the_model_that_is_chosen(page: Any) -> None:
    open_rung(page, 10)
    expect(page.get_by_text("tiny, chosen at the top: 3 layers × 4 heads of 8 numbers")).to_be_visible()
    page.get_by_role("button", name="Model", exact=True).click()
    page.get_by_role("option", name="other").click()
    expect(page.get_by_text("other, chosen at the top: 2 layers × 2 heads of 16 numbers")).to_be_visible()
    settle(page, 10)
    assert max(stamps(page)) <= 1e-5
