"""Using the Learn tab: any sentence, links, keys, a phone, light and dark, and what the browser stores."""

import itertools
import json
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers import also_slow
from helpers.learn_page import move, numbers, open_rung, say, settle, stamps, table, unfolded
from helpers.page import CONTRAST, expect_drawn, expect_names, show_page
from helpers.server import CONTEXT, Server
from model.ladder import averages
from model.ladder.bigram import BigramTraining

pytestmark = pytest.mark.gradio

# Properties of all rungs are tested on one of them by default, and on the others in the slow tests.
RUNGS = range(1, 12)
SOME_RUNGS = [5, *also_slow(1, 2, 3, 4, 6, 7, 8, 9, 10, 11)]
# The elements that overflow the page and have no scroll bar of their own.
OVER_THE_EDGE = """() => [...document.querySelectorAll('.hl-page *')].filter((e) => {
  if (e.closest('.hl-scroll *, .hl-formula *, .hl-nav *, pre *, .hs-hidden')) return false;
  return e.checkVisibility() && e.getBoundingClientRect().right > innerWidth;
}).map((e) => e.className + ' ' + e.textContent.slice(0, 30))"""
WORDS = (
    ".hl-text p, .hl-nav a, .hl-of, .hl-prediction p, .hl-prediction h3, .hl-options button, .hl-picture p, .hl-count, "
    ".hl-hint, .hl-axes, .hl-heat th, .hl-heat td, .hl-chips span, .hl-chips small, .hl-term small, .hl-term span, "
    ".hl-stamp b, .hl-stamp small, .hl-steps a, .hl-controls label, .hs-primary, .hl-source pre, .hl-source .hl-quiet, "
    ".hl-source .hl-key"
)


def problem(page: Any) -> Any:
    return page.locator(".hl-problem").first


SLIDERS = """() => [...document.querySelectorAll(".hl-lesson input[type=range]")].map((range) => {
  const [value, min, max] = [range.value, range.min, range.max].map(Number);
  return [Number(range.style.getPropertyValue("--part") || -1), max > min ? (value - min) / (max - min) : 0];
})"""


@pytest.mark.slow
@pytest.mark.parametrize("rung", [2, *also_slow(3, 6, 8, 10)])
def test_sliders_are_filled_up_to_their_values(page: Any, rung: int) -> None:
    open_rung(page, rung)

    def check() -> None:
        parts = page.evaluate(SLIDERS)
        assert parts and all(part == pytest.approx(right, abs=1e-6) for part, right in parts), parts

    check()
    page.locator(".hl-lesson input[type=range]").first.press("ArrowRight")
    check()
    settle(page, rung)
    check()  # also with what the server answers


@pytest.mark.parametrize("rung", [5, *also_slow(1, 2, 4, 6, 7, 8, 9, 10)])
def test_a_sentence_of_ones_own_flows_through(page: Any, rung: int) -> None:
    open_rung(page, rung)
    say(page, "What is in a name?")
    settle(page, rung)
    expect(page.locator(".hl-sticky")).to_be_visible()
    expect(problem(page)).to_be_empty()
    if rung in (2, 4, 5, 6, 7, 8, 9):
        names = {
            2: "Their sum",
            4: "Weights",
            5: "Attention scores",
            6: "Queries",
            7: "Attention weights",
            8: "Weight splits",
            9: "Layer norm",
        }
        rows = table(page, names[rung]).locator("tbody th")
        expect(rows).to_have_text(["What", "is", "in", "a", "name", "?"])
    if rung > 3:
        assert max(stamps(page)) <= 1e-5


@pytest.mark.slow
def test_one_s_own_sentence_keeps_its_vectors(page: Any) -> None:
    open_rung(page, 2)
    say(page, "What is in a name?")
    expect(table(page, "Their sum").locator("tbody th").first).to_have_text("What")
    x = numbers(page, "Their sum")
    open_rung(page, 5)
    page.get_by_role("button", name="random", exact=True).click()
    expect(page.get_by_text("They are random: the sums of rung 2")).to_be_visible()
    expect(page.get_by_text("What decides how much attention one word of your sentence gives")).to_be_visible()
    assert numbers(page, "The words x") == x
    expect(page.get_by_text("Some scores of this sentence are negative")).to_be_visible()


