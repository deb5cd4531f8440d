"""The lines of a head: which are drawn, how strong they are, and their labels."""

import math
import re
from typing import Any

import pytest
from playwright.sync_api import expect
from torch import Tensor

from helpers.page import is_shown_as, open_head, text
from helpers.server import CONTEXT, Server

ROW = 17  # CSS pixels of a token
FAINT = 6  # steps of colour below which no line is drawn
# Records what is drawn on the canvas since it was last cleared: curves with their strength, and words.
WATCH = """() => {
  const draw = CanvasRenderingContext2D.prototype, { moveTo, clearRect, bezierCurveTo, fillText } = draw;
  const of = (context) => (context.canvas.closest?.(".hs-lines") ? window.drawn : {});
  window.drawn = { lines: [], words: [] };
  draw.clearRect = function (...a) { Object.assign(of(this), { lines: [], words: [] }); clearRect.apply(this, a); };
  draw.moveTo = function (x, y) { this.from = y; moveTo.call(this, x, y); };
  draw.bezierCurveTo = function (...a) {
    of(this).lines?.push([this.from, a[5], this.globalAlpha]);
    bezierCurveTo.apply(this, a);
  };
  draw.fillText = function (...a) { of(this).words?.push(a); fillText.apply(this, a); };
}"""


@pytest.fixture
def page(write_once: Any) -> Any:
    """The page with a text that fills the context."""
    return write_once("ROMEO:", CONTEXT - len("ROMEO:"))


@pytest.fixture
def lines(page: Any) -> Any:
    """The page with all lines of a head in view and recorded."""
    page.evaluate(WATCH)
    page.add_style_tag(content=".hs-lines { height: 1200px !important; }")
    page.get_by_role("button", name="1·2,").click()
    page.get_by_role("button", name="Lines", exact=True).click()
    page.wait_for_function("drawn.words.length >= 2 * document.querySelectorAll('.hs-writing .hs-token').length")
    return page


def weights(page: Any, server: Server) -> Tensor:
    layer, head = open_head(page)
    return server.services.served.models["tiny"].trace(text(page).text_content()).attention[layer, head]


