"""Two prompts that a visitor types, side by side: a minimal pair, and texts of different lengths."""

import re
from typing import Any

import pytest
import torch
from playwright.sync_api import expect

from helpers import also_slow
from helpers.page import (
    CONTRAST,
    compare,
    expect_drawn,
    head_panel,
    is_shown_as,
    point,
    ranking,
    readout,
    two_frames,
    write_one,
)
from helpers.server import CONTEXT, Server
from model import LoadedModel
from model.lens.alignment import align

TEXT = "now is the winter, now is the sun, now is"


def give(page: Any, text: str) -> None:
    form = page.get_by_role("form", name="Another text")
    form.get_by_label("Text to compare with").fill(text)
    form.get_by_role("button", name="Compare").click()


def expected_differences(loaded: LoadedModel, a: str, b: str) -> torch.Tensor:
    """The attention that moves between shared and other tokens, as a mean over all rows after the texts diverge."""
    one, other = loaded.trace(a).attention, loaded.trace(b).attention
    pairs = [(piece.a_start, piece.b_start) for piece in align(loaded.parse_prompt(a), loaded.parse_prompt(b)).pieces]
    same = [(i, j) for i, j in pairs if a[i] == b[j]]
    first = next(i for i in range(len(a)) if a[i] != b[i])
    rows = [(i, j) for i, j in pairs if i >= first]
    total = torch.zeros(one.shape[:2])
    for i, j in rows:
        left, right = one[..., i, [k for k, _ in same]], other[..., j, [k for _, k in same]]
        total += ((left - right).abs().sum(-1) + (left.sum(-1) - right.sum(-1)).abs()) / 2
    return total / len(rows)


def check_ranking(page: Any, expected: torch.Tensor) -> None:
    shown = ranking(page)
    for name, difference in shown.items():
        layer, head = map(int, re.findall(r"\d+", name))
        assert abs(float(expected[layer, head]) - difference) <= 0.00051, name
    assert abs(max(shown.values()) - float(expected.max())) <= 0.00051


@pytest.mark.slow
def test_a_minimal_pair_with_several_changes(page: Any, server: Server) -> None:
    loaded = server.services.served.models["tiny"]
    first = write_one(page, TEXT)
    second = first.replace("now", "own")
    shared = sum(one == other for one, other in zip(first, second, strict=True))
    compare(page, "texts", opens=False)
    field = page.get_by_label("Text to compare with")
    expect(field).to_have_value(first)
    # An unreadable text is refused there, with a message.
    for text, said in (("", "The text is empty"), ("café", "has never seen 'é'"), ("a" * (CONTEXT + 1), "at most")):
        give(page, text)
        expect(page.get_by_role("form", name="Another text").get_by_role("alert")).to_contain_text(said)
        expect(field).to_have_value(text)
    give(page, second)
    title = re.compile("^Another text: “o” instead of “n” at token 0, and 2 other changes")
    expect(page.get_by_role("region", name=title)).to_be_visible()
    expect(page.get_by_role("group", name="Text B")).to_have_text(second)
    for _ in range(2):  # the second time from the link
        expect(page.get_by_text(f"Only the {shared} tokens that both texts share")).to_be_visible()
        check_ranking(page, expected_differences(loaded, first, second))
        for letter in "AB":
            text = page.get_by_role("group", name=f"Text {letter}")
            marks = text.locator(".hs-divergence").evaluate_all("all => all.map((e) => Number(e.dataset.i))")
            assert marks == [match.start() for match in re.finditer("now", first)]
            expect(text.locator(".hs-shared")).to_have_count(shared)
        # An equal token after several changes is compared; for a replaced token, both weights are shown.
        head, layer = map(int, re.findall(r"\d+", head_panel(page, "B").get_attribute("aria-label")))
        attention = [loaded.trace(text).attention[layer, head] for text in (first, second)]
        point(head_panel(page, "A"), 39, 23)
        for letter, weights in zip("AB", attention, strict=True):
            assert is_shown_as(float(weights[39, 23]), readout(head_panel(page, letter))[2])
        difference = page.get_by_role("region", name="Difference, B minus A")
        shown = float(difference.locator(".hs-number").get_attribute("data-difference"))
        assert abs(shown - float(attention[1][39, 23] - attention[0][39, 23])) < 1e-6
        point(head_panel(page, "A"), 39, 19)
        expect(difference).to_contain_text("a different token on each side")
        page.mouse.move(5, 5)
        page.reload()
        expect(page.get_by_role("group", name="Text B")).to_have_text(second)