@pytest.mark.slow
@pytest.mark.parametrize("rung", SOME_RUNGS)
def test_no_sentence_is_too_short_or_too_long(page: Any, rung: int) -> None:
    open_rung(page, rung)
    expect_an_empty_sentence_named(page)
    expect_one_token(page, rung)
    expect_three_hundred_tokens(page, rung)


def expect_an_empty_sentence_named(page: Any) -> None:
    for empty in ("", "  \t "):
        say(page, empty)
        expect(problem(page)).to_have_text("The sentence is empty. Type at least one word.")
    expect(page.locator(".hl-sticky")).to_be_hidden()
    page.get_by_role("button", name="Raschka’s sentence").click()
    expect(problem(page)).to_be_empty()
    expect(page.locator(".hl-sticky")).to_be_visible()


def expect_one_token(page: Any, rung: int) -> None:
    say(page, "I")
    settle(page, rung)
    if rung == 11:
        expect(problem(page)).to_have_text("The phrase must have at least 3 tokens, found 1.")
        return
    expect(problem(page)).to_be_empty()
    expect(page.locator(".hl-sticky")).to_be_visible()
    if rung == 2:
        expect(page.get_by_text("A window needs at least two tokens")).to_be_visible()
    if rung == 7:
        assert numbers(page, "Attention weights") == [[1.0]]


def expect_three_hundred_tokens(page: Any, rung: int) -> None:
    words = " ".join(["word"] * 300)
    say(page, words)
    settle(page, rung)
    note = page.locator(".hl-note")
    if rung == 2:
        expect(note).to_contain_text("300 words. The windows cover all of them; the tables show the first 10.")
        expect(page.get_by_text("296 windows of 4 from 300 tokens")).to_be_visible()
        expect(page.get_by_text("… and 284 more")).to_be_visible()
    if rung in (4, 5, 6, 7, 8, 9):
        expect(note).to_have_text("Your sentence has 300 words; the pictures show the first 10, up to “word”.")
    if rung == 10:
        said = f"Your sentence has {len(words):,} tokens for tiny; the picture shows the first {CONTEXT}."
        expect(note).to_have_text(said)
    if rung == 1:
        expect(page.get_by_text("300 tokens from a list of")).to_be_visible()
        expect(page.get_by_text("… and 240 more")).to_be_visible()
    expect(problem(page)).to_be_empty()


@pytest.mark.slow
def test_emoji(page: Any) -> None:
    open_rung(page, 1)
    say(page, "Hi 🦊 there")
    expect(page.get_by_text("Refused: the vocabulary of 65 characters lacks '🦊'.")).to_be_visible()
    expect(page.locator(".hl-chips").first).to_contain_text("<|unk|>")
    expect(page.locator(".hl-chips").nth(2)).to_contain_text(re.compile("<0xF0>.*<0x8A>"))  # its bytes
    open_rung(page, 5)
    expect(table(page, "Attention scores").locator("tbody th")).to_have_text(["Hi", "🦊", "there"])


@pytest.mark.slow
def test_a_sentence_is_text_and_nothing_else(page: Any) -> None:
    open_rung(page, 1)
    attack = "<img src=x onerror=window.broken=1> ${window.broken=1} {{value}}"
    for rung in RUNGS:
        say(page, attack)
        settle(page, rung)
        if rung < 11:
            page.get_by_role("navigation", name="Previous and next").get_by_role("link").last.click()
    assert page.evaluate("window.broken") is None
    expect(page.locator(".hl-lesson img")).to_have_count(0)


