"""The stage: the sentence, the threads of its heads, the words that could come next, the switch and the field."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from playwright.sync_api import expect

from helpers.page import AT_ONCE, SKIPPED, VISIBLE, save, two_frames
from helpers.serve_once import ROOT
from helpers.server import Server, start

COPYING = [(4, 3), (4, 5), (5, 5), (5, 6), (6, 0), (7, 6), (7, 7)]  # look back at “kite”
PLACES = """() => [...document.querySelectorAll(
  ".hs-sentence, .hs-stage-say, .hs-next-words, .hs-head-tile, .hs-verdict .hs-stage-actions, .hs-card")]
  .map((part) => { const { x, y, width } = part.getBoundingClientRect(); return [x, y, width].map(Math.round); })"""


@pytest.fixture(scope="module")
def stories() -> Iterator[Server]:
    server = start(*(ROOT / "checkpoints" / name for name in ("stories-bpe", "shakespeare-char", "two-layer-steps")))
    yield server
    server.close()


@pytest.fixture(scope="module")
def prompt() -> str:
    declared: dict[str, str] = json.loads((ROOT / "checkpoints/stories-bpe/opening.json").read_text())
    return declared["prompt"]


def opened(browser: Any, server: Server, width: int = 1440, height: int = 900, query: str = "", **options: Any) -> Any:
    """The page of somebody who has been here before, with the threads of its opening drawn."""
    page = browser.new_page(viewport={"width": width, "height": height}, **options)
    page.add_init_script(AT_ONCE)
    page.add_init_script('localStorage["headscope-details"] = ""; localStorage["headscope-played"] = "yes"')
    page.goto(server.url + query)
    expect(page.locator(".hs-thread-strong").first).to_be_attached()
    return page


def said(page: Any) -> Any:
    return page.locator(".hs-stage-say")


def switch(page: Any) -> Any:
    return page.locator(".hs-verdict .hs-main-action")


def next_word(page: Any) -> Any:
    return page.locator(".hs-now .hs-ghost-word")


def percent(part: float) -> str:
    return f"{100 * part:.0f}%" if part >= 0.0995 else f"{100 * part:.1f}%"


def test_the_first_screen_says_little_and_scrolls_nothing(browser: Any, stories: Server) -> None:
    page = opened(browser, stories)
    seen = page.evaluate(VISIBLE, SKIPPED)
    assert seen["controls"] <= 24, seen
    assert len(re.findall(r"[A-Za-z’]+", seen["text"])) <= 120, seen["text"]
    assert set(seen["sizes"]) <= {12, 13, 14, 17, 18, 20}, seen["sizes"]
    assert page.evaluate("document.documentElement.scrollHeight") <= 900
    assert page.locator(".hs-panels *").count() == 0  # what only details show is not there
    page.wait_for_function("document.fonts.check('16px \"IBM Plex Sans\"')")


def test_a_thread_leads_from_the_last_word_to_where_each_head_looks(browser: Any, stories: Server, prompt: str) -> None:
    """The widest is that of the head that adds most to the next word; nothing but its own words does it touch."""
    page = opened(browser, stories)
    loaded = stories.served.models["stories-bpe"]
    weights = loaded.trace(prompt).attention[:, :, -1]
    token = loaded.parse_prompt(f"{prompt} kite")[-1]
    adds = loaded.attribution(prompt, token=token).heads
    threads = page.locator(".hs-threads path[data-head]")
    expect(threads).to_have_count(64)
    head = int(adds.argmax())
    widest = threads.last
    expect(widest).to_have_attribute("data-head", str(head))
    key = int(weights.flatten(0, 1)[head].argmax())
    ends = widest.evaluate("""(path) => [0, path.getTotalLength()].map((at) => {
      const point = path.getPointAtLength(at).matrixTransform(path.getScreenCTM());
      return [point.x, point.y];
    })""")
    last = weights.shape[-1] - 1
    for (x, y), at in zip(ends, (last, key), strict=True):
        box = page.locator(f".hs-sentence [data-i='{at}'] .hs-letters").bounding_box()
        assert box["x"] <= x <= box["x"] + box["width"] and box["y"] - 4 <= y <= box["y"] + box["height"] + 4
    expect(page.locator(".hs-head-tile.hs-named")).to_have_count(len(COPYING))
    expect(page.locator(".hs-thread-strong")).to_have_count(len(COPYING))
    expect(page.locator(".hs-head-tile.hs-lit")).to_have_count(0)
    page.get_by_role("button", name="Turn these 7 heads off").hover()
    for part in (".hs-head-tile.hs-lit", ".hs-threads path.hs-lit"):
        expect(page.locator(part)).to_have_count(len(COPYING))
    page.mouse.move(0, 0)
    part = float(sum(adds[head] for head in COPYING) / adds.sum())
    expect(said(page)).to_have_text(
        f"Seven of 64 heads look back at “kite” and copy it. They add {percent(part)} of what all heads add to the "
        "next word."
    )


def test_one_switch_turns_the_heads_off_and_nothing_moves(browser: Any, stories: Server, prompt: str) -> None:
    page = opened(browser, stories)
    loaded = stories.served.models["stories-bpe"]
    mask = [[0.0 if (layer, head) in COPYING else 1.0 for head in range(8)] for layer in range(8)]
    kite, new = (loaded.parse_prompt(f"{prompt}{word}")[-1] for word in (" kite", " new"))
    whole, off = (
        [loaded.attribution(text, token=token).probability for token in (kite, new)]
        for text in (prompt, loaded.trace(prompt, head_mask=mask))
    )
    expect(next_word(page)).to_have_text("kite")
    expect(switch(page)).to_have_text("Turn these 7 heads off")
    before = page.evaluate(PLACES)
    switch(page).click()
    expect(said(page)).to_have_text(
        f"Without them the model expects “new”: “kite” falls from {percent(whole[0])} to {percent(off[0])}."
    )
    expect(next_word(page)).to_have_text("new")
    expect(page.locator(".hs-threads path.hs-cut")).to_have_count(7)
    expect(page.locator(".hs-head-tile.hs-cut")).to_have_count(7)
    expect(switch(page)).to_have_text("Turn these 7 heads back on")
    assert page.evaluate(PLACES) == before
    assert page.locator(".hs-now .hs-ghost-number").text_content() == percent(off[1])
    fallen = page.locator(".hs-ghost:not(.hs-leaving)", has_text="kite")  # where its probability places it
    expect(fallen.locator(".hs-ghost-number")).to_have_text(f"{percent(whole[0])} → {percent(off[0])}")
    card = page.get_by_role("region", name="Open head")
    expect(card).to_contain_text("switched off")
    expect(card).to_contain_text("“my” looked at “kite”: 92%")
    switch(page).click()
    expect(next_word(page)).to_have_text("kite")
    expect(page.locator(".hs-cut")).to_have_count(0)
    assert page.evaluate(PLACES) == before


def test_heads_stay_off_at_the_next_word_and_it_is_said(browser: Any, stories: Server) -> None:
    page = opened(browser, stories, reduced_motion="reduce")
    switch(page).click()
    expect(next_word(page)).to_have_text("new")
    page.get_by_role("button", name="Next word").click()
    expect(page.locator(".hs-sentence-text")).to_have_text(re.compile("my new$"))
    expect(said(page)).to_have_text(
        re.compile(r"^7 heads are still off\. Without these 7 heads, “kite”, the likeliest")
    )
    expect(page.locator(".hs-head-tile.hs-cut")).to_have_count(7)
    page.locator("[data-i='10'] .hs-letters").click()
    expect(page.locator(".hs-word-token")).to_have_count(11)
    expect(said(page)).to_have_text(re.compile(r"^7 heads are still off\."))
    page.get_by_role("button", name="Take it back").click()
    expect(page.locator(".hs-sentence-text")).to_have_text(re.compile("my$"))
    expect(switch(page)).to_have_text("Turn these 7 heads back on")
    page.locator(".hs-ghost button").nth(2).click()
    expect(page.locator(".hs-sentence-text")).to_have_text(re.compile(r"my \w+$"))
    expect(said(page)).to_have_text(re.compile(r"^7 heads are still off\."))
    switch(page).click()
    expect(page.locator(".hs-cut")).to_have_count(0)
    expect(said(page)).not_to_contain_text("off")
    page.get_by_role("button", name="Shakespeare").click()
    expect(switch(page)).to_have_text("Turn it off")


def test_the_open_head_has_a_switch_of_its_own(browser: Any, stories: Server, prompt: str) -> None:
    page = opened(browser, stories, reduced_motion="reduce")
    loaded = stories.served.models["stories-bpe"]
    kite = loaded.parse_prompt(f"{prompt} kite")[-1]
    mask = [[0.0 if (layer, head) == (7, 6) else 1.0 for head in range(8)] for layer in range(8)]
    to = loaded.attribution(loaded.trace(prompt, head_mask=mask), token=kite).probability
    card = page.get_by_role("region", name="Open head")
    card.get_by_role("button", name="Turn this head off").click()
    expect(said(page)).to_have_text(
        re.compile(rf"^Head 6 of layer 7 is off\. .* falls from 94% to {percent(to)}\. It stays")
    )
    expect(page.locator(".hs-head-tile.hs-cut")).to_have_count(1)
    page.locator("[data-head='7,7']").click()
    card.get_by_role("button", name="Turn this head off").click()
    expect(said(page)).to_have_text(re.compile(r"^2 heads are off\."))
    card.get_by_role("button", name="Turn this head on").click()
    expect(page.locator(".hs-head-tile.hs-cut")).to_have_count(1)
    switch(page).click()
    expect(page.locator(".hs-cut")).to_have_count(0)


def test_the_heads_that_are_counted_are_those_that_are_labelled(browser: Any, stories: Server) -> None:
    page = opened(browser, stories, query="?model=two-layer-steps", reduced_motion="reduce")
    steps = page.get_by_label("Step of the training")
    expect(steps).to_be_visible()
    counts = set()
    steps.fill("0")
    for at in range(12):
        if at:
            steps.press("ArrowRight")
        step = steps.get_attribute("aria-valuetext").split()[1]
        expect(said(page)).to_have_text(re.compile(rf"^After {step} of.* copies it"))
        words = said(page).text_content()
        assert words.count("%") and f" has {page.locator('.hs-now .hs-ghost-number').text_content()}" in words.replace(
            "under ", "<"
        )
        counted = 0 if "No head copies it" in words else 1
        assert not counted or "One of 8 heads looks back at “cat” and copies it." in words
        expect(page.locator(".hs-head-tile b", has_text="copies")).to_have_count(counted)
        assert page.locator(".hs-head-tile[data-kind='copies'], .hs-card[data-kind='copies']").count() in (
            counted,
            2 * counted,
        )
        counts.add(counted)
    assert counts == {0, 1}


def test_a_tile_lights_its_thread_and_opens_its_matrix(browser: Any, stories: Server) -> None:
    page = opened(browser, stories)
    before = page.evaluate(PLACES)
    card = page.get_by_role("region", name="Open head")
    page.locator("[data-head='7,4']").hover()
    expect(card).to_contain_text("Head 4 of layer 7")
    expect(page.locator(".hs-threads path.hs-lit")).to_have_attribute("data-head", str(7 * 8 + 4))
    page.get_by_role("button", name="Guide").hover()
    expect(card).to_contain_text("Head 6 of layer 7")  # the open one
    page.locator("[data-head='0,4']").click()
    expect(card).to_contain_text("Head 4 of layer 0")
    expect(card).to_contain_text("“my” looks at “at”")
    assert page.evaluate(PLACES) == before
    page.keyboard.press("ArrowRight")
    expect(page.locator("[data-head='0,5']")).to_be_focused()
    page.locator("[data-i='10'] .hs-letters").hover()
    assert page.locator(".hs-head-tile.hs-lit").count() == page.locator(".hs-threads path.hs-lit").count()


def test_a_ghost_goes_on_with_its_word_and_back_takes_it_back(browser: Any, stories: Server) -> None:
    page = opened(browser, stories)
    page.get_by_role("button", name=re.compile("^new, ")).click()
    page.wait_for_url("**ids=**")
    sentence = page.locator(".hs-sentence-text")
    expect(sentence).to_contain_text('"Look at my new')
    expect(next_word(page)).to_have_text("kite")
    page.get_by_role("button", name="Take it back").click()
    expect(sentence).to_have_text(re.compile('"Look at my$'))
    expect(next_word(page)).to_have_text("kite")


def test_a_word_shows_what_came_after_it(browser: Any, stories: Server) -> None:
    page = opened(browser, stories)
    page.locator("[data-i='10'] .hs-letters").click()
    expect(page.locator(".hs-from")).to_have_text(page.locator("[data-i='10'] .hs-letters").text_content())
    expect(page.locator(".hs-word-token")).to_have_count(11)
    expect(page.locator(".hs-thread-strong").first).to_be_attached()
    page.get_by_role("button", name="Next word").click()
    expect(page.locator(".hs-word-token")).to_have_count(12)
    page.get_by_role("button", name="Back to the end").click()
    expect(page.locator(".hs-sentence-text")).to_have_text(re.compile('"Look at my$'))


def test_a_text_is_written_in_the_place_of_the_sentence(browser: Any, stories: Server) -> None:
    page = opened(browser, stories)
    page.get_by_role("button", name="Write your own").click()
    field = page.get_by_label("Your text")
    expect(field).to_be_focused()
    text = page.locator(".hs-sentence-text").text_content()  # of which an element that is not shown has no inner text
    assert field.input_value() == text
    ends = field.evaluate("field => [field.selectionStart, field.selectionEnd]")
    assert ends == [0, len(text)]  # typing replaces it
    field.fill("Tom had a red ball. Sue had a blue hat. Sue liked her blue")
    field.press("Enter")
    expect(page.locator(".hs-sentence-text")).to_have_text(re.compile("^Tom had a red ball.*her blue$"))
    expect(next_word(page)).to_have_text("hat")
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("button", name="Write on").click()
    expect(page.locator(".hs-page[data-state=done]")).to_be_visible()
    # It stays at its end, with what the last word was chosen from.
    shown = page.locator(".hs-word-token").count()
    expect(page.locator(".hs-from")).to_have_text(page.locator(".hs-word-token").nth(shown - 1).inner_text().strip())
    page.get_by_role("button", name="Write your own").click()
    page.get_by_label("Your text").fill("")
    page.keyboard.press("Escape")
    expect(page.locator(".hs-sentence-text")).to_be_visible()


def test_little_moves_while_a_text_is_written_and_each_word_says_whether_it_was_drawn(
    browser: Any, stories: Server
) -> None:
    """Between the first written word and rest, by the browser's own count."""
    page = opened(browser, stories, 390, 844)
    page.evaluate("""() => {
      window.shift = 0;
      new PerformanceObserver((list) => {
        for (const { value, hadRecentInput } of list.getEntries()) if (!hadRecentInput) window.shift += value;
      }).observe({ type: "layout-shift" });
    }""")
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("button", name="Write on").click()
    expect(page.locator(".hs-page[data-state=done]")).to_be_visible()
    expect(page.locator(".hs-threads path").first).to_be_attached()
    two_frames(page)
    assert page.evaluate("shift") <= 0.02
    words = page.locator(".hs-letters[title]")
    assert words.count() > 20
    for word in words.all():
        is_drawn = word.evaluate("word => word.classList.contains('hs-by-chance')")
        chance = r"Drawn by chance: it had ([1-4]?\d|50|\d\.\d|under 0\.1)%" if is_drawn else r"Chosen as the likeliest"
        assert re.match(chance, word.get_attribute("title")), word.get_attribute("title")


