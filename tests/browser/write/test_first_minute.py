"""The first minute of a visitor who has never seen attention: one line, one tap, and its visible effect."""

import itertools
import re
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from helpers import also_slow
from helpers.page import change_settings, expect_drawn, open_head, open_introduction, text, write
from helpers.server import Server

PHONE = {"width": 390, "height": 844}


def opened(browser: Any, server: Server, viewport: dict[str, int], more: str = "", **options: bool) -> Any:
    """The page of a first-time visitor, once the roles of all heads are known."""
    httpx.get(f"{server.url}/v1/lens/roles", params={"model": "tiny"}, timeout=60).raise_for_status()
    page = browser.new_page(viewport=viewport, new_tab=True, **options)
    page.add_init_script('localStorage["headscope-view"] = "";' + more)
    page.goto(server.url)
    expect_drawn(page)
    return page


def introduced(page: Any) -> Any:
    """The introduction, opened from the bar."""
    open_introduction(page)
    return page.get_by_role("complementary", name="Introduction")


@pytest.mark.parametrize("viewport", [PHONE, *also_slow({"width": 1440, "height": 900})])
def test_one_tap_shows_what_a_head_does_on_the_same_screen(browser: Any, server: Server, viewport: Any) -> None:
    page = opened(browser, server, viewport)
    intro = introduced(page)
    expect(intro).to_contain_text("This is a small GPT")
    scrolled = "document.documentElement.scrollTop"
    intro.get_by_role("button", name="Show me").click()
    expect(intro).to_contain_text(re.compile(r"looked from .* at .*, with [\d.e-]+ of its attention"))
    layer, head = open_head(page)
    expect(intro).to_contain_text(f"L{layer} H{head}")
    # A phone may scroll down to the tile and its description.
    assert page.evaluate(scrolled) == 0 or viewport == PHONE
    tile = page.get_by_role("button", name=f"L{layer} H{head},")
    for part in (intro.get_by_role("status"), tile, page.locator(".hs-writing .hs-key").first):
        expect(part).to_be_in_viewport(ratio=0.98)
    # Its numbers are the model's own.
    number = float(re.search(r"with ([\d.e-]+) of", intro.text_content())[1])  # type: ignore[index]
    query, key = (
        int(page.locator(f".hs-readout-{axis} small").text_content().split(",")[0]) for axis in ("query", "key")
    )
    attention = server.services.served.models["tiny"].trace(text(page).text_content()).attention
    assert abs(float(attention[layer, head, query, key]) - number) < 1e-4
    intro.get_by_role("button", name="Close the introduction").click()
    expect(intro).to_be_hidden()
    page.reload()
    expect_drawn(page)
    expect(intro).to_be_hidden()


def test_the_introduction_leads_through_heads_and_speaks_of_the_visitors_own_text(browser: Any, server: Server) -> None:
    page = opened(browser, server, {"width": 1440, "height": 900})
    intro = introduced(page)
    expect(intro).to_contain_text("writing one letter (a token) at a time")
    intro.get_by_role("button", name="Show me").click()
    seen = []
    following = intro.get_by_role("button", name=re.compile("Next head|Done"))
    for place in itertools.count(1):
        expect(following).to_contain_text(f"{place} of ")
        expect(intro).to_contain_text(re.compile(r"In this text, L\d H\d .*Strongest place: before .* looked from"))
        # It agrees with the panel of the open head.
        does = re.search(r"follows no single pattern|looks|rests|copies", intro.text_content())[0]  # type: ignore[index]
        expect(page.locator(".hs-open .hs-role").first).to_contain_text(does.removeprefix("follows "))
        seen.append(open_head(page))
        if "Done" in following.text_content():
            break
        following.click()
    assert len(seen) == len(set(seen)) >= 1
    assert following.text_content() == f"Done {len(seen)} of {len(seen)}"
    following.click()
    expect(intro).to_contain_text(re.compile("^That was the tour. .* press Write"))
    expect(following).to_be_hidden()
    intro.get_by_role("button", name=re.compile("^Switch (it|them) off$")).click()
    ask = page.get_by_role("region", name="Ask", exact=True)
    expect(ask).to_contain_text("Without")
    muted = ask.get_by_role("group", name="Heads that are muted or scaled").get_by_role("button")
    expect(muted).to_have_count(len(seen))
    page.get_by_role("button", name="Close Ask").click()
    layer, head = seen[0]
    page.get_by_role("button", name=f"L{layer} H{(head + 1) % 4},").click()
    expect(intro).to_contain_text(re.compile(rf"^In this text, L{layer} H{(head + 1) % 4} "))
    # Opening another head ends it, too.
    page.reload()
    expect_drawn(page)
    open_introduction(page)
    intro.get_by_role("button", name="Show me").click()
    expect(following).to_contain_text("1 of ")
    page.get_by_role("button", name=f"L{layer} H{(head + 1) % 4},").click()
    expect(intro).to_contain_text(re.compile(rf"^In this text, L{layer} H{(head + 1) % 4} "))
    expect(following).to_be_hidden()
    # The text of the visitor, and numbers that are the model's own.
    change_settings(page, seed=3, length=30)
    write(page, "to be or not to be")
    expect(intro).to_contain_text("In your text, L")
    loaded = server.served.models["tiny"]
    weights = loaded.trace(text(page).text_content()).attention
    T = weights.shape[-1]
    for layer, head in itertools.product(range(3), range(4)):
        page.locator(f".hs-grid button[data-place='{layer},{head}']").click()
        expect(intro).to_contain_text(re.compile(f"In your text, L{layer} H{head} .*attention"))
        back = re.search(r"looks (at the letter before|\d) .*on average", intro.text_content())
        if not back:
            continue
        n = int(back[1]) if back[1].isdigit() else 1
        mean, places = re.search(r": ([\d.]+) on average over (\d+) places", intro.text_content()).groups()
        assert int(places) == T - n
        assert abs(float(weights[layer, head].diagonal(-n).mean()) - float(mean)) < 0.0051
    # A text that fills the context has a last token without a row.
    change_settings(page, seed=3, length=60)
    write(page, "to be or not to be")
    expect(page.get_by_text("The context of 64 tokens is full")).to_be_visible()
    expect(intro).to_contain_text("In your text, L")
    intro.get_by_role("button", name="What is this head for?").click()
    expect(page.get_by_role("region", name="Ask", exact=True)).to_contain_text("What is this head for?")


