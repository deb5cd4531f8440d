"""Two readings of one text side by side: the numbers are the model's, and both sides move together."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from helpers.page import (
    change_settings,
    choose_model,
    compare,
    expect_drawn,
    head_panel,
    is_shown_as,
    keep,
    point,
    ranking,
    readout,
    write,
    write_button,
    write_one,
)
from helpers.server import Server, save_tiny
from model import load
from model.checkpoint.write import write_snapshot

TEXT = "now is the winter"


@pytest.mark.slow
def test_a_muted_head(page: Any, server: Server) -> None:
    loaded = server.services.served.models["tiny"]
    written = write_one(page, TEXT)
    page.get_by_role("button", name="0·2,").click()
    compare(page, "with heads muted")
    mask = [[1.0, 1.0, 0.0, 1.0], [1.0] * 4, [1.0] * 4]
    expect(page.get_by_role("region", name="Without head 2 of layer 0")).to_be_visible()
    plain, muted = loaded.trace(written).attention, loaded.trace(written, head_mask=mask).attention
    difference = (muted - plain).abs().sum(-1).mean(-1) / 2
    for name, shown in ranking(page).items():
        layer, head = map(int, re.findall(r"\d+", name))
        assert layer > 0 and abs(float(difference[layer, head]) - shown) <= 0.00051
    assert max(ranking(page).values()) == pytest.approx(float(difference.max()), abs=0.00051)
    # A head that differs is open; the same cell is described on both sides, and so is their difference.
    head, layer = map(int, re.findall(r"\d+", head_panel(page, "B").get_attribute("aria-label")))
    assert layer > 0
    point(head_panel(page, "A"), 9, 4)
    for letter, attention in (("A", plain), ("B", muted)):
        query, key, number = readout(head_panel(page, letter))
        assert (query, key) == (9, 4) and is_shown_as(float(attention[layer, head, 9, 4]), number)
    shown = float(page.locator(".hs-pair-difference .hs-number").get_attribute("data-difference"))
    assert shown == pytest.approx(float(muted[layer, head, 9, 4] - plain[layer, head, 9, 4]), abs=1e-6)
    # Clicking a tile mutes another head, and a second click restores it.
    tiles = page.get_by_role("group", name="Difference of each head")
    tiles.get_by_role("button", name=re.compile("^Mute 1·3,")).click()
    expect(page.get_by_role("region", name="Without heads 0·2 and 1·3")).to_be_visible()
    tiles.get_by_role("button", name=re.compile("^Restore 0·2,")).click()
    expect(page.get_by_role("region", name="Without head 3 of layer 1", exact=True)).to_be_visible()
    page.get_by_role("button", name="Restore all").click()
    expect(page.get_by_text("No head attends differently")).to_be_visible()
    # A text shown alone says, too, that a head is removed.
    tiles.get_by_role("button", name=re.compile("^Mute 1·3,")).click()
    expect(page.get_by_role("region", name="Without head 3 of layer 1", exact=True)).to_be_visible()
    keep(page, "B")
    tile = page.locator(".hs-grid").get_by_role("button", name="1·3,")
    expect(tile).to_have_class(re.compile("hs-muted"))
    tile.click()
    expect(page.locator(".hs-open.hs-removed")).to_contain_text("Removed: this head still attends")


@pytest.mark.slow
def test_the_selected_token_stays_selected_in_both_texts(page: Any) -> None:
    page.locator(".hs-writing .hs-text [data-i='25']").click()  # after the newest, both would rest
    compare(page, "with heads muted")
    for letter in "AB":
        expect(page.get_by_role("group", name=f"Text {letter}", exact=True).locator(".hs-chosen")).to_have_attribute(
            "data-i", "25"
        )
    expect(page.locator(".hs-pair-step")).to_contain_text("token 25")


def test_both_texts_show_where_they_diverge_by_whole_lines(page: Any) -> None:
    """Neither is scrolled to its end while the other is at its top."""
    change_settings(page, seed=1, length=50)
    write(page, "\n".join("ROMEO"))
    expect(page.get_by_text("50 tokens written")).to_be_visible()
    page.locator(".hs-bars button:enabled").nth(1).click()
    expect(page.locator(".hs-compare[data-state=done]")).to_be_visible()
    page.wait_for_function(LINES_OF_DIVERGENCE)


LINES_OF_DIVERGENCE = """() => {
    const lines = [...document.querySelectorAll('.hs-pair-text .hs-text')].map((text) => {
        const line = parseFloat(getComputedStyle(text).lineHeight);
        const [scrolled, divergence] = [text.scrollTop / line, text.querySelector('.hs-divergence')];
        const top = divergence && (divergence.getBoundingClientRect().top - text.getBoundingClientRect().top) / line;
        return Math.abs(scrolled - Math.round(scrolled)) < 0.05 ? Math.floor(top + 0.01) : NaN;
    });
    return lines.length === 2 && lines[0] === lines[1] && lines[0] >= 0;
}"""


def test_both_sides_move_as_one(page: Any, server: Server) -> None:
    write_one(page, TEXT)
    compare(page, "with heads muted")
    boards = page.locator(".hs-compare .hs-board")
    expect(boards).to_have_count(3)
    ranking(page)
    measure = "all => all.map((e) => e.getBoundingClientRect().toJSON())"
    boxes = boards.evaluate_all(measure)  # at one moment
    assert len({(box["y"], int(box["width"]), box["height"]) for box in boxes}) == 1
    sizes = page.locator(".hs-compare .hs-board canvas").evaluate_all(
        "all => all.map((e) => [e.width, e.height].join())"
    )
    assert len(sizes) == 6 and len(set(sizes)) == 1
    assert len({boards.nth(i).get_attribute("data-margin") for i in range(3)}) == 1
    gaps = [boxes[i + 1]["x"] - boxes[i]["x"] for i in range(2)]
    assert abs(gaps[0] - gaps[1]) < 1
    # One set of controls serves both sides.
    page.locator(".hs-compare-more").get_by_role("button", name="More", exact=True).click()
    for label in ("Step", "Colour scale", "hide the first token", "Smallest weight drawn"):
        expect(page.get_by_label(label, exact=True).locator("visible=true")).to_have_count(1)
    page.keyboard.press("Escape")
    page.get_by_role("group", name="Text B").locator(".hs-token").nth(len(TEXT) - 1).click()
    for letter in "AB":
        chosen = page.get_by_role("group", name=f"Text {letter}").locator(".hs-query")
        expect(chosen).to_have_attribute("data-i", str(len(TEXT) - 1))
    # The keyboard moves the same cell on both sides.
    head_panel(page, "B").locator(".hs-board").focus()
    point(head_panel(page, "B"), 8, 3)
    page.keyboard.press("ArrowDown")
    assert [readout(head_panel(page, letter))[:2] for letter in "AB"] == [(9, 3), (9, 3)]
    page.keyboard.press("Enter")
    page.mouse.move(5, 5)
    assert [readout(head_panel(page, letter))[:2] for letter in "AB"] == [(9, 3), (9, 3)]
    page.locator(".hs-compare-more").get_by_role("button", name="More", exact=True).click()
    page.get_by_label("Colour scale").locator("visible=true").select_option("linear")
    # The next token of both, with the difference of the log-probabilities.
    page.get_by_role("region", name="Next token of both").get_by_text("Numbers").click()
    cells = page.get_by_role("region", name="Next token of both").get_by_role("row").nth(1).locator("td")
    expect(cells).to_have_count(3)


@pytest.mark.slow
def test_another_model_with_other_heads(page: Any, server: Server) -> None:
    loaded, other = (server.services.served.models[name] for name in ("tiny", "other"))
    written = write_one(page, TEXT)
    page.get_by_role("button", name="2·3,").click()
    compare(page, "with other")
    expect(page.get_by_role("region", name="other", exact=True)).to_be_visible()
    # The nearest head is shown, but is not called the same head, and is subtracted only once it is chosen.
    expect(head_panel(page, "B")).to_have_attribute("aria-label", re.compile("head 1 of layer 1"))
    expect(head_panel(page, "B")).to_contain_text(
        "B has no counterpart of head 3 of layer 2; it shows head 1 of layer 1"
    )
    difference = page.get_by_role("region", name="Difference, B minus A")
    expect(difference).to_contain_text("B has no counterpart of head 3 of layer 2, so it shows head 1 of layer 1")
    expect(difference.locator(".hs-board")).to_be_hidden()
    page.get_by_label("Head of side B").select_option(label="0·1")
    expect(difference.locator(".hs-board")).to_be_visible()
    point(head_panel(page, "B"), 7, 2)
    for letter, model, place in (("A", loaded, (2, 3)), ("B", other, (0, 1))):
        query, key, number = readout(head_panel(page, letter))
        attention = model.trace(written).attention
        assert (query, key) == (7, 2) and is_shown_as(float(attention[(*place, 7, 2)]), number)
    address = page.url
    assert parse_qs(urlsplit(address).query)["b_model"] == ["other"]
    keep(page, "B")
    expect(page.get_by_role("region", name="Attention weights, head 1 of layer 0")).to_be_visible()
    # The link restores both texts, and the head that each has open.
    page.goto(f"{server.url}/?{urlsplit(address).query}")
    expect(page.get_by_role("region", name="other", exact=True)).to_be_visible()
    expect(page.get_by_role("group", name="Text A")).to_have_text(written)


@pytest.mark.slow
def test_a_text_is_compared_with_that_of_another_training_step(
    browser: Any, launch: Callable[..., Server], tmp_path: Path
) -> None:
    save_tiny(tmp_path / "tiny", n_layer=3, n_head=4)
    for step in (10, 20, 40):
        early = load(save_tiny(tmp_path / f"at-{step}", seed=step, n_layer=3, n_head=4))
        write_snapshot(tmp_path / "tiny", step, early.config, early.gpt.state_dict())
    server = launch(tmp_path / "tiny")
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(server.url)
    expect_drawn(page)
    written = page.get_by_role("group", name="Text", exact=True).text_content()
    compare(page, "with another training step")
    expect(page.get_by_role("region", name="tiny, training step 20")).to_be_visible()
    page.get_by_label("Training step of B").fill("2")
    expect(page.get_by_role("region", name="tiny, training step 40")).to_be_visible()
    panel = head_panel(page, "B")
    expect(panel.locator(".hs-number")).not_to_be_empty()
    head, layer = map(int, re.findall(r"\d+", panel.get_attribute("aria-label")))
    point(panel, 9, 4)
    expected = load(tmp_path / "tiny@000040").trace(written).attention[layer, head, 9, 4]
    assert is_shown_as(float(expected), readout(panel)[2])
    page.reload()
    expect(page.get_by_role("region", name="tiny, training step 40")).to_be_visible()


@pytest.mark.slow
def test_a_text_that_the_other_model_cannot_read(page: Any) -> None:
    choose_model(page, "other")
    expect(write_button(page)).to_be_visible()
    page.route("**/look/read", lambda route: route.fulfill(status=400, json={"detail": "It has no é."}))
    page.get_by_role("button", name="Compare this text").click()
    page.get_by_role("menuitem", name="with tiny").click()
    expect(page.get_by_text("The text could not be read again: It has no é.")).to_be_visible()
    expect(page.get_by_role("region", name="Compare", exact=True)).to_have_count(0)
