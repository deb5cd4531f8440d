""" "Show me": five steps over the text on the screen, by keyboard and tap, in motion and as stills."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers.models import last_probabilities
from helpers.page import expect_drawn, expect_status, number_field, opened_settings, text, write
from helpers.server import Server

DESKTOP, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
MOST_WORDS = 15
PROMPT = (
    'There was a girl named Lily and a boy named Ben. Ben had a big kite. The wind took the kite up. "Look at my kite'
)
STEPS = ("look", "arc", "tile", "off", "diverge")
# Without details; and the animations that the page has started since it was opened.
FIRST_VISIT = """localStorage["headscope-details"] = ""; localStorage["headscope-speed"] = "60";
const animate = Element.prototype.animate; window.moves = 0;
Element.prototype.animate = function (...how) { window.moves++; return animate.apply(this, how); };"""


def opened(browser: Any, server: Server, viewport: dict[str, int] = DESKTOP, **options: Any) -> Any:
    page = browser.new_page(viewport=viewport, **options)
    page.add_init_script(FIRST_VISIT)
    page.goto(server.url)
    expect_drawn(page)
    return page


def tour(page: Any) -> Any:
    return page.get_by_role("complementary", name="Introduction")


def words(page: Any) -> str:
    said: str = tour(page).get_by_role("status").text_content()
    return said


def expect_step(page: Any, name: str) -> str:
    """The step is shown, its words are final and few."""
    place = STEPS.index(name)
    expect(tour(page)).to_contain_text(f"{place + 1} of 5")
    expect(page.locator(f"[data-tour={name}]")).to_have_count(1)
    final = {"off": "^Without ", "diverge": "^With all heads|^Both are the same"}.get(name, ".")
    expect(tour(page).get_by_role("status")).to_have_text(re.compile(final))
    said = words(page)
    assert len(re.sub(r"\s%", "%", said).split()) <= MOST_WORDS, said
    return said


def test_five_steps_by_keyboard_end_where_they_began(browser: Any, story: Server) -> None:
    page = opened(browser, story)
    before, sentence, address = text(page).text_content(), page.locator(".hs-finding p").text_content(), page.url
    page.get_by_role("button", name="Show me").focus()
    page.keyboard.press("Enter")
    assert "looks back from my" in expect_step(page, "look")
    expect(tour(page).get_by_role("button", name="Next")).to_be_focused()
    page.keyboard.press("Space")
    assert expect_step(page, "arc") == sentence  # the sentence of the text itself
    page.keyboard.press("ArrowRight")
    expect_step(page, "tile")
    expect(page.locator(".hs-grid [aria-pressed=true] .hs-tour-row")).to_be_visible()
    page.keyboard.press("ArrowLeft")
    expect_step(page, "arc")
    page.keyboard.press("Space")
    page.keyboard.press("Space")
    said = expect_step(page, "off")
    muted = page.locator(".hs-grid .hs-muted")
    assert int(re.search(r"Without these (\d+) heads, “kite”, the likeliest word,", said)[1]) == muted.count()  # type: ignore[index]
    # The numbers are the model's own.
    places = muted.evaluate_all("(tiles) => tiles.map((tile) => tile.dataset.picture)")
    heads = [tuple(map(int, place.split(","))) for place in places]
    falls = last_probabilities(story.served.models["stories-bpe"], before, heads)
    shown = [float(part) / 100 for part in re.findall(r"([\d.]+)\s?%", said)]
    assert shown[:2] == [pytest.approx(falls[0], abs=0.006), pytest.approx(falls[1], abs=0.0006)]
    assert falls[0] > 0.9 and falls[1] < 0.05
    page.keyboard.press("Space")
    said = expect_step(page, "diverge")
    assert re.search("wrote kite; without these heads, (?!kite)", said)
    first, second = page.locator(".hs-two .hs-text").all_text_contents()
    assert first.startswith(before) and not second.startswith(before)
    assert len(second) < len(before) + 150  # it stops soon after the texts have diverged
    page.keyboard.press("ArrowLeft")
    expect_step(page, "off")
    page.keyboard.press("Space")
    expect_step(page, "diverge")
    page.keyboard.press("Space")
    expect(tour(page)).to_be_hidden()
    # Nothing offers to switch the heads off that were just switched off, and all is as it was.
    expect(page.get_by_role("region", name="Compare", exact=True)).to_have_count(0)
    expect(page.get_by_role("region", name="Ask", exact=True)).to_be_hidden()
    expect(text(page)).to_have_text(before)
    expect(page.locator(".hs-finding p")).to_have_text(sentence)
    expect(muted).to_have_count(0)
    assert page.url == address
    invitation = page.get_by_role("button", name="Show me")
    expect(invitation).to_be_focused()
    # It can be opened again, also on a later visit, but no longer stands out.
    page.reload()
    expect_drawn(page)
    expect(invitation).not_to_have_class(re.compile("hs-primary"))
    page.get_by_role("button", name="Introduction").click()
    expect_step(page, "look")
    page.keyboard.press("Tab")  # the focus is free to leave
    page.keyboard.press("Tab")
    expect(text(page)).to_be_focused()
    page.keyboard.press("Escape")
    expect(tour(page)).to_be_hidden()
    assert page.locator("[data-tour]").count() == 0


@pytest.mark.slow
def test_on_a_phone_the_words_never_cover_what_they_describe(browser: Any, story: Server) -> None:
    page = opened(browser, story, PHONE, has_touch=True, is_mobile=True)
    page.get_by_role("button", name="Show me").tap()
    spoken_of = {
        "look": ".hs-written .hs-query .hs-word",
        "arc": ".hs-written :is(.hs-query, .hs-key) .hs-word",
        "tile": ".hs-grid [aria-pressed=true]",
        "off": ".hs-grid .hs-muted",
        "diverge": ".hs-two .hs-text",
    }
    for name in STEPS:
        expect_step(page, name)
        sheet = tour(page).bounding_box()
        assert round(sheet["y"] + sheet["height"]) == PHONE["height"]
        for button in tour(page).get_by_role("button").all():
            box = button.bounding_box()
            assert box["width"] >= 44 and box["height"] >= 44
        boxes = [each.bounding_box() for each in page.locator(spoken_of[name]).all()]
        assert boxes
        for box in boxes:
            assert box["y"] >= 0 and box["y"] + box["height"] <= sheet["y"]
        page.touchscreen.tap(200, 20)
    expect(tour(page)).to_be_hidden()


@pytest.mark.slow
def test_reduced_motion_shows_stills(browser: Any, story: Server) -> None:
    page = opened(browser, story, reduced_motion="reduce")
    before = text(page).text_content()
    page.evaluate("window.moves = 0")
    page.get_by_role("button", name="Show me").click()
    for name in STEPS[:-1]:
        expect_step(page, name)
        if name == "tile":
            expect(page.locator(".hs-tour-row")).to_be_visible()
            expect(page.locator(".hs-tour-cell")).to_have_count(0)
        page.mouse.click(700, 880)  # anywhere
    expect_step(page, "diverge")
    page.go_back()  # closes the two texts, and the tour with them
    expect(tour(page)).to_be_hidden()
    expect(text(page)).to_have_text(before)
    assert page.evaluate("window.moves") == 0
    page.emulate_media(reduced_motion="no-preference")
    page.get_by_role("button", name="Introduction").click()
    for name in STEPS[:3]:
        expect_step(page, name)
        page.keyboard.press("Space")
    assert page.evaluate("window.moves") > 10  # the arc, and a cell of the row for each token


@pytest.mark.slow
def test_it_can_run_by_itself(browser: Any, story: Server) -> None:
    page = opened(browser, story, own_clock=True)
    page.clock.install()
    page.get_by_role("button", name="Show me").click()
    expect_step(page, "look")
    page.clock.run_for(20_000)
    expect_step(page, "look")
    tour(page).get_by_role("button", name="Play").click()
    for name in STEPS:
        page.clock.run_for(100)
        expect_step(page, name)
        page.clock.run_for(4_500)
    expect(tour(page).get_by_role("button", name="Play")).to_be_visible()  # once is enough


@pytest.mark.slow
def test_a_model_without_a_declared_opening_is_spoken_of_honestly(browser: Any, server: Server) -> None:
    page = opened(browser, server)
    page.get_by_role("button", name="Show me").click()
    said = [expect_step(page, "look")]
    for name in STEPS[1:]:
        page.keyboard.press("Space")
        said.append(expect_step(page, name))
    copying = page.request.get(f"{server.url}/v1/lens/roles?model=tiny").json()["heads"]
    if not any(role["scores"]["copying"] >= 0.9 for layer in copying for role in layer):
        assert not any("cop" in each for each in said)
    assert "letter" in said[0]


@pytest.mark.slow
def test_in_a_visitors_own_text_it_begins_where_a_head_matters(browser: Any, story: Server) -> None:
    page = opened(browser, story)
    page.get_by_role("switch", name="Details").click()
    with opened_settings(page) as settings:
        number_field(settings, "length").fill("4")
    page.get_by_role("switch", name="Details").click()
    write(page, PROMPT)
    expect_status(page, "4 tokens written")
    page.get_by_role("button", name="Show me").click()
    assert "looks back from" in expect_step(page, "look")
    for _ in range(3):
        page.keyboard.press("Space")
    before, after = (float(part) for part in re.findall(r"([\d.]+)%", expect_step(page, "off")))
    assert before - after >= 20


@pytest.mark.slow
@pytest.mark.parametrize("width", [1024, 768])
def test_the_words_stand_below_the_text_at_any_width(browser: Any, story: Server, width: int) -> None:
    page = opened(browser, story, {"width": width, "height": 800})
    page.get_by_role("button", name="Show me").click()
    for name in STEPS[:3]:
        expect_step(page, name)
        card = tour(page).bounding_box()
        for token in page.locator(".hs-written :is(.hs-query, .hs-key) .hs-word").all():
            box = token.bounding_box()
            assert box["y"] + box["height"] <= card["y"]
        assert card["x"] >= 0 and card["x"] + card["width"] <= width
        page.keyboard.press("Space")