def test_the_first_example_waits_for_what_the_heads_do(browser: Any, server: Server) -> None:
    page = opened(browser, server, {"width": 1440, "height": 900}, own_clock=True)
    page.route("**/v1/lens/roles?*", lambda _: None)  # the answer does not come
    page.reload()
    expect_drawn(page)
    page.clock.install()
    intro = introduced(page)
    intro.get_by_role("button", name="Show me").click()
    expect(intro).to_contain_text("Measuring what each head does")
    page.clock.fast_forward(3_000)  # but only briefly
    expect(intro).to_contain_text("In this text, L")
    expect(intro.get_by_role("button", name=re.compile("Next head|Done"))).to_contain_text("1 of ")


def test_a_tile_opens_its_head_over_a_phones_screen(browser: Any, server: Server) -> None:
    page = opened(browser, server, PHONE)
    tile = page.get_by_role("button", name="L0 H2,")
    tile.click()
    sheet = page.get_by_role("region", name="Attention weights, L0 H2")
    expect(sheet.locator(".hs-board")).to_be_in_viewport(ratio=0.9)
    # The selected token and its surroundings stay in view, and a tap there selects another token.
    lines = sheet.get_by_role("group", name="Text around the selected token")
    expect(lines.locator(".hs-query")).to_be_in_viewport(ratio=1)
    here = int(lines.locator(".hs-query").get_attribute("data-i"))
    lines.locator(f"[data-i='{here - 1}']").click()
    expect(page.locator(".hs-writing .hs-chosen")).to_have_attribute("data-i", str(here - 1))
    # Once it has stopped moving, its parts are stacked vertically.
    page.evaluate("Promise.all(document.getAnimations().map((animation) => animation.finished))")
    parts = [part.bounding_box() for part in sheet.locator("> *:visible").all()]
    assert all(one["y"] + one["height"] <= other["y"] for one, other in itertools.pairwise(parts))
    sheet.get_by_role("button", name="Ask").click()  # which is about all heads, behind the sheet
    expect(sheet.locator(".hs-board")).not_to_be_in_viewport(ratio=0.9)
    expect(page.locator(".hs-grid button:visible")).to_have_count(12)
    page.keyboard.press("Escape")
    tile.click()
    page.get_by_role("button", name="Back to the heads").click()
    expect(tile).to_be_in_viewport(ratio=0.98)
    expect(sheet.locator(".hs-board")).not_to_be_in_viewport(ratio=0.9)


def test_a_finger_hits_what_it_aims_at(browser: Any, server: Server) -> None:
    page = opened(browser, server, PHONE, has_touch=True, is_mobile=True)
    # A phone cannot hover and has no keys.
    expect(page.get_by_text("tap one to branch")).to_have_count(1)
    assert "Hover" not in page.locator(".headscope").first.text_content()
    for box in (tile.bounding_box() for tile in page.locator(".hs-grid button").all()):
        assert box["width"] >= 44 and box["height"] >= 44
    assert text(page).evaluate("e => parseFloat(getComputedStyle(e).lineHeight)") >= 28
    box = page.get_by_label("colour by surprise").bounding_box()
    assert box["width"] >= 20 and box["height"] >= 20
    prompt = page.get_by_label("Prompt")
    before = prompt.bounding_box()["height"]
    prompt.fill("one line\nand another\nand a third")
    assert prompt.bounding_box()["height"] > before + 20
    assert prompt.evaluate("e => e.scrollHeight <= e.clientHeight + 2")
    prompt.blur()
    assert prompt.bounding_box()["height"] == before


def test_expert_controls_are_folded_away(browser: Any, server: Server) -> None:
    page = opened(browser, server, {"width": 1440, "height": 900})
    controls = (
        "Metric of the heads",
        "Order of the heads",
        "Colour scale",
        "Smallest weight drawn",
        "means and rollout",
    )
    for name in controls:
        expect(page.get_by_label(name)).to_be_hidden()
    page.get_by_role("button", name="View", exact=True).click()
    for name in controls:
        expect(page.get_by_label(name)).to_be_visible()
    page.get_by_label("Colour scale").focus()
    page.keyboard.press("Escape")
    expect(page.get_by_label("Colour scale")).to_be_hidden()
    expect(page.get_by_role("button", name="View", exact=True)).to_be_focused()


def test_the_first_tab_stops_skip_to_the_parts(page: Any) -> None:
    for stops, name, target in (
        (1, "Skip to heads", ".hs-grid button"),
        (2, "Skip to the open head", ".hs-board"),
        (3, "Skip to the next token", ".hs-next button"),
    ):
        page.reload()
        expect(page.locator(".hs-bars table[aria-busy=false] tbody tr").first).to_be_visible()
        for _ in range(stops):
            page.keyboard.press("Tab")
        expect(page.get_by_role("button", name=name)).to_be_focused()
        expect(page.get_by_role("button", name=name)).to_be_in_viewport(ratio=1)
        page.keyboard.press("Enter")
        assert page.evaluate("(target) => document.activeElement.matches(target)", target)
