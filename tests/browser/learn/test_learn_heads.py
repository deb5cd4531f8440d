"""Two trained heads side by side on rungs 6 and 8, and the terms behind the bars."""

from typing import Any

import pytest
import torch
from playwright.sync_api import expect

from helpers import also_slow
from helpers.learn_page import number, numbers, open_rung, settle, stamps, table, unfolded
from helpers.server import Server


def weights_of(server: Server, layer: int, head: int) -> torch.Tensor:
    """The model's own weights on the book's sentence, from the route that the other parts of the page use."""
    loaded = server.served.models["tiny"]
    ids = loaded.tokenizer.encode("Your journey starts with one step")[:10]
    return loaded.trace(ids).attention[layer, head]


@pytest.mark.parametrize("rung", [6, *also_slow(8)])
def test_two_trained_heads_that_differ_and_random_ones_with_a_switch(page: Any, server: Server, rung: int) -> None:
    open_rung(page, rung)
    places = [page.get_by_label(f"{side} head").input_value() for side in ("left", "right")]
    shown = []
    for place in places:
        layer, head = map(int, place.split("."))
        found = torch.tensor(numbers(page, f"{layer}·{head} of tiny"))
        assert torch.allclose(found, weights_of(server, layer, head), atol=6e-4)  # a wide table
        shown.append(found)
    assert max(stamps(page)) <= 1e-5
    apart = (shown[0] - shown[1])[1:].abs().sum(dim=1).mean().item() / 2
    expect(page.get_by_text(f"Their rows differ by {apart:.2f} on average")).to_be_visible()
    expect(page.get_by_role("table", name="Random head 0")).to_be_hidden()
    page.get_by_label("right head").select_option("2.3")
    settle(page, rung)
    assert torch.allclose(torch.tensor(numbers(page, "2·3 of tiny")), weights_of(server, 2, 3), atol=6e-4)
    page.get_by_role("button", name="The two that differ most").click()
    settle(page, rung)
    expect(page.get_by_label("right head")).to_have_value(places[1])
    page.get_by_role("group", name="two heads").get_by_role("button", name="random").click()
    expect(page.get_by_text("Two heads with random matrices")).to_be_visible()
    expect(page.get_by_role("table", name=" of tiny")).to_have_count(0)
    assert all(abs(sum(row) - 1) < 1e-3 for row in numbers(page, "Random head 1"))


@pytest.mark.slow
def test_a_weight_of_a_trained_head_unfolds(page: Any, server: Server) -> None:
    open_rung(page, 8)
    place = page.get_by_label("left head").input_value()
    layer, head = map(int, place.split("."))
    of = table(page, f"{layer}·{head} of tiny")
    of.locator("tbody tr").nth(5).locator("td button").nth(2).click()
    panel = page.locator(".hl-picture > .hl-unfold")
    both = page.wait_for_function("""() => {
      const found = [...document.querySelectorAll(".hl-picture > .hl-unfold output")].map((e) => e.textContent);
      return found.length === 2 && found;
    }""")
    score, weight = (number(text) for text in both.json_value())
    assert weight == pytest.approx(weights_of(server, layer, head)[5, 2].item(), abs=6e-5)
    loaded = server.served.models["tiny"]
    products = [number(text) for text in panel.locator(".hl-added .hl-term > span").all_text_contents()]
    assert len(products) == loaded.config.n_embd // loaded.config.n_head
    assert sum(products) == pytest.approx(score, abs=1e-3)


@pytest.mark.slow
def test_a_value_of_a_head_unfolds(page: Any) -> None:
    open_rung(page, 8)
    table(page, "Values").locator("tbody tr").nth(2).locator("td button").nth(3).click()
    terms, total = unfolded(page)
    assert sum(product for *_, product in terms) == pytest.approx(total, abs=2e-4)
    assert total == pytest.approx(numbers(page, "Values")[2][3], abs=2e-4)


@pytest.mark.slow
def test_a_clicked_number_stays_when_the_page_moves_under_the_pointer(page: Any) -> None:
    open_rung(page, 8)
    of = table(page, "Values")
    of.locator("tbody tr").nth(2).locator("td button").nth(1).click()
    before = unfolded(page)
    height = of.locator("tbody tr").nth(2).bounding_box()["height"]
    of.evaluate("(e, height) => (e.style.marginTop = `${height}px`)", height)
    for _ in range(5):  # frames after which the browser has updated the element under the pointer
        page.evaluate("() => new Promise((found) => requestAnimationFrame(() => setTimeout(found, 0)))")
    assert unfolded(page) == before
    of.locator("tbody tr").nth(0).locator("td button").nth(0).hover()
    assert unfolded(page) != before


@pytest.mark.slow
def test_the_shapes_lead_to_their_tables(page: Any) -> None:
    page.emulate_media(reduced_motion="reduce")
    open_rung(page, 8)
    steps = page.get_by_role("navigation", name="The shapes, step by step").get_by_role("link")
    expect(steps).to_have_count(7)
    for step, name in [(2, "Queries of head 0"), (6, "Output"), (1, "Queries of both heads")]:
        steps.nth(step).click()
        expect(table(page, name)).to_be_in_viewport()


@pytest.mark.slow
def test_the_bars_open_their_arithmetic(page: Any) -> None:
    open_rung(page, 6)
    panel = page.locator(".hl-picture > .hl-unfold")

    def opened(bars: str, row: int) -> tuple[float, str]:
        shown = table(page, bars).get_by_role("button").nth(row)
        shown.click()
        assert abs(number(panel.locator("output").text_content()) - number(shown.text_content())) < 6e-3
        return number(panel.locator("output").text_content()), panel.text_content()

    variance, words = opened("Variance of the scores", 0)
    assert "65,536 scores" in words and "/ 65,535" in words
    assert opened("Variance of the scores", 1)[0] == pytest.approx(variance / 16, abs=1e-3)
    assert "largest weights of 256 rows" in opened("Largest weight of a query, on average", 1)[1]
    for bars in ("One query with 12 keys, without the division", "The same query and keys, divided by √head_dim"):
        assert "sum of the row’s exponentials" in opened(bars, 3)[1]
    opened("softmax of these scores × 8", 4)
    open_rung(page, 10)
    table(page, "Nats per token: lower is better").get_by_role("button").first.click()
    expect(panel).to_contain_text("−ln (1 / ")
