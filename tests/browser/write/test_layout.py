"""The layout on screens of all sizes, and that nothing jumps."""

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers import also_slow
from helpers.page import choose_model, expect_drawn, module, open_head, text, two_frames, write
from helpers.serve_once import ROOT
from helpers.server import Server, save_tiny

pytestmark = pytest.mark.gradio

SHIFTS = """
  window.shifts = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const moved = entry.sources.map(({ node }) => String(node?.className ?? node?.nodeName));
      if (!entry.hadRecentInput) shifts.push([entry.value, moved]);
    }
  }).observe({ type: "layout-shift", buffered: true });
"""

# Fills the text with pieces, puts its lines into blocks, and lets them flow again: where each word is before and after.
IMPORTS = f"""
  const {{ TextBlocks }} = await import({module("look/panels/text_blocks.mjs")});
  const {{ TokenPlaces }} = await import({module("look/panels/arcs.mjs")});
"""
BLOCKS = (
    f"async ([earlier, pieces]) => {{{IMPORTS}"
    + """
  const text = document.querySelector(".hs-written .hs-text");
  const span = (name, ...children) => {
    const made = Object.assign(document.createElement("span"), { className: name });
    made.append(...children);
    return made;
  };
  const spans = pieces.map(([space, word]) =>
    space ? span("hs-token hs-spaced", span("hs-space", space), span("hs-word", word)) : span("hs-token", word));
  const words = spans.map((each) => each.querySelector(".hs-word") ?? each);
  text.replaceChildren(span("hs-earlier", earlier), ...spans);
  const look = () => {
    const { left, top } = text.getBoundingClientRect();
    const places = words.map((word) => [...word.getClientRects()].map((box) =>
      [box.left - left, box.top - top + text.scrollTop, box.width].map((number) => Math.round(10 * number))));
    return { height: text.scrollHeight, places: JSON.stringify(places), content: text.textContent };
  };
  const flowing = look();
  const blocks = new TextBlocks(text);
  blocks.extend(spans, words, new TokenPlaces(text).measured(words));
  const n_blocks = text.querySelectorAll(".hs-block").length;
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const blocked = look();
  blocks.dissolve(spans);
  return { n_blocks, flowing, blocked, dissolved: look(), left: text.querySelectorAll(".hs-block").length };
}"""
)


def opened(browser: Any, address: str, width: int, height: int) -> Any:
    page = browser.new_page(viewport={"width": width, "height": height})
    page.add_init_script('localStorage["headscope-view"] = ""')  # as a new visitor sees it
    page.goto(address)
    expect_drawn(page)
    return page


@pytest.mark.slow
def test_the_bar_leaves_the_screen_to_the_panels(browser: Any, server: Server) -> None:
    page = opened(browser, server.url, 1440, 900)
    assert page.locator(".hs-topbar").bounding_box()["height"] <= 56
    for panel in ("Text", "Heads"):
        assert page.get_by_role("region", name=panel, exact=True).bounding_box()["y"] <= 110


@pytest.mark.slow
@pytest.mark.parametrize(("width", "height"), [(1024, 768), *also_slow((1440, 900), (1180, 820))])
def test_the_heads_are_on_the_first_screen(
    browser: Any, launch: Callable[..., Server], tmp_path: Path, width: int, height: int
) -> None:
    server = launch(save_tiny(tmp_path / "six", n_layer=6, n_head=4))
    page = opened(browser, server.url, width, height)
    for name in ("0·0,", "5·3,"):
        expect(page.get_by_role("button", name=name)).to_be_in_viewport(ratio=1)


def test_the_first_heads_are_on_a_phones_first_screen(browser: Any, server: Server) -> None:
    page = opened(browser, server.url, 390, 844)
    for name in ("0·0,", "0·3,"):
        expect(page.get_by_role("button", name=name)).to_be_in_viewport(ratio=1)


def test_nothing_jumps_while_it_opens_and_writes(browser: Any, server: Server, slow: Any) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.add_init_script(SHIFTS)
    page.goto(server.url)
    expect_drawn(page)
    expect(page.locator(".hs-bars table[aria-busy=false]")).to_be_visible()
    check_shifts(page, "opening")
    choose_model(page, "slow")
    write(page, "ab")
    for n in range(1, 41):
        slow.gate.release()
        if n % 10 == 0:
            expect(text(page)).to_have_text(re.compile(rf"^ab.{{{n}}}$", re.DOTALL))
            two_frames(page)
    check_shifts(page, "writing")