def test_a_head_is_born_in_one_click(browser: Any, stories: Server) -> None:
    page = opened(browser, stories, reduced_motion="reduce")  # nothing plays by itself, and Play goes to the end
    page.get_by_role("button", name="A head is born").click()
    steps = page.get_by_label("Step of the training")
    expect(steps).to_have_attribute("max", "3000")
    said_early = r"^After 0 of 3,000 steps of training, “cat” has 0\.\d%\. No head copies it from the text\.$"
    expect(said(page)).to_have_text(re.compile(said_early))
    page.get_by_role("button", name="Play").click()
    said_last = r"^After 3,000 of 3,000 steps of training, “cat” has 9\d%\. .* copies it"
    expect(said(page)).to_have_text(re.compile(said_last))
    expect(next_word(page)).to_have_text("cat")


@pytest.mark.slow
def test_another_opening_ends_the_play_of_the_steps(browser: Any, stories: Server) -> None:
    page = opened(browser, stories)
    page.get_by_role("button", name="A head is born").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(page.locator(".hs-now .hs-ghost-word")).to_have_text("cat")
    page.get_by_role("button", name="A story").click()
    expect(page.locator(".hs-birth")).to_be_hidden()
    expect(page.locator(".hs-sentence-text")).to_have_text(re.compile('"Look at my$'))
    expect(next_word(page)).to_have_text("kite")


