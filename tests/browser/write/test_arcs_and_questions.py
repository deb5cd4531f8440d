"""The first screen: how much is on it, and the arcs in its text."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from playwright.sync_api import expect

from helpers import also_slow
from helpers.gate import Gate, News
from helpers.page import AT_ONCE, text, two_frames
from helpers.serve_once import ROOT
from helpers.server import Server, start

OFF = re.compile("What if these .*heads were off")
SKIPPED = ".hs-text, .hs-grid, .hs-skip, textarea, select"  # tokens, tiles, and links that only keys reach
# What is visible in the window, without tokens and tiles: controls, words, and the sizes of letters.
VISIBLE = """(skipped) => {
  const isSeen = (element) => {
    const { top, bottom, width, height } = element.getBoundingClientRect();
    return !element.closest(skipped) && element.checkVisibility() && width > 2 && height > 2 && top < innerHeight
      && bottom > 0;
  };
  const root = document.querySelector(".hs-page");
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const words = [];
  const sizes = new Set();
  while (walker.nextNode()) {
    const { parentElement: element, data } = walker.currentNode;
    if (!data.trim() || !isSeen(element)) continue;
    words.push(data);
    sizes.add(parseFloat(getComputedStyle(element).fontSize));
  }
  const controls = [...root.querySelectorAll("button, a[href], input, select, textarea")]
    .filter((element) => isSeen(element) || element.id === "hs-prompt").length;
  return { controls, text: words.join(" "), sizes: [...sizes].sort((a, b) => a - b) };
}"""


@pytest.fixture(scope="module")
def stories() -> Iterator[Server]:
    server = start(*(ROOT / "checkpoints" / name for name in ("stories-bpe", "shakespeare-char", "two-layer-steps")))
    yield server
    server.close()


def opened(browser: Any, server: Server, width: int = 1440, height: int = 900, **options: Any) -> Any:
    """The page of a first visitor, with the arc of its opening drawn."""
    page = browser.new_page(viewport={"width": width, "height": height}, **options)
    page.add_init_script(AT_ONCE)
    page.add_init_script('localStorage["headscope-details"] = localStorage["headscope-view"] = ""')
    page.goto(server.url)
    expect(page.locator(".hs-text .hs-arcs path[d]").first).to_be_attached()
    expect(page.locator(".hs-next tbody tr")).to_have_count(5)
    return page


@pytest.mark.gradio
def test_half_of_the_screen_is_hidden_without_details(browser: Any, stories: Server) -> None:
    page = opened(browser, stories)
    seen = page.evaluate(VISIBLE, SKIPPED)
    assert seen["controls"] <= 24, seen
    assert len(re.findall(r"\d[\d.,]*", seen["text"])) <= 12, seen["text"]
    assert len(re.findall(r"[A-Za-z’]+", seen["text"])) <= 120, seen["text"]
    sizes = [*seen["sizes"], text(page).evaluate("e => parseFloat(getComputedStyle(e).fontSize)")]
    assert all(13 <= size <= 14 or 16 <= size <= 19 or 24 <= size <= 26 for size in sizes), sizes
    assert page.evaluate("document.fonts.check('16px \"IBM Plex Sans\"')")
    details = page.get_by_role("switch", name="Details")
    for name in ("View", "Pin", "Speed", "colour by surprise"):
        expect(page.get_by_label(name).or_(page.get_by_role("button", name=name, exact=True)).first).to_be_hidden()
    details.click()
    for name in ("View", "Pin", "Speed", "colour by surprise"):
        expect(page.get_by_label(name).or_(page.get_by_role("button", name=name, exact=True)).first).to_be_visible()
    assert page.evaluate("localStorage['headscope-details']") == "on"


def test_an_arc_leads_from_the_word_that_looks_to_the_word_looked_at(browser: Any, stories: Server) -> None:
    page = opened(browser, stories)
    expect(page.locator(".hs-finding")).to_contain_text("Layer 7, head 6 looks back at “kite” with 92%")
    arc = page.locator(".hs-text .hs-arcs path[d]").last  # the strongest
    query, key = (int(arc.get_attribute(f"data-{name}")) for name in ("query", "key"))
    words = page.locator(".hs-writing .hs-token").all_text_contents()
    assert (words[query], words[key]) == (" my", " kite")
    ends = arc.evaluate("""(path) => [0, path.getTotalLength()].map((at) => {
      const point = path.getPointAtLength(at).matrixTransform(path.getScreenCTM());
      return [point.x, point.y];
    })""")
    for (x, y), token in zip(ends, (query, key), strict=True):
        box = page.locator(f".hs-writing [data-i='{token}'] .hs-word").bounding_box()
        assert abs(x - (box["x"] + box["width"] / 2)) < 2
        assert min(abs(y - box["y"]), abs(y - box["y"] - box["height"])) < 4
    # Hovering draws other arcs from the places that are known.
    page.evaluate("""() => {
      window.reads = 0;
      for (const name of ["getClientRects", "getBoundingClientRect"]) {
        const read = Element.prototype[name];
        Element.prototype[name] = function () { window.reads++; return read.call(this); };
      }
    }""")
    for token in (27, 25, 22):
        place = f".hs-writing [data-i='{token}']"
        page.evaluate(
            "(place) => document.querySelector(place).dispatchEvent(new PointerEvent('pointerover', {bubbles: true}))",
            place,
        )
        expect(page.locator(".hs-text .hs-arcs path[d]").first).to_have_attribute("data-query", str(token))
    assert page.evaluate("reads") == 0


def test_everything_follows_the_pointer(browser: Any, stories: Server) -> None:
    page = opened(browser, stories)
    said = page.locator(".hs-finding p")
    page.get_by_role("button", name="L0 H4,").hover()
    expect(said).to_contain_text("Layer 0, head 4 looks back at “at” with 94%")
    page.mouse.move(5, 5)
    expect(said).to_contain_text("Layer 7, head 6 looks back at “kite” with 92%")
    after = page.get_by_role("region", name="Next token").get_by_role("heading")
    expect(after).to_have_text("Next word after “my”")
    word = page.locator(".hs-writing [data-i='16']")
    for act in (word.hover, word.click):
        act()
        expect(page.locator(".hs-writing .hs-query")).to_have_attribute("data-i", "16")
        expect(after).to_have_text(f"Next word after “{(word.text_content() or '').strip()}”")
    # A cell that is not the strongest of its row is not said to be.
    board = page.locator(".hs-board").bounding_box()
    page.mouse.move(board["x"] + 0.3 * board["width"], board["y"] + 0.9 * board["height"])
    expect(said).to_contain_text(" gives ")


@pytest.mark.slow
def test_the_sentence_gives_the_mean_attention_of_several_heads(browser: Any, stories: Server) -> None:
    page = opened(browser, stories)
    loaded = stories.served.models["stories-bpe"]
    prompt = json.loads((ROOT / "checkpoints/stories-bpe/opening.json").read_text())["prompt"]
    weights = loaded.trace(prompt).attention[:, :, -1]
    said = page.locator(".hs-finding p")
    off = page.get_by_role("button", name=OFF)

    def mean(*heads: tuple[int, int]) -> str:
        row = torch.stack([weights[head] for head in heads]).mean(0)
        return f"{100 * float(row.max()):.0f}%"

    expect(page.locator(".hs-grid .hs-tag", has_text="copies")).to_have_count(8)
    expect(off).to_have_text("What if these 7 heads were off?")
    off.hover()
    copying = [(4, 3), (4, 5), (5, 5), (5, 6), (6, 0), (7, 6), (7, 7)]  # and one that looks at “new”
    expect(said).to_have_text(f"These 7 heads look back at “kite” with {mean(*copying)} of their attention on average.")
    expect(page.locator(".hs-grid .hs-with")).to_have_count(6)
    page.mouse.move(5, 5)
    expect(said).to_contain_text("Layer 7, head 6 looks back at “kite”")
    page.locator(".hs-grid [data-picture='0,4']").click()
    page.locator(".hs-grid [data-picture='5,1']").click(modifiers=["Shift"])
    expect(said).to_contain_text(f"These 2 heads look back at “at” with {mean((0, 4), (5, 1))} of their attention")
    page.locator(".hs-grid [data-picture='7,6']").click()
    expect(said).to_contain_text("Layer 7, head 6 looks back at “kite”")


@pytest.mark.slow
def test_a_written_text_shows_a_look_back_and_few_tiles_are_drawn_at_once(
    browser: Any, stories: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, gate = stories.services.engines.engine_for(stories.served.models["stories-bpe"]), Gate(News())
    forward = engine.forward
    monkeypatch.setattr(engine, "forward", lambda planned: gate.pass_through(lambda: False) and forward(planned))
    page = opened(browser, stories)
    page.evaluate("""() => {
      window.frames = [0];
      const draw = CanvasRenderingContext2D.prototype.drawImage;
      CanvasRenderingContext2D.prototype.drawImage = function (...how) {
        if (document.querySelector(".hs-page[data-state=writing]") && this.canvas.closest(".hs-grid")) {
          if (!frames.at(-1)) requestAnimationFrame(() => frames.push(0));
          frames[frames.length - 1]++;
        }
        return draw.apply(this, how);
      };
    }""")
    page.get_by_label("Prompt").fill('Sara has a green frog. Tom has a blue hat. Sara says, "I like my green')
    page.get_by_role("button", name="Write", exact=True).click()
    gate.release(12)
    page.wait_for_function("document.querySelectorAll('.hs-writing .hs-token').length > 30")
    page.wait_for_function("frames[0]")  # weights come after the tokens that they belong to
    assert max(page.evaluate("frames")) <= 16
    gate.release(1_000)
    expect(page.get_by_role("button", name="Stop")).to_be_hidden()
    expect(page.locator(".hs-finding p")).to_contain_text(" looks back at ")
    expect(page.get_by_role("button", name=OFF)).to_be_enabled()
    # Who gets its address sees the same, and may be shown what it means.
    other = browser.new_page(viewport={"width": 1440, "height": 900})
    other.add_init_script('localStorage["headscope-details"] = localStorage["headscope-view"] = ""')
    page.wait_for_url("**ids=**")
    other.goto(page.url)
    expect(other.locator(".hs-finding p")).to_have_text(page.locator(".hs-finding p").text_content())
    expect(other.get_by_role("button", name="Show me")).to_be_enabled()


@pytest.mark.gradio
@pytest.mark.parametrize("width", [390, *also_slow(768)])
def test_narrow_screens_are_for_fingers(browser: Any, stories: Server, width: int) -> None:
    page = opened(browser, stories, width, 844 if width == 390 else 1024, has_touch=True, is_mobile=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    prompt = page.get_by_label("Prompt")
    assert prompt.evaluate("e => parseFloat(getComputedStyle(e).fontSize)") >= 16
    assert prompt.bounding_box()["width"] >= 0.55 * width
    model = page.get_by_role("button", name="Model", exact=True).locator("span").first
    assert model.evaluate("e => e.scrollWidth <= e.clientWidth")
    if width == 768:
        return
    assert page.locator(".hs-grid button").first.bounding_box()["y"] <= 450
    assert page.locator(".hs-grid canvas").first.bounding_box()["width"] >= 36
    for control in page.locator(".hs-page button:visible, .hs-page textarea:visible").all():
        if control.evaluate("e => e.closest('.hs-skip, .hs-open') === null"):
            assert control.bounding_box()["height"] >= 43.5, control.get_attribute("aria-label")
    # Above a word, between two lines, a finger means the word.
    box = page.locator(".hs-writing [data-i='20']").bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] - 2)
    two_frames(page)
    expect(page.locator(".hs-text .hs-arcs path[d]").last).to_have_attribute("data-query", re.compile("^(19|20)$"))
