"""How the tests of the Learn tab open a rung and read its numbers."""

import re
from typing import Any

from playwright.sync_api import expect

from .page import show_page

LAST_PAGE = 12  # after the last rung
CELLS = """table => [...table.querySelectorAll('tbody tr')].map(
    r => [...r.querySelectorAll('td:not(.hl-sum-of-row)')].map(
        c => (c.firstElementChild ?? c).title || c.textContent))"""


def number(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-").replace("∞", "inf"))


def open_rung(page: Any, rung: int) -> None:
    if page.evaluate("document.body.dataset.page") != "learn":
        show_page(page, "Learn")
    page.locator(".hl-nav a").nth(rung - 1).click()
    settle(page, rung)


def settle(page: Any, rung: int) -> None:
    """Wait until the rung shows the result of the last request, and open all that is folded or shown step by step."""
    expect(page.locator(f".hl-lesson[data-rung='{rung}'][aria-busy=false]")).to_be_visible()
    page.evaluate("document.querySelectorAll('.hl-fold').forEach(fold => (fold.open = true))")
    whole = page.locator(".hl-said > button[aria-pressed=false]:visible")
    if whole.count():
        whole.dispatch_event("click")  # the mouse stays where it is


def say(page: Any, sentence: str) -> None:
    """Change the sentence of all rungs."""
    page.get_by_label("Your sentence", exact=True).fill(sentence)
    page.get_by_role("button", name="Use it").click()


def move(page: Any, label: str, value: float, said: str | None = None) -> None:
    """Move a slider; if it steps through a list, the value is the index."""
    slider = page.get_by_label(label, exact=True)
    slider.fill(str(value))
    if said is not None:
        expect(slider).to_have_attribute("aria-valuetext", said)


def table(page: Any, name: str) -> Any:
    return page.locator(".hl-lesson").get_by_role("table", name=name, exact=True)


def numbers(page: Any, name: str) -> list[list[float]]:
    return [[number(cell) for cell in row] for row in table(page, name).evaluate(CELLS)]


def stamps(page: Any) -> list[float]:
    """The difference on each visible stamp, each of which must say that all ways are equal."""
    said = page.locator(".hl-stamp:visible").all_text_contents()
    verdict = r"(?:both ways agree|all three agree|parameters and linear layers agree|recomputed = model)"
    found = [re.match(verdict + r", max difference ([\d.e−]+)", text) for text in said]
    assert said and all(found), said
    return [number(match[1]) for match in found if match]


def unfolded(page: Any, panel: str = ".hl-picture > .hl-unfold") -> tuple[list[list[float]], float]:
    """The terms of the displayed arithmetic: the two factors and the product of each, and the sum."""
    shown = page.locator(panel)
    terms = shown.locator(".hl-term").all()
    found = [
        [
            number(part)
            for part in [*term.locator("small").text_content().split(" × "), term.locator("span").text_content()]
        ]
        for term in terms
    ]
    return found, number(shown.locator("output").text_content())