def test_on_a_phone_next_stays_where_it_is(browser: Any, stories: Server) -> None:
    page = opened(browser, stories, 390, 844, reduced_motion="reduce")
    button = page.get_by_role("button", name="Next", exact=True)
    before = button.bounding_box()
    button.click()
    expect(page.get_by_role("button", name="Take it back")).to_be_visible()
    after = button.bounding_box()
    assert abs(after["x"] - before["x"]) < 2, (before, after)
    expect(next_word(page)).not_to_have_text("kite")
    assert switch(page).evaluate("(node) => node.scrollWidth <= node.clientWidth")


def test_the_next_word_goes_on_with_the_sentence(browser: Any, stories: Server) -> None:
    page = opened(browser, stories)
    page.get_by_role("button", name="Next word").click()
    expect(page.locator(".hs-sentence-text")).to_have_text(re.compile('"Look at my kite$'))
    page.get_by_role("button", name="Take it back").click()
    expect(next_word(page)).to_have_text("kite")
    page.get_by_role("button", name="Why “kite”?").click()
    answer = page.get_by_role("region", name="Answer", exact=True)
    expect(answer.locator("tr.hs-why-total b")).to_have_text(re.compile(r"^\d+\.\d$"))


def test_the_instrument_has_a_way_back_to_the_sentence_with_what_is_asked(browser: Any, stories: Server) -> None:
    page = opened(browser, stories)
    page.get_by_role("button", name="More questions").click()
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("button", name="All details").click()
    expect(page.locator(".hs-panels .hs-ask")).to_be_visible()
    line = page.locator(".hs-way-back p")
    expect(line).to_have_text(re.compile('"Look at my kite$'))
    page.get_by_role("button", name="Back to the sentence").click()
    expect(page.locator(".hs-sentence-text")).to_be_visible()
    expect(page.locator(".hs-stage .hs-ask")).to_be_visible()