def test_a_link_to_a_rung_and_back(browser: Any, server: Server) -> None:
    page = browser.new_page()
    page.goto(f"{server.url}/?__theme=light#learn/7")
    expect(page.get_by_role("heading", name="Causal masking")).to_be_visible()
    page.get_by_role("navigation", name="Previous and next").get_by_role("link", name="8. Many heads").click()
    expect(page).to_have_url(re.compile(r"\?__theme=light#learn/8$"))
    settle(page, 8)
    page.go_back()
    settle(page, 7)
    expect(page.get_by_role("link", name="7 Causal masking")).to_have_attribute("aria-current", "step")


@pytest.mark.slow
def test_the_browser_keeps_the_progress(page: Any) -> None:
    open_rung(page, 4)
    page.get_by_role("button", name="They stay the same", exact=True).click()
    expect(page.get_by_text("No: They get smaller. A row still adds up to 1")).to_be_visible()
    say(page, "What is in a name?")
    open_rung(page, 6)
    page.reload()
    show_page(page, "Learn")
    settle(page, 6)
    expect(page.get_by_label("Your sentence", exact=True)).to_have_value("What is in a name?")
    expect(page.locator(".hl-seen")).to_have_count(3)
    open_rung(page, 4)
    expect(page.get_by_text("No: They get smaller. A row still adds up to 1")).to_be_visible()


@pytest.mark.slow
def test_settings_stay_when_the_sentence_or_the_rung_changes(page: Any) -> None:
    open_rung(page, 7)
    move(page, "dropout p", 0, "0.0")
    expect(page.get_by_text("Kept weights × 1.")).to_be_visible()
    say(page, "What is in a name?")
    expect(table(page, "Attention weights").locator("tbody th").first).to_have_text("What")
    open_rung(page, 8)
    open_rung(page, 7)
    expect(page.get_by_text("Kept weights × 1.")).to_be_visible()
    expect(page.get_by_label("dropout p", exact=True)).to_have_value("0")


def test_nothing_of_it_is_fetched_before_it_is_opened(browser: Any, server: Server) -> None:
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(server.url)
    expect_drawn(page)
    assert not [url for url in asked if "/learn" in url]
    open_rung(page, 1)
    assert [url for url in asked if "/learn.mjs" in url]


@pytest.mark.slow
def test_the_source_is_the_file_s_own(page: Any) -> None:
    open_rung(page, 5)
    page.get_by_text("The lines that compute this").click()
    shown = page.get_by_label("Source of naive_softmax")
    expect(shown).to_be_visible()
    assert shown.text_content() in Path(averages.__file__).read_text()
    expect(page.get_by_text(re.compile(r"model/ladder/averages\.py, line \d+")).first).to_be_visible()


@pytest.mark.parametrize("rung", [10, *also_slow(3, 5)])
def test_a_rung_is_saved_as_a_notebook(page: Any, rung: int) -> None:
    open_rung(page, rung)
    say(page, "What is in a name?")
    settle(page, rung)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as a notebook").click()
    assert saved.value.suggested_filename.endswith(".ipynb")
    notebook = json.loads(Path(saved.value.path()).read_text())
    assert notebook["nbformat"] == 4 and notebook["cells"][0]["source"].startswith(f"# {rung}. ")
    if rung == 10:
        assert any("sentence = 'What is in a name?'" in cell["source"] for cell in notebook["cells"])


@pytest.mark.slow
def test_a_rung_says_that_it_loads(page: Any) -> None:
    held = []
    page.route("**/learn/whole-model", lambda route: held.append(route))
    page.locator(".hl-nav a").nth(9).click()
    expect(page.locator(".hl-note")).to_have_text("Loading…")
    held[0].continue_()
    page.unroute("**/learn/whole-model")
    settle(page, 10)
    expect(page.locator(".hl-note")).to_be_empty()


def test_by_keyboard(page: Any) -> None:
    open_rung(page, 5)
    table(page, "Attention scores").locator("button[tabindex='0']").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowLeft", "ArrowLeft"):
        page.keyboard.press(key)
    terms, _ = unfolded(page)
    assert [term[0] for term in terms] == [0.57, 0.85, 0.64] and [term[1] for term in terms] == [0.43, 0.15, 0.89]
    expect(table(page, "Attention scores").locator("button:focus")).to_have_text("0.94")
    expect_names(page.locator(".hl-page"))
    for source in page.locator(".hl-page pre:visible").all():
        expect(source).to_have_accessible_name(re.compile(r"\S"))


