"""The page in Chromium: a visitor writes, looks, and reads exact numbers."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers import also_slow
from helpers.page import (
    check_number,
    choose_model,
    expect_drawn,
    expect_model,
    is_shown_as,
    open_head,
    readout,
    show_page,
    show_summaries,
    spoken,
    stop,
    stop_button,
    text,
    write,
    write_button,
)
from helpers.server import CONTEXT, Server


@pytest.mark.gradio
def test_it_opens_with_something_to_see(page: Any, server: Server) -> None:
    expect(page).to_have_title("Headscope")
    expect(text(page)).to_have_text(re.compile(r"^ROMEO:.{20}", re.DOTALL))
    expect(page.get_by_label("Prompt")).to_have_value("ROMEO:")
    expect_model(page, "tiny", "3 layers × 4 heads")
    expect(page.get_by_role("button", name=re.compile(r"^\d+·\d+,"))).to_have_count(12)
    show_summaries(page)
    labels = ["", "H0", "H1", "H2", "H3", "mean", "rollout", "L0", "L1", "L2", "mean of all heads"]
    assert page.locator(".hs-grid .hs-label").all_text_contents() == labels
    expect_drawn(page)
    check_number(page, server.services.served.models["tiny"])


def test_text_and_matrix_grow_while_it_is_written(page: Any, server: Server, slow: Any) -> None:
    choose_model(page, "slow")
    write(page, "But soft")
    expect(stop_button(page)).to_be_visible()
    expect(write_button(page)).to_be_hidden()
    expected = len("But soft")
    for n_new in (1, 2, 5):
        expected += n_new
        for _ in range(n_new):
            slow.gate.release()
        expect(text(page)).to_have_text(re.compile(rf"^But soft.{{{expected - 8}}}$", re.DOTALL))
        # The newest token has not been read yet, so it has no row.
        expect(page.locator(".hs-heads .hs-grid")).to_have_attribute("data-rows", str(expected - 1))
        expect(page.locator(".hs-readout")).to_have_text(re.compile(rf" {expected - 2}, query"))
        check_number(page, slow)
    stop(page, server)
    expect(stop_button(page)).to_be_hidden()
    expect(page.get_by_text("stopped after 8 tokens")).to_be_visible()
    # The step in progress has read the last token, so text and heads agree.
    expect(page.get_by_role("button", name="1·2,").locator("canvas")).to_have_attribute("width", "16")
    expect(text(page)).to_have_text(re.compile(r"^But soft.{8}$", re.DOTALL))
    expect(page.locator(".hs-readout")).to_have_text(re.compile(" 14, query"))
    check_number(page, slow)


def test_the_number_under_the_pointer(page: Any, server: Server) -> None:
    write(page, "What light through yonder window breaks?")
    expect(page.get_by_text("tokens written")).to_be_visible()
    page.get_by_role("button", name="2·1,").click()
    expect(page.get_by_role("region", name="Attention weights, head 1 of layer 2")).to_be_visible()
    for axis in ("this token (query)", "looks at that token (key)"):
        expect(page.locator(".hs-matrix").get_by_text(axis)).to_be_visible()
    box = page.locator(".hs-board").bounding_box()
    places = [(0.3, 0.9), (0.2, 0.5), (0.7, 0.95)]
    cells = set()
    for x, y in places:
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
        query, key = check_number(page, server.services.served.models["tiny"])
        cells.add((query, key))
        # The text shows the same two tokens.
        expect(page.locator(".hs-query")).to_have_attribute("data-i", str(query))
        expect(page.locator(".hs-key")).to_have_attribute("data-i", str(key))
    assert len(cells) == len(places)
    page.mouse.move(box["x"] + 0.8 * box["width"], box["y"] + 0.4 * box["height"])  # in the future: no cell
    assert readout(page)[0] == CONTEXT - 1


def test_a_token_of_the_text_moves_the_matrix(page: Any, server: Server) -> None:
    tokens = page.locator(".hs-writing .hs-token")
    # A generated token leads to the step that drew it, a prompt token to its own row.
    for clicked, row in ((30, 29), (3, 3)):
        tokens.nth(clicked).click()
        page.mouse.move(5, 5)
        query, key, _ = readout(page)
        assert query == row
        expect(page.locator(".hs-query")).to_have_attribute("data-i", str(row))
        expect(page.locator(".hs-key")).to_have_attribute("data-i", str(key))
        check_number(page, server.services.served.models["tiny"])


def test_by_keyboard(page: Any, server: Server) -> None:
    layer, head = open_head(page)
    page.get_by_role("button", name=f"{layer}·{head},").focus()
    page.keyboard.press("ArrowDown" if layer < 2 else "ArrowUp")
    page.keyboard.press("ArrowRight" if head < 3 else "ArrowLeft")
    opened = (layer + (1 if layer < 2 else -1), head + (1 if head < 3 else -1))
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name=f"Attention weights, head {opened[1]} of layer {opened[0]}")).to_be_visible()
    expect_drawn(page)
    page.get_by_role("application").focus()
    query, key, _ = readout(page)
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowLeft" if key else "ArrowRight")
    assert readout(page)[:2] == (query - 1, key + (-1 if key else 1))
    said = page.locator("[aria-live]", has_text="looks at").text_content()
    assert f"at position {query - 1} (query)" in said and said.endswith(page.locator(".hs-number").text_content())
    check_number(page, server.services.served.models["tiny"])


def test_the_table_has_the_same_numbers(page: Any, server: Server) -> None:
    write(page, "What light through yonder window breaks?")
    expect(page.get_by_text("tokens written")).to_be_visible()
    page.get_by_role("button", name="Show as a table").click()
    layer, head = open_head(page)
    table = page.get_by_role("table", name=f"Attention weights, head {head} of layer {layer}")
    attention = server.services.served.models["tiny"].trace(text(page).text_content()[:CONTEXT]).attention[layer, head]
    rows = table.locator("tbody tr")
    expect(rows).to_have_count(32)
    page.get_by_label("queries from").fill("20")
    page.get_by_label("queries from").press("Enter")
    expect(rows.first.locator("th")).to_have_text(re.compile(r"” 20$"))
    shown = [float(cell) for cell in rows.first.locator("td").all_text_contents() if cell]
    assert len(shown) == 21
    assert all(is_shown_as(float(attention[20, key]), weight) for key, weight in enumerate(shown))


@pytest.mark.slow
def test_an_evicted_run_can_still_be_viewed(page: Any, server: Server) -> None:
    server.services.runs.cache.entries.clear()
    for name in ("0·3", "1·0"):
        page.get_by_role("button", name=f"{name},").click()
        expect(page.get_by_role("region", name=f"Attention weights, {spoken(name)}")).to_be_visible()
        expect_drawn(page)
        check_number(page, server.services.served.models["tiny"])
        server.services.runs.cache.entries.clear()


@pytest.mark.slow
def test_another_model_shows_its_own_heads(page: Any, server: Server) -> None:
    choose_model(page, "other")
    expect_model(page, "other", "2 layers × 2 heads")
    expect(page.get_by_role("button", name=re.compile(r"^\d+·\d+,"))).to_have_count(4)
    expect_drawn(page)
    check_number(page, server.services.served.models["other"])


@pytest.mark.gradio
@pytest.mark.slow
@pytest.mark.parametrize("width", [390, *also_slow(800, 1440)])
def test_no_sideways_scrolling(browser: Any, server: Server, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 844})
    page.goto(server.url)
    expect_drawn(page)
    for tab in ("Use", "Look"):
        show_page(page, tab)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    columns = page.locator(".hs-panels").evaluate("e => getComputedStyle(e).gridTemplateColumns.split(' ').length")
    assert columns == {390: 1, 800: 2, 1440: 3}[width]


@pytest.mark.gradio
def test_before_and_after_loading(browser: Any, launch: Callable[..., Server], checkpoints: Path) -> None:
    server = launch(checkpoints / "tiny", checkpoints / "broken", loaded=False)
    page = browser.new_page()
    page.goto(server.url)
    expect(page.get_by_text("Loading the checkpoints")).to_be_visible()
    page.get_by_label("Prompt").fill("Typed early")
    early = browser.new_page()
    early.goto(server.url)
    expect(early.get_by_text("Loading the checkpoints")).to_be_visible()
    server.services.load()
    expect(text(page)).to_have_text(re.compile("^ROMEO:"))
    expect(page.get_by_text("Loading the checkpoints")).to_have_count(0)
    expect(page.get_by_text(re.compile("broken cannot be served.*model.safetensors: found no file"))).to_be_visible()
    expect(early.get_by_label("Prompt")).to_have_value("ROMEO:")
    expect(page.get_by_label("Prompt")).to_have_value("Typed early")


def test_when_nothing_loads(browser: Any, launch: Callable[..., Server], checkpoints: Path) -> None:
    server = launch(checkpoints / "broken")
    page = browser.new_page()
    page.goto(server.url)
    expect(page.get_by_text(re.compile("broken cannot be served"))).to_be_visible()
    write(page, "Hello")
    expect(page.get_by_text(re.compile("broken cannot be served"))).to_have_count(2)  # and next to the model