@pytest.mark.slow
def test_texts_of_different_lengths(page: Any, server: Server) -> None:
    loaded = server.services.served.models["tiny"]
    first = write_one(page, TEXT)
    second = "now or here" + first[3:18] + "own" + first[22:]  # eight more, one less, and some that change
    compare(page, "texts", opens=False)
    give(page, second)
    expect(page.get_by_role("group", name="Text B")).to_have_text(second)
    check_ranking(page, expected_differences(loaded, first, second))
    # The clock stops at every token of both.
    steps = page.locator(".hs-pair-step")
    page.get_by_role("group", name="Text B").locator("[data-i='6']").click()
    page.mouse.move(5, 5)
    pinned = readout(head_panel(page, "B"))[0]
    assert pinned == 6
    page.keyboard.press("Escape")
    # The difference names both tokens if a row belongs to different tokens on the two sides.
    expect(steps).to_have_text(re.compile(f"B.*token {len(second) - 1},"))  # drawn again at the end of both
    two_frames(page)
    point(head_panel(page, "A"), len(first) - 3, 1)
    names = page.get_by_role("region", name="Difference, B minus A").locator(".hs-readout")
    expect(names).to_contain_text(f"{len(first) - 3}|{len(second) - 3}, query")
    slider = page.get_by_label("Step", exact=True)
    slider.fill(slider.get_attribute("max"))
    expect(steps).to_have_text(re.compile(f"A.*token {len(first) - 1},.*B.*token {len(second) - 1},"))
    expect_drawn(page)


@pytest.mark.slow
def test_one_text_ends_before_the_other(page: Any, server: Server) -> None:
    loaded = server.services.served.models["tiny"]
    first = write_one(page, TEXT)
    second = first + " the winter"
    compare(page, "texts", opens=False)
    give(page, second)
    slider, steps = page.get_by_label("Step", exact=True), page.locator(".hs-pair-step")
    expect(page.get_by_role("group", name="Text B")).to_have_text(second)
    for step in (len(first) + 3, len(TEXT), len(second) - 1):
        slider.fill(str(step))
        expect(steps).to_contain_text(f"token {step}, probability")
        query, key, number = readout(head_panel(page, "B"))
        head, layer = map(int, re.findall(r"\d+", head_panel(page, "B").get_attribute("aria-label")))
        assert query == step - 1
        assert is_shown_as(float(loaded.trace(second).attention[layer, head, query, key]), number)
    expect(steps).to_contain_text("has ended")
    # A row that only one of them has gets no difference.
    expect(page.get_by_role("region", name="Difference, B minus A").locator(".hs-readout")).to_be_hidden()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", *also_slow("dark")])
def test_pressed_buttons_can_be_read(browser: Any, server: Server, scheme: str) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 900}, color_scheme=scheme)
    page.goto(f"{server.url}/?__theme={scheme}")
    expect_drawn(page)
    page.get_by_role("region", name=re.compile("^Attention weights")).get_by_role("button", name="Ask").click()
    page.get_by_role("button", name=re.compile("What if heads are off?")).click()
    page.locator(".hs-head-scale").get_by_role("button", name="Mute", exact=True).click()
    expect(page.locator(".hs-head-scale [aria-pressed='true']")).to_be_visible()
    assert min(page.evaluate(CONTRAST, ".hs-head-scale [aria-pressed='true']")) >= 4.5
    page.get_by_role("button", name="Compare this text").click()
    page.get_by_role("menuitem", name="texts").click()
    give(page, "")
    assert min(page.evaluate(CONTRAST, ".hs-own-text :is(p, button, textarea)")) >= 4.5
    page.get_by_role("button", name="Cancel").click()
    compare(page, "with heads muted")
    expect(page.locator(".hs-ranked-heads [aria-pressed='true']").filter(has_text="Mute heads in B")).to_be_visible()
    assert min(page.evaluate(CONTRAST, ".hs-ranked-heads .hs-controls [aria-pressed='true']")) >= 4.5


def test_from_the_stage_and_back(page: Any, server: Server) -> None:
    """A reload keeps both texts, and the way back leads to where the visitor came from."""
    write_one(page, TEXT)
    page.get_by_role("switch", name="Details").click()
    stage = page.get_by_role("region", name="Stage")
    stage.get_by_role("radio", name="the text").click()
    stage.get_by_role("button", name="Compare texts", exact=True).click()
    field = stage.get_by_label("Text to compare with")
    expect(field).to_be_focused()
    expect(field).to_have_value(re.compile(TEXT))
    field.fill(f"{TEXT} €")
    field.press("Enter")
    expect(stage.get_by_role("alert")).to_contain_text("€")
    field.fill(TEXT.replace("sun", "son"))
    field.press("Enter")
    both = page.get_by_role("region", name="Compare", exact=True)
    for _ in range(2):
        expect(page).to_have_url(re.compile("b_ids"))
        expect(both).to_contain_text("“o” instead of “u”")
        page.reload()
    page.get_by_role("button", name="Back to the text").click()
    expect(stage).to_be_visible()
    expect(both).to_be_hidden()


@pytest.mark.slow
def test_the_roles_are_known_after_a_comparison_was_closed(page: Any, server: Server) -> None:
    write_one(page, TEXT)
    page.get_by_role("button", name="1·2,").click()
    compare(page, "with heads muted")
    expect(page).to_have_url(re.compile("b_mask"))
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    with page.expect_response("**/v1/lens/roles?*"):
        page.reload()
        page.get_by_role("button", name="Back to the text").click()
    assert "?model=tiny&" in next(url for url in requests if "v1/lens/roles" in url)
