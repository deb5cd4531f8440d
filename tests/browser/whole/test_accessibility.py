"""Accessibility: tables instead of colours, keys instead of a pointer, and words for screen readers."""

import math
import re
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers import also_slow
from helpers.page import CONTRAST, change_settings, expect_drawn, expect_names, readout, text, write, write_slowly
from helpers.server import Server

pytestmark = pytest.mark.gradio

WORDS = (
    ".hs-status, .hs-hint, .hs-label, .hs-axis-key, .hs-axis-query, .hs-controls label, .hs-scale > span, "
    ".hs-scrubber-status, .hs-bars caption, .hs-bars th, .hs-bars td, .hs-top button:enabled, .hs-pair small, "
    ".hs-then, .hs-brand span, .hs-pages button, .hs-model-button span, #hs-prompt, "
    ".hs-chips button, .hs-chips > span, #hs-write, .hs-columns span"
)
BAR = ".hs-topbar button, .hs-brand span, .hs-chips *, .hs-notices p, .hs-value"

# For content of a box whose contrast with the panel was checked: the box itself must be visible.
TICKED = """(box) => {
    const parts = (e) => getComputedStyle(e).backgroundColor.match(/[\\d.]+/g).map(Number);
    const [own, panel] = [parts(box), parts(box.closest('.hs-panel'))];
    return (own.length === 3 || own[3] === 1) && Math.max(...[0, 1, 2].map((i) => Math.abs(own[i] - panel[i]))) > 100;
}"""


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["dark", *also_slow("light")])
def test_a_checked_box_is_seen_to_be_checked(browser: Any, server: Server, theme: str) -> None:
    page = browser.new_page()
    page.goto(f"{server.url}/?__theme={theme}")
    expect_drawn(page)
    for name in ("colour by surprise", "hide the first token"):
        box = page.get_by_label(name)
        assert not box.evaluate(TICKED)
        box.check()
        assert box.evaluate(TICKED)


@pytest.mark.parametrize(
    ("theme", "width"), [("dark", 390), *also_slow(("light", 360), ("light", 768), ("dark", 1024))]
)
def test_words_can_be_read_controls_have_names_and_nothing_scrolls_sideways(
    browser: Any, server: Server, theme: str, width: int
) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.add_init_script('localStorage["headscope-view"] = ""')  # as a new visitor sees it
    page.goto(f"{server.url}/?__theme={theme}")
    expect_drawn(page)
    for name in ("Text", "Heads"):
        expect(page.get_by_role("region", name=name, exact=True)).to_be_visible()
    check_contrast(page, BAR, 15)
    settings, models = (page.get_by_role("button", name=name, exact=True) for name in ("Settings", "Model"))
    settings.click()
    check_contrast(page, "#hs-settings :is(h2, span, small, label)", 10)
    page.keyboard.press("Escape")
    models.click()
    check_contrast(page, ".hs-models li *", 2)
    page.keyboard.press("Escape")
    page.evaluate("localStorage.removeItem('headscope-view')")
    page.reload()
    expect_drawn(page)
    expect(page.get_by_role("region", name="Next token", exact=True).locator("tbody tr").first).to_be_visible()
    check_contrast(page, WORDS, 80)
    page.get_by_role("button", name="This step").click()
    expect_names(page.locator(".headscope"))
    for control in page.locator(".headscope [tabindex='0']:visible:not(button, input, select)").all():
        expect(control).to_have_accessible_name(re.compile(r"\S"))
    page.set_viewport_size({"width": width, "height": 844})
    for button, role in ((settings, "dialog"), (models, "listbox")):
        button.click()
        check_width(page, width)
        box = page.get_by_role(role, name=button.get_attribute("aria-label") or button.text_content()).bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width
        page.keyboard.press("Escape")
    page.get_by_label("Prompt").fill("a long prompt\n" * 9)
    check_width(page, width)


def check_contrast(page: Any, selector: str, at_least: int) -> None:
    found = page.evaluate(CONTRAST, selector)
    assert len(found) > at_least and min(found) >= 4.5, (selector, len(found), min(found))


def check_width(page: Any, width: int) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") <= width


SIGNS = """(spans) => spans.filter((span) => span.classList.contains('hs-coloured')).map((span) => {
    const sign = getComputedStyle(span, "::before");
    return [getComputedStyle(span).color, sign.color, Number(sign.opacity)];
})"""


@pytest.mark.slow
def test_signs_for_line_breaks_contrast_with_every_colour(page: Any) -> None:
    write(page, "\n" * 30)
    expect(page.get_by_text("tokens written")).to_be_visible()
    page.get_by_label("Colour scale").select_option(label="logarithmic")
    page.locator(".hs-writing .hs-token").nth(29).click(modifiers=["Shift"])
    signs = page.locator(".hs-writing .hs-line").evaluate_all(SIGNS)
    assert len(signs) > 10 and all(ink == sign and opacity >= 0.6 for ink, sign, opacity in signs)