@pytest.mark.slow
def test_the_focused_element_is_not_covered(browser: Any, server: Server) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(f"{server.url}/#learn/7")
    settle(page, 7)
    page.get_by_label("dropout p", exact=True).focus()
    at = "const { x, y } = e.getBoundingClientRect()"
    covered = f"e => {{ {at}; return !e.contains(document.elementFromPoint(x + 9, y + 9)); }}"
    for _ in range(4):
        page.keyboard.press("Tab")
    cell = table(page, "After dropout").locator("button:focus")
    assert not cell.evaluate(covered)
    for _ in range(5):
        page.keyboard.press("ArrowDown")
        assert not cell.evaluate(covered)


@pytest.mark.slow
def test_the_link_to_look_keeps_the_theme(browser: Any, server: Server) -> None:
    page = browser.new_page()
    page.goto(f"{server.url}/?__theme=dark#learn/10")
    settle(page, 10)
    page.get_by_role("link", name="Open this head in Look").click()
    expect(page.get_by_role("region", name=re.compile("Attention weights, head"))).to_be_visible()
    expect(page.locator("body.dark")).to_have_count(1)


@pytest.mark.parametrize("rung", also_slow(*RUNGS))
def test_on_a_phone(browser: Any, server: Server, rung: int) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(f"{server.url}/#learn/{rung}")
    settle(page, rung)
    for sentence in (None, "To be, or not to be: that is the incomprehensibilities question"):
        if sentence:
            say(page, sentence)
            settle(page, rung)
        check_edges(page)
    clicked = {4: "Weights", 5: "Attention scores", 7: "Attention weights"}.get(rung)
    if clicked:  # the target of the click is in view
        table(page, clicked).locator("button").nth(3).click()
        expect(page.locator(".hl-picture > .hl-unfold")).to_be_in_viewport()


def check_edges(page: Any) -> None:
    """Nothing is wider than a phone's screen."""
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate(OVER_THE_EDGE) == []


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["dark", *also_slow("light")])
def test_words_stand_out_from_what_is_behind_them_and_fit_a_phone(browser: Any, server: Server, theme: str) -> None:
    page = browser.new_page()
    page.goto(f"{server.url}/?__theme={theme}#learn/1")
    for rung in (1, 5, 7):
        page.set_viewport_size({"width": 390, "height": 844})
        open_rung(page, rung)
        check_edges(page)
        page.set_viewport_size({"width": 1280, "height": 720})
        page.get_by_text("The lines that compute this").click()
        expect(page.locator(".hl-source pre").first).to_be_visible()
        found = page.evaluate(CONTRAST, WORDS)
        assert len(found) > 60 and min(found) >= 4.5


def test_training_can_be_stopped_and_left(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    advance, pieces, gate = BigramTraining.advance, itertools.count(), threading.Event()

    def held(self: BigramTraining, seconds: float) -> dict[str, Any]:
        """A short piece, then one that waits for the gate, so that there is something to stop however late the click
        comes.
        """
        if next(pieces):
            gate.wait(timeout=60)
        return advance(self, 0.0)

    monkeypatch.setattr(BigramTraining, "advance", held)
    open_rung(page, 3)
    page.get_by_label("Text to learn from", exact=True).fill("to be or not to be " * 200)
    page.get_by_label("steps", exact=True).fill("5")
    page.get_by_role("button", name="Train it").click()
    expect(page.get_by_text(re.compile("^Step "))).to_be_visible(timeout=60_000)  # the first training imports much
    page.get_by_role("button", name="Stop", exact=True).last.click()
    expect(page.get_by_text(re.compile("^Stopped"))).to_be_visible()
    gate.set()
    expect(page.get_by_role("button", name="Train it")).to_be_enabled()