def test_a_file_keeps_what_the_heads_add(browser: Any, stories: Server, tmp_path: Path) -> None:
    page = opened(browser, stories)
    page.get_by_role("button", name="Why “kite”?").click()
    answer = page.get_by_role("region", name="Answer")
    expect(answer.get_by_role("status")).to_contain_text("its score of 16.1")
    page.get_by_role("button", name="More", exact=True).click()
    picture = ElementTree.parse(save(page, "Save the sentence", "SVG", tmp_path)).getroot()
    *sentence, following, claim = [text.text for text in picture.findall(".//{*}text")]
    assert sentence == page.locator(".hs-sentence .hs-letters").all_text_contents() and following == "kite"
    assert claim == said(page).text_content() and len(picture.findall(".//{*}path")) == 64
    page.goto(save(page, "Save the sentence", "HTML", tmp_path).as_uri())
    expect(said(page)).to_have_text(claim)
    expect(page.locator(".hs-card")).to_contain_text("adds +3.2 to the score of “kite”")
    expect(answer.get_by_role("status")).to_contain_text("its score of 16.1")


@pytest.mark.slow
def test_the_colours_of_the_page_are_chosen_in_the_menu(browser: Any, stories: Server) -> None:
    page = opened(browser, stories, color_scheme="light")
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_label("Colours").select_option("dark")
    expect(page.locator("body.dark")).to_be_attached()
    page.reload()
    expect(page.locator("body.dark .hs-thread-strong").first).to_be_attached()
    page.evaluate("document.body.classList.remove('dark')")  # as Gradio may do when it starts
    expect(page.locator("body.dark")).to_be_attached()
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_label("Colours").select_option("")
    expect(page.locator("body.dark")).to_have_count(0)