def drawn(page: Any) -> dict[tuple[int, int], float]:
    """(query, key) of each line, and how strong it is."""
    return {(int(a // ROW), int(b // ROW)): strength for a, b, strength in page.evaluate("drawn.lines")}


def test_lines_of_the_locked_tokens(lines: Any, server: Server) -> None:
    found = weights(lines, server)
    tokens = lines.locator(".hs-writing .hs-token")
    tokens.nth(40).click(modifiers=["Shift"])
    tokens.nth(25).click(modifiers=["Shift"])
    lines.mouse.move(5, 5)
    shown = drawn(lines)
    for query in (40, 25):
        for key in range(query + 1):
            step = 255 * math.sqrt(float(found[query, key]))
            if abs(step - FAINT) > 1:
                assert ((query, key) in shown) == (step > FAINT), (query, key, step)
            if (query, key) in shown:
                assert shown[query, key] == pytest.approx(step / 255, abs=0.005)
    assert {query for query, _ in shown} == {25, 40}
    # Next to each key is its weight for the token that was locked last.
    numbers = [float(words) for words, *_ in lines.evaluate("drawn.words") if re.fullmatch(r"\d\.[\de-]+", words)]
    assert len(numbers) == 26
    assert all(is_shown_as(float(found[25, key]), number) for key, number in enumerate(numbers))


@pytest.mark.slow
def test_all_lines_above_a_threshold(lines: Any, server: Server) -> None:
    found = weights(lines, server)
    lines.get_by_label("Smallest weight drawn").fill("0.5")  # its square root
    lines.mouse.move(5, 5)
    expected = {(query, key) for query, key in (found.tril() >= 0.25).nonzero().tolist()}
    assert drawn(lines).keys() == expected and len({query for query, _ in expected}) > 10
    # A token under the pointer shows only its own lines, and so does a locked one.
    tokens = lines.locator(".hs-writing .hs-token")
    tokens.nth(30).hover()
    assert drawn(lines).keys() == {(query, key) for query, key in expected if query == 30}
    lines.mouse.move(5, 5)
    assert drawn(lines).keys() == expected
    # At an earlier step only the tokens read by then have lines.
    lines.get_by_label("Step", exact=True).fill("20")
    assert drawn(lines).keys() == {(query, key) for query, key in expected if query < 20}


@pytest.mark.slow
def test_the_columns_of_lines_are_labelled(lines: Any) -> None:
    heads = lines.locator(".hs-columns span")
    assert heads.all_text_contents() == ["this token (query)", "looks at that token (key)"]
    query, key = [head.bounding_box() for head in heads.all()]
    assert query["x"] + query["width"] <= key["x"] + 1


@pytest.mark.slow
def test_lines_by_keys(page: Any, server: Server) -> None:
    page.get_by_role("button", name="Lines", exact=True).click()
    lines = page.get_by_role("application", name=re.compile("^Lines of head"))
    n = page.locator(".hs-writing .hs-token").count()
    assert lines.evaluate("(e, height) => e.scrollTop + e.clientHeight >= height", n * ROW)  # the newest is in view
    lines.focus()
    page.keyboard.press("Enter")
    locked = page.locator(".hs-writing .hs-query")
    at = int(locked.get_attribute("data-i"))
    page.keyboard.press("Escape")
    for _ in range(3):
        page.keyboard.press("ArrowUp")
    expect(locked).to_have_attribute("data-i", str(at - 3))
    said = page.locator("[aria-live]", has_text="looks at").text_content()
    found = re.search(rf"at position {at - 3} \(query\) looks at .+ at position (\d+) \(key\): (.+)$", said)
    assert found and is_shown_as(float(weights(page, server)[at - 3, int(found[1])]), float(found[2]))


SHORT = ".hs-lines { height: 121px !important; }"  # seven rows and a part of one


@pytest.mark.slow
def test_a_query_is_in_view_with_the_key_it_looks_at_most(page: Any, server: Server) -> None:
    page.add_style_tag(content=SHORT)
    page.get_by_role("button", name="Lines", exact=True).click()
    found = weights(page, server)
    strongest = found.argmax(-1).tolist()
    marks = {name: page.locator(f".hs-edge-{name}") for name in ("query", "key")}
    near = [query for query, key in enumerate(strongest) if query > 8 and query - key < 7]
    far = [query for query, key in enumerate(strongest) if query - key > 20]
    for query in (near[0], far[0], near[-1], 2, far[-1]):
        page.locator(".hs-writing .hs-token").nth(query).hover()
        first, last = rows_in_view(page)
        assert first <= query and query + 1 <= last
        expect(marks["query"]).to_be_hidden()
        key = strongest[query]
        if key >= first:
            expect(marks["key"]).to_be_hidden()
        else:
            assert query + 3 > last and query in far  # below it there is no more than the newest token
            assert is_shown_as(float(found[query, key]), float(marks["key"].text_content().split()[-1]))
            expect(marks["key"]).to_have_text(re.compile(rf"^↑ .+ {key} "))


@pytest.mark.slow
def test_marks_lead_to_what_is_out_of_view(page: Any, server: Server) -> None:
    page.evaluate(WATCH)
    page.add_style_tag(content=SHORT)
    page.get_by_role("button", name="Lines", exact=True).click()
    strongest = weights(page, server).argmax(-1).tolist()
    query = max(range(len(strongest) - 1), key=lambda query: query - strongest[query])
    page.locator(".hs-writing .hs-token").nth(query).click(modifiers=["Shift"])
    page.mouse.move(5, 5)
    mark = page.locator(".hs-edge-key")
    mark.focus()
    left, middle = mark.evaluate("(e) => [e.offsetLeft, e.offsetTop + e.offsetHeight / 2]")
    assert 0 < left and any(end == middle for _, end, _ in page.evaluate("drawn.lines"))  # the line leads to the mark
    page.keyboard.press("Enter")
    first, last = rows_in_view(page)
    assert first <= strongest[query] < last <= query
    expect(mark).to_be_hidden()
    expect(page.locator(".hs-lines")).to_be_focused()
    page.mouse.move(15, 5)  # what was scrolled to stays
    assert rows_in_view(page) == [first, last]
    page.locator(".hs-edge-query").click()
    first, last = rows_in_view(page)
    assert first <= query < last


def rows_in_view(page: Any) -> list[float]:
    page.wait_for_function("document.querySelector('.hs-lines').clientHeight")
    return page.locator(".hs-lines").evaluate(
        "(e, row) => [e.scrollTop / row, (e.scrollTop + e.clientHeight) / row]", ROW
    )