def test_the_text_as_a_table(page: Any, server: Server) -> None:
    loaded = server.services.served.models["tiny"]
    page.get_by_role("button", name="Show text as a table").click()
    rows = page.get_by_role("table", name="Tokens and their probabilities").locator("tbody tr")
    content = text(page).text_content()
    expect(rows).to_have_count(len(content))
    logprobs, ids = loaded.trace(content).logits.log_softmax(-1), loaded.tokenizer.encode(content)
    assert rows.first.locator("td").all_text_contents() == [f"“{content[0]}”", "given", ""]
    for i in (1, 9, len(content) - 1):
        token, probability, bits = rows.nth(i).locator("td").all_text_contents()
        logprob = float(logprobs[i - 1, ids[i]])
        assert token.strip("“”") == content[i].replace(" ", "·").replace("\n", "↵")
        assert float(probability) == pytest.approx(math.exp(logprob), abs=6e-5)
        assert float(bits) == pytest.approx(-logprob / math.log(2), abs=0.006)
    page.get_by_label("Prompt").fill("Hm")
    change_settings(page, seed=1, length=7)
    page.get_by_role("button", name="Write", exact=True).click()
    expect(rows).to_have_count(9)
    expect(rows.first.locator("td").first).to_have_text("“H”")


@pytest.mark.slow
def test_several_tokens_are_locked_by_keys(page: Any) -> None:
    area = text(page)
    area.focus()
    last = area.locator(".hs-token").count() - 1
    for key in ("ArrowLeft", "Enter", "Shift+ArrowLeft", "Shift+ArrowLeft", "Shift+Enter"):
        page.keyboard.press(key)
    locked = area.locator(".hs-query")
    assert [int(e.get_attribute("data-i")) for e in locked.all()] == [last - 4, last - 2]
    page.keyboard.press("Shift+ArrowLeft")
    expect(locked).to_have_count(3)
    page.keyboard.press("Tab")  # with the pointer outside the text, only the locked token is outlined
    expect(locked).to_have_count(2)
    area.focus()
    page.keyboard.press("Escape")
    expect(locked).to_have_count(1)


@pytest.mark.slow
def test_a_row_says_which_token_it_predicts(page: Any, server: Server) -> None:
    loaded = server.services.served.models["tiny"]
    content = text(page).text_content()
    text(page).locator(".hs-token").nth(20).click(modifiers=["Shift"])
    assert readout(page)[0] == 20
    probability = float(loaded.trace(content).logits[20].softmax(-1)[loaded.tokenizer.encode(content)[21]])
    said = page.locator(".hs-then").text_content()
    found = re.fullmatch(r"next comes “(.+)” 21, to which this row gives probability (.+)", said)
    assert found and float(found[2]) == pytest.approx(probability, abs=6e-5)


MOVING = """(part) => [...document.querySelectorAll(`${part}, ${part} *`)].flatMap((element) =>
  [null, "::before", "::after"].map((part) => getComputedStyle(element, part)).filter((style) =>
    style.animationName !== "none" || style.transitionDuration.split(",").some((each) => parseFloat(each) > 0)
  ).map(() => element.className))"""


@pytest.mark.parametrize("motion", ["reduce", *also_slow("no-preference")])
def test_nothing_moves_if_reduced_motion_is_preferred(browser: Any, server: Server, slow: Any, motion: str) -> None:
    page = browser.new_page(reduced_motion=motion)
    page.goto(server.url)
    place = ".hs-workspace" if motion == "reduce" else ".hs-panels"  # the stage moves
    write(page, "ab")
    page.wait_for_selector(".hs-workspace[data-state=done] .hs-amount")
    assert set(page.evaluate(MOVING, place)) == (set() if motion == "reduce" else {"hs-amount"})
    write_slowly(page, slow, 3)  # the bars change continuously now, so they are not animated
    assert set(page.evaluate(MOVING, place)) == (set() if motion == "reduce" else {"hs-text hs-growing"})


@pytest.mark.slow
def test_the_next_tokens_are_one_tab_stop(page: Any) -> None:
    panel = page.get_by_role("region", name="Next token", exact=True)
    bars = panel.get_by_role("button", name=re.compile("^Branch here with"))
    bars.nth(2).focus()
    chosen = bars.nth(2).get_attribute("aria-label")
    page.keyboard.press("ArrowDown")
    expect(bars.nth(3)).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Whole", exact=True)).to_be_focused()
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == chosen
    page.keyboard.press("End")
    expect(bars.last).to_be_focused()