def test_the_guide_opens_at_its_beginning_in_the_words_of_the_screen(browser: Any, stories: Server) -> None:
    page = opened(browser, stories, 390, 600, has_touch=True, is_mobile=True)
    page.locator(".hs-menu-button").click()
    page.locator(".hs-help").click()
    guide = page.locator(".hs-guide")
    expect(guide).to_contain_text("Swipe")
    assert guide.evaluate("guide => guide.scrollTop") == 0
    assert not re.search("[Cc]lick|Arrow", guide.inner_text())


@pytest.mark.parametrize("width", [390, 1024, 1440])
def test_whatever_is_shown_the_claim_is_at_the_left_and_the_list_at_the_right(
    browser: Any, stories: Server, width: int
) -> None:
    """With all heads and without some, at an earlier word, and with one word more; so are the sizes of the letters."""
    page = opened(browser, stories, width, 900, reduced_motion="reduce")

    def places() -> Any:
        return page.evaluate("""() => [...document.querySelectorAll(
          ".hs-sentence, .hs-stage-say, .hs-verdict .hs-stage-actions, .hs-next-words")].map((part) => {
            const { x, y, right } = part.getBoundingClientRect();
            return [x, y, right].map(Math.round);
          }).concat([getComputedStyle(document.querySelector(".hs-sentence-text")).fontSize])""")

    before = places()
    (left, _, _), (said_at, _, said_to), _, (list_at, _, list_to), _ = before
    assert left == said_at and said_to < list_at and list_to <= width
    switch(page).click()
    expect(next_word(page)).to_have_text("new")
    assert places() == before
    switch(page).click()
    expect(next_word(page)).to_have_text("kite")
    page.locator("[data-i='10'] .hs-letters").click()
    expect(page.locator(".hs-word-token")).to_have_count(11)
    expect(page.locator(".hs-thread-strong").first).to_be_attached()
    assert places() == before
    page.get_by_role("button", name="Back to the end").click()
    expect(next_word(page)).to_have_text("kite")
    page.locator(".hs-next-in-place").click(position={"x": 8, "y": 12})
    expect(page.locator(".hs-sentence-text")).to_have_text(re.compile("my kite$"))
    expect(page.locator(".hs-thread-strong").first).to_be_attached()
    assert places() == before


