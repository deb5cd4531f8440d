"""A link for a class opens a rung as the teacher has set it: sentence, model and every control."""

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from helpers.learn_page import say, settle
from helpers.server import Server

SENTENCE = "What is in a name?"
pytestmark = pytest.mark.gradio

# Controls that show a training, which a link does not contain.
OF_A_TRAINING = ("the table after step", "show")
CONTROLS = """() => [
  ...[...document.querySelectorAll('.hl-lesson .hl-slider')].map(
    (slider) => [slider, slider.querySelector('output').textContent]),
  ...[...document.querySelectorAll('.hl-lesson .hl-choice')].map((choice) => [
    choice, choice.querySelector('select')?.value ?? choice.querySelector('[aria-pressed=true]')?.textContent]),
  ...[...document.querySelectorAll('.hl-lesson textarea')].map((text) => [text, text.value]),
].flatMap(([control, value]) => control.offsetParent ? [[control.firstElementChild?.textContent, value]] : [])"""


def visit(page: Any, address: str, rung: int) -> None:
    page.goto(address)
    settle(page, rung)
    page.wait_for_load_state("networkidle")


def change_everything(page: Any, rung: int) -> None:
    """Move every slider and choose another option of every choice."""
    for kind in (".hl-slider input", ".hl-choice"):
        for i in range(page.locator(f".hl-lesson {kind}").count()):
            control = page.locator(f".hl-lesson {kind}").nth(i)
            label = control.locator("xpath=..") if kind.endswith("input") else control
            if label.text_content().startswith(OF_A_TRAINING) or not control.is_visible():
                continue
            if kind.endswith("input"):
                most, value = float(control.get_attribute("max")), float(control.input_value())
                control.fill(str(int(most) if value < int(most) else 0))
            elif control.locator("select").count():
                control.locator("select").select_option(index=1)
            else:
                control.locator("button:not([aria-pressed=true])").last.click()
            settle(page, rung)
    page.wait_for_load_state("networkidle")


def copied_link(page: Any) -> str:
    page.evaluate("Object.assign(navigator.clipboard, { writeText: async (text) => (window.copied = text) })")
    page.get_by_role("button", name="Copy a link for a class").click()
    expect(page.get_by_text("Copied: it opens this lesson")).to_be_visible()
    link: str = page.evaluate("window.copied")
    return link


@pytest.mark.slow
@pytest.mark.parametrize("rung", range(1, 12))
def test_a_link_for_a_class_fixes_every_control(browser: Any, server: Server, rung: int) -> None:
    page, pupil = browser.new_page(), browser.new_page()
    visit(page, f"{server.url}/?model=other#learn/{rung}", rung)
    say(page, SENTENCE)
    settle(page, rung)
    if rung == 3:
        page.get_by_label("Text to learn from").fill("the cat sat on the mat")
    before = page.evaluate(CONTROLS)
    change_everything(page, rung)
    changed = page.evaluate(CONTROLS)
    assert changed != before or not before
    link = copied_link(page)
    assert parse_qs(urlsplit(link).query) == {"model": ["other"]} and "name" not in link.partition("#")[0]
    visit(pupil, link, rung)
    expect(pupil.get_by_label("Your sentence", exact=True)).to_have_value(SENTENCE)
    expect(pupil).to_have_url(re.compile(rf"#learn/{rung}$"))
    assert pupil.evaluate("window.headscopeModel") == "other"
    assert pupil.evaluate(CONTROLS) == changed
    if rung == 10:  # the server has two heads in each of two layers
        assert pupil.locator(".hl-tiles [aria-pressed=true]").get_attribute("title") == page.locator(
            ".hl-tiles [aria-pressed=true]"
        ).get_attribute("title")
    for opened in (page, pupil):
        opened.close()