def check_shifts(page: Any, when: str) -> None:
    shifts = page.evaluate("shifts.splice(0)")
    assert sum(value for value, _ in shifts) < 0.01, (when, shifts)


def test_a_chip_opens_its_head(page: Any) -> None:
    story = page.get_by_role("group", name="Heads with a clear role")
    for chip in story.get_by_role("button").all():
        chip.click()
        layer, head = map(int, re.search(r"(\d+)·(\d+)", chip.text_content()).groups())  # type: ignore[union-attr]
        assert open_head(page) == (layer, head)
        expect(page.get_by_role("region", name=f"Attention weights, head {head} of layer {layer}")).to_be_visible()


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, *also_slow(1440)])
def test_finished_lines_of_a_growing_text_stay_where_they_are(browser: Any, server: Server, width: int) -> None:
    """Among the pieces are parts of words, words longer than a line, and empty lines."""
    draw = random.Random(1)
    kinds = [(" ", 1, 9), ("", 1, 5), (" ", 1, 9), ("", 90, 150)]
    pieces = []
    for space, least, most in draw.choices(kinds, weights=[60, 20, 20, 1], k=1500):
        pieces.append((space, "".join(draw.choices("aeilmnt", k=draw.randint(least, most)))))
        if draw.random() < 0.05:
            pieces += [("", "\n")] * draw.choice([1, 1, 2])
    page = opened(browser, server.url, width, 900)
    for earlier in ("", "words that are no longer in the context"):
        found = page.evaluate(BLOCKS, [earlier, pieces])
        assert found["n_blocks"] > 10
        assert found["blocked"] == found["flowing"] == found["dissolved"]
        assert found["left"] == 0


@pytest.mark.parametrize(
    ("width", "height", "said", "asked"), [(1440, 900, 60, (16, 32, 28)), *also_slow((1024, 768, 56, (12, 64, 8)))]
)
def test_each_part_follows_the_one_above_it(
    browser: Any, launch: Callable[..., Server], width: int, height: int, said: int, asked: tuple[int, int, int]
) -> None:
    """Without an overlap, also for a model with steps, whose slider stands above the field. Asked: the space above
    the questions, their height, and the space below.
    """
    server = launch(*(ROOT / "checkpoints" / name for name in ("stories-bpe", "two-layer-steps")))
    above, own, below = asked
    for query in ("", "?model=two-layer-steps"):
        page = browser.new_page(viewport={"width": width, "height": height}, reduced_motion="reduce")
        page.add_init_script('localStorage["headscope-details"] = ""')
        page.goto(server.url + query)
        expect(page.locator(".hs-thread-strong").first).to_be_attached()
        expect(page.locator(".hs-ask-line")).to_be_visible()
        expect(page.locator(".hs-birth")).to_be_visible(visible=bool(query))
        names = (".hs-stage-say", ".hs-verdict .hs-stage-actions", ".hs-field-heading", ".hs-kinds", ".hs-next-words")
        names += (".hs-all-heads", ".hs-card-matrix", ".hs-card-words", ".hs-ask-line")
        boxes = [page.locator(name).bounding_box() for name in names]
        say, actions, heading, kinds, words, field, matrix, card, questions = boxes
        slider = 96 if query else 0
        assert actions["y"] == say["y"] + said + 16 and actions["height"] == 48
        assert questions["y"] == actions["y"] + 48 + above and questions["x"] + questions["width"] <= words["x"]
        assert heading["y"] == questions["y"] + own + slider + below
        assert field["y"] == matrix["y"] == heading["y"] + 24 + 8
        assert kinds["x"] + kinds["width"] <= words["x"] == card["x"]
        assert card["y"] >= words["y"] + words["height"]
        assert matrix["x"] + matrix["width"] <= words["x"]
        if not (query and height == 768):  # where the slider leaves less than the field's least height
            assert page.evaluate("document.documentElement.scrollHeight") <= height
        page.close()