@pytest.mark.parametrize("width", [390, 1440])
def test_the_next_word_stands_in_the_sentence(browser: Any, stories: Server, width: int) -> None:
    page = opened(browser, stories, width, 900, "?model=two-layer-steps", reduced_motion="reduce")
    word = page.locator(".hs-next-in-place")
    expect(word).to_have_attribute("data-word", "cat")
    last, box = page.locator(".hs-from").bounding_box(), word.bounding_box()
    assert abs(box["x"] - last["x"] - last["width"]) < 16 and abs(box["y"] - last["y"]) < 4
    assert box["x"] + box["width"] <= width


def test_the_opening_plays_once_and_any_key_ends_it(browser: Any, stories: Server) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.add_init_script('localStorage["headscope-details"] = ""')
    page.goto(stories.url, wait_until="commit")  # it may play before the last file has come
    expect(page.locator(".hs-waiting").first).to_be_attached()
    hidden = (".hs-stage-say", ".hs-next-words", ".hs-ask-line", ".hs-card", ".hs-all-heads canvas")
    for part in hidden:  # not said beforehand
        expect(page.locator(part).first).to_have_css("opacity", "0")
    page.keyboard.press("Shift")
    expect(page.locator(".hs-verdict")).to_have_css("opacity", "1")
    expect(page.locator(".hs-waiting")).to_have_count(0)
    expect(next_word(page)).to_have_text("kite")
    page.reload()
    expect(next_word(page)).to_have_text("kite")
    expect(page.locator(".hs-stage[data-play]")).to_have_count(0)


def test_a_phone_shows_one_head_at_a_time_within_reach_of_a_thumb(browser: Any, stories: Server) -> None:
    page = opened(browser, stories, 390, 844, has_touch=True, is_mobile=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    bar = switch(page).bounding_box()
    assert bar["y"] > 600 and page.locator(".hs-verdict .hs-stage-actions").bounding_box()["height"] < 844 / 3
    for control in page.locator(".hs-page button:visible").all():
        if control.evaluate("e => e.closest('.hs-skip, .hs-all-heads') === null"):
            assert control.bounding_box()["height"] >= 43.5, control.get_attribute("aria-label")
    assert min(page.evaluate(VISIBLE, SKIPPED)["sizes"]) >= 14
    card = page.get_by_role("region", name="Open head")
    first = card.get_by_role("heading").text_content()
    page.get_by_role("button", name="Next head").click()
    expect(card.get_by_role("heading")).not_to_have_text(first)
    expect(page.locator(".hs-threads path.hs-lit")).to_have_count(1)


@pytest.mark.slow
def test_details_show_the_instrument_and_are_remembered(browser: Any, stories: Server) -> None:
    page = opened(browser, stories)
    expect(page.locator(".hs-panels")).to_be_hidden()
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("button", name="All details").click()
    expect(page.locator(".hs-panels")).to_be_visible()
    expect(page.locator(".hs-stage")).to_be_hidden()
    expect(page.locator(".hs-grid canvas").first).to_be_visible()
    assert page.evaluate("localStorage['headscope-details']") == "on"
    page.get_by_role("switch", name="Details").click()
    expect(page.locator(".hs-stage")).to_be_visible()
    two_frames(page)
    expect(page.locator(".hs-threads path[data-head]")).to_have_count(64)
