"""A Llama and a Qwen 3 on the page: groups of heads, the arithmetic of rotation, and what composition depends on."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers.page import ask_panel, change_settings, choose_model, expect_drawn, expect_status, write
from helpers.server import LLAMA, QWEN3, Server, save_tiny, start
from helpers.tabs import Profiles, opened_page
from model import LoadedModel

GROUP = "Heads 2 to 3 of this layer share their keys and values."


@pytest.fixture(scope="module")
def families(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = tmp_path_factory.mktemp("families")
    server = start(save_tiny(root / "llama", **LLAMA), save_tiny(root / "qwen3", **QWEN3))
    yield server
    server.close()


@pytest.fixture
def page(browser: Profiles, families: Server) -> Iterator[Any]:
    page, complaints = opened_page(browser, families.url)
    expect_drawn(page)
    yield page
    complaints.check()


def written(page: Any, name: str) -> Any:
    choose_model(page, name)
    change_settings(page, seed=1, length=4)
    write(page, "Tom ran to the dog.")
    expect_status(page, "4 tokens written")
    expect_drawn(page)
    return page


def ask(page: Any, question: str) -> Any:
    page.get_by_role("region", name=re.compile("^Attention weights")).get_by_role("button", name="Ask").click()
    ask_panel(page).get_by_role("button", name=re.compile(question)).click()
    return ask_panel(page)


def expect_scores(panel: Any, loaded: LoadedModel, distance: int) -> None:
    """The list shows the K-composition scores of head 3 of layer 2 at this distance, the largest first."""
    scores = loaded.composition(distance=distance).scores["k"][2][3].flatten()
    place = "at the same position" if distance == 0 else f"with the query {distance} positions after its key"
    best = f"{float(scores.max()):.3f}"
    expect(panel.locator("p.hs-answer").get_by_text(re.compile(f"{place}: {best}"))).to_be_visible()
    expect(panel.locator("tr[data-picture]")).to_have_count(8)


@pytest.mark.slow
def test_groups_rotation_and_composition_of_a_llama(page: Any, families: Server) -> None:
    written(page, "llama")
    tile = page.locator(".hs-grid button[data-picture='2,3']")
    assert tile.get_attribute("aria-label").endswith(f". {GROUP}") and tile.get_attribute("title").endswith(GROUP)
    starts = page.locator(".hs-grid button.hs-group-start")
    assert starts.evaluate_all("(all) => all.map((one) => one.dataset.picture)") == ["0,2", "1,2", "2,2"]
    tile.click()
    panel = ask(page, "Show me the arithmetic")
    expect(panel.get_by_role("heading", name="Rotation by position")).to_be_visible()
    expect(panel.get_by_role("heading", name="RMSNorm of query and key")).to_have_count(0)
    expect(panel.get_by_text("There the final norm and the", exact=False)).to_be_visible()
    panel.get_by_role("button", name="All questions").click()
    panel.get_by_role("button", name=re.compile("Which heads feed this head")).click()
    loaded = families.served.models["llama"]
    expect_scores(panel, loaded, 0)
    field = panel.get_by_label("positions after its key")
    field.fill("5")
    field.press("Tab")
    expect_scores(panel, loaded, 5)
    page.reload()  # the address has it
    expect(field).to_have_value("5")
    expect_scores(panel, loaded, 5)
    panel.get_by_role("button", name="values").click()
    expect(field).to_be_hidden()
    panel.get_by_role("button", name="All questions").click()
    panel.get_by_role("button", name=re.compile("What is this head for")).click()
    panel.get_by_text("What its weights do to tokens").click()
    pairs = panel.locator("[data-table=token-pairs] tbody tr")
    expect(pairs).to_have_count(12)
    expect(field).to_be_hidden()
    panel.get_by_role("button", name="what it looks for (QK)").click()
    field.fill("2")
    field.press("Tab")
    expect(panel.get_by_text("Scores are those with the query 2 positions after its key.")).to_be_visible()
    expected = loaded.token_circuit(2, 3, "qk", distance=2, top=12)
    expect(pairs.first.locator("td").last).to_contain_text(f"{float(expected.value[0]):.2f}")


@pytest.mark.slow
def test_qwen_3_is_normalised_and_has_no_composition(page: Any) -> None:
    written(page, "qwen3")
    page.locator(".hs-grid button[data-picture='2,3']").click()
    panel = ask(page, "Show me the arithmetic")
    for name in ("RMSNorm of query and key", "Rotation by position"):
        expect(panel.get_by_role("heading", name=name)).to_be_visible()
    panel.get_by_role("button", name="All questions").click()
    panel.get_by_role("button", name=re.compile("Which heads feed this head")).click()
    expect(panel.get_by_text("This model normalises each query and key", exact=False)).to_be_visible()
    expect(panel.get_by_role("button", name="Try again")).to_be_hidden()
    expect(panel.get_by_label("positions after its key")).to_be_hidden()
    panel.get_by_role("button", name="cut in this text").click()
    expect(panel.get_by_text("attention that moves when cut").first).to_be_visible()
