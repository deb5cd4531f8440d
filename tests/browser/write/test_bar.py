"""The bar: keys in the prompt, what is written, seeds, focus, and switching between the pages.

What needs no browser is tested in ``tests/js/look/bar.test.mjs``.
"""

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers import also_slow
from helpers.page import (
    change_settings,
    expect_drawn,
    number_field,
    opened_settings,
    show_page,
    text,
    write,
    write_button,
)
from helpers.server import Server


@pytest.mark.slow
def test_an_unfocused_prompt_shows_one_whole_line(page: Any) -> None:
    prompt = page.get_by_label("Prompt", exact=True)
    prompt.fill("one line\nand another" * 20)
    prompt.blur()
    assert prompt.evaluate("each => each.scrollTop") == 0
    prompt.fill("one line\nand another")
    prompt.blur()
    height = float(prompt.evaluate("each => each.clientHeight"))
    line = float(prompt.evaluate("each => parseFloat(getComputedStyle(each).lineHeight)"))
    assert height == line  # the second line begins below the field
    prompt.focus()
    assert float(prompt.evaluate("each => each.clientHeight")) > height
    prompt.fill("one line")
    prompt.blur()
    assert float(prompt.evaluate("each => each.clientHeight")) == height


@pytest.mark.slow
def test_every_text_has_a_seed_of_its_own_until_it_is_pinned(page: Any, server: Server) -> None:
    loaded = server.served.models["tiny"]
    change_settings(page, length=10)
    texts = []
    for _ in range(2):
        write(page, "But soft")
        expect(text(page)).not_to_have_text(texts[-1] if texts else "")
        expect(text(page)).to_have_text(re.compile(r"^But soft.{10}$", re.DOTALL))
        expect(page.locator(".hs-workspace[data-state=done]")).to_be_visible()
        with opened_settings(page) as panel:
            seed = int(panel.get_by_label("seed", exact=True).input_value())
        texts.append(text(page).text_content())
        expected = "".join(step.text for step in loaded.generate("But soft", 10, temperature=0.8, seed=seed))
        assert texts[-1] == "But soft" + expected
    assert texts[0] != texts[1]
    with opened_settings(page) as panel:
        panel.get_by_label("Reuse this seed").check()
    with page.expect_response("**/look/write"):
        write(page, "But soft")
    expect(page.locator(".hs-workspace[data-state=done]")).to_be_visible()
    expect(text(page)).to_have_text(texts[1])


@pytest.mark.slow
@pytest.mark.gradio
def test_the_pages_keep_what_they_show(page: Any) -> None:
    page.get_by_label("Prompt").fill("my own")
    page.locator(".hs-writing .hs-token").nth(15).click()
    shown = text(page).text_content()
    for title, name in (("Learn", "learn"), ("Use", "use")):
        show_page(page, title)
        expect(page.locator("body")).to_have_attribute("data-page", name)
        assert page.evaluate("location.hash").startswith(f"#{name}")
        expect(page.get_by_role("button", name=title)).to_have_attribute("aria-current", "page")
        expect(text(page)).to_be_hidden()
        expect(page.get_by_label("Prompt")).to_be_hidden()
    page.reload()
    expect(page.get_by_text("/health").first).to_be_visible()
    expect(page.locator("body")).to_have_attribute("data-page", "use")
    show_page(page, "Learn")
    expect(page.locator(".hl-lesson")).to_be_visible()
    show_page(page, "Look")
    expect(text(page)).to_have_text(shown)
    page.get_by_label("Prompt").fill("my own")
    page.locator(".hs-writing .hs-token").nth(15).click()
    show_page(page, "Learn")
    show_page(page, "Look")
    assert page.evaluate("location.hash") == ""
    expect(page.get_by_label("Prompt")).to_have_value("my own")
    expect(page.get_by_label("Step", exact=True)).to_have_value("15")


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["dark", *also_slow("light")])
def test_keyboard_focus_is_visible_on_every_control(browser: Any, server: Server, theme: str) -> None:
    """The pixels around sliders, fields and boxes change when they get keyboard focus."""
    page = browser.new_page(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
    page.goto(f"{server.url}?__theme={theme}")
    expect_drawn(page)
    with opened_settings(page) as panel:
        controls = [
            panel.get_by_label("temperature", exact=True),
            number_field(panel, "temperature"),
            panel.get_by_label("Reuse this seed"),
            panel.get_by_label("Keep writing past the context window"),
        ]
        check_focus(page, controls)
    page_controls = [
        page.get_by_label("Step", exact=True),
        page.get_by_label("colour by surprise"),
        page.get_by_label("hide the first token"),
        page.get_by_label("Smallest weight drawn"),
        page.get_by_label("Speed"),
        page.get_by_label("Prompt"),
        write_button(page),
    ]
    check_focus(page, page_controls)


def check_focus(page: Any, controls: list[Any]) -> None:
    page.keyboard.press("Tab")  # from now on focus counts as keyboard focus
    for control in controls:
        control.scroll_into_view_if_needed()
        control.evaluate("e => document.activeElement.blur()")
        box = control.bounding_box()
        margin = 5
        x, y = max(box["x"] - margin, 0), max(box["y"] - margin, 0)
        clip = {"x": x, "y": y, "width": box["width"] + 2 * margin, "height": box["height"] + 2 * margin}
        before = page.screenshot(clip=clip, caret="hide")
        control.focus()
        after = page.screenshot(clip=clip, caret="hide")
        assert n_different(before, after) >= 40, control


def n_different(one: bytes, other: bytes) -> int:
    """The number of pixels that clearly differ between two pictures."""
    import io

    from PIL import Image, ImageChops

    images = [Image.open(io.BytesIO(data)).convert("L") for data in (one, other)]
    return sum(ImageChops.difference(*images).histogram()[32:])
