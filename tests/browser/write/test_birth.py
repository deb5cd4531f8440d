"""The next word at each step of the training, for a text that goes on."""

import re
from typing import Any

from playwright.sync_api import expect

from helpers.page import AT_ONCE
from helpers.serve_once import ROOT
from helpers.server import start


def test_the_steps_are_read_for_the_next_word_of_a_text_that_goes_on(browser: Any) -> None:
    server = start(ROOT / "checkpoints" / "two-layer-steps")
    page = browser.new_page(reduced_motion="reduce")
    page.add_init_script(AT_ONCE)
    page.add_init_script('localStorage["headscope-details"] = ""; localStorage["headscope-played"] = "yes"')
    page.goto(server.url)
    for _ in range(3):
        page.get_by_role("button", name="Next word").click()
        expect(page.get_by_label("Step of the training")).to_be_visible()
        word = re.escape(page.locator(".hs-now .hs-ghost-word").text_content())
        expect(page.locator(".hs-birth-title")).to_have_text(re.compile(rf"^How likely .?{word}.? is$"))
        assert "NaN" not in page.locator(".hs-birth-line").get_attribute("d")
    server.close()
