"""The first screen: an opening that suits the model, and the whole text panel without scrolling."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers import also_slow
from helpers.page import choose_model, expect_drawn, expect_model, text, two_frames
from helpers.server import Server, save_tiny


@pytest.mark.slow
def test_the_prompt_follows_the_opening_until_one_is_typed(
    browser: Any, launch: Callable[..., Server], checkpoints: Path
) -> None:
    server = launch(checkpoints / "tiny", checkpoints / "other")
    made = server.services.openings.written.entries
    for name in ("tiny", "other"):
        server.services.openings.get(name)
    made["other"] = replace(made["other"], settings=made["other"].settings | {"prompt": "The "})
    page = browser.new_page()
    page.goto(server.url)
    prompt = page.get_by_label("Prompt")
    expect(prompt).to_have_value("ROMEO:")
    choose_model(page, "other")
    expect(prompt).to_have_value("The ")
    choose_model(page, "tiny")
    expect(prompt).to_have_value("ROMEO:")
    prompt.fill("my own")
    choose_model(page, "other")
    expect_model(page, "other", "2 layers × 2 heads")
    choose_model(page, "tiny")
    expect_model(page, "tiny", "3 layers × 4 heads")
    expect(prompt).to_have_value("my own")


@pytest.mark.slow
def test_text_typed_before_the_opening_arrives_is_kept(browser: Any, server: Server) -> None:
    page = browser.new_page()
    held: list[Any] = []
    typed: list[str] = []
    page.route("**/look/landing*", lambda route: route.continue_() if typed else held.append(route))
    page.goto(server.url)
    page.wait_for_function("document.querySelector('.headscope')")
    page.get_by_label("Prompt").fill("Typed early")
    typed.append("Typed early")
    for route in held:
        route.continue_()
    expect_drawn(page)
    expect_model(page, "tiny", "3 layers × 4 heads")
    expect(page.get_by_label("Prompt")).to_have_value("Typed early")
    page.reload()
    expect(page.get_by_label("Prompt")).to_have_value("ROMEO:")


def test_scrubber_and_legend_stay_in_view(page: Any) -> None:
    page.evaluate("document.querySelector('.hs-text').append('\\n'.repeat(80))")  # a long text
    parts = [page.get_by_label("Step", exact=True), page.get_by_label("colour by surprise")]
    parts.append(page.locator(".hs-written .hs-hint").filter(visible=True))
    for part in parts:
        expect(part).to_be_in_viewport(ratio=1)
    expect(text(page)).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("width", [1024, *also_slow(390, 1440)])
def test_the_top_of_a_panel_is_one_row(browser: Any, server: Server, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 844})
    page.goto(server.url)
    expect_drawn(page)
    for heads in ("Whole", "This step"):
        page.get_by_role("button", name=heads, exact=True).click()
        for panel in ("Text", "Heads"):
            top = page.get_by_role("region", name=panel, exact=True).locator(".hs-top")
            middles = [
                (box["y"] + box["height"] / 2)
                for part in top.locator("> *:visible:not(.hs-status)").all()
                if (box := part.bounding_box())
            ]
            assert max(middles) - min(middles) < 6, (panel, heads, middles)
    # The progress of the text may have its own row, and is never cut off.
    status = page.locator(".hs-written .hs-status")
    assert status.evaluate("e => e.scrollWidth <= e.clientWidth") and status.bounding_box()["height"] < 25


@pytest.mark.slow
@pytest.mark.parametrize("n_head", [16, *also_slow(2, 8)])
def test_the_column_labels_of_means_and_rollouts_are_not_cut_off(
    browser: Any, launch: Callable[..., Server], tmp_path: Path, n_head: int
) -> None:
    server = launch(save_tiny(tmp_path / "wide", n_head=n_head))
    page = browser.new_page()
    page.goto(server.url)
    for width in (1440, 1180, 1024, 760, 390):
        page.set_viewport_size({"width": width, "height": 844})
        expect_drawn(page)
        two_frames(page)
        edge = page.locator(".hs-scroll").bounding_box()
        page.get_by_label("means and rollout").check()
        for name in ("mean", "rollout"):
            label = page.locator(".hs-grid .hs-label").get_by_text(name, exact=True)
            box = label.bounding_box()
            assert label.evaluate("e => e.scrollWidth <= e.clientWidth && e.scrollHeight <= e.clientHeight"), width
            if n_head < 8 or width > 767:  # otherwise the panel scrolls
                assert edge["x"] <= box["x"] and box["x"] + box["width"] <= edge["x"] + edge["width"] + 1, width
