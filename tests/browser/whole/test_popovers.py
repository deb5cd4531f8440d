"""Panels that a button opens: the model list, settings, menus. They close in the same ways."""

from typing import Any

from playwright.sync_api import expect

BUTTONS = {
    "the model list": ".hs-model-button",
    "settings": ".hs-settings-anchor > button",
    "the menu of Save": "[aria-label='Save this picture'][aria-haspopup]",
    "the menu of Compare": "[aria-label='Compare this text'][aria-haspopup]",
    "the pages": ".hs-menu-button",
}


def test_they_close_with_escape_tab_and_a_click_elsewhere(page: Any) -> None:
    for name, selector in BUTTONS.items():
        if name == "the pages":
            page.set_viewport_size({"width": 390, "height": 844})
        check_closing(page, page.locator(selector).first)


def check_closing(page: Any, button: Any) -> None:
    expect(button).to_be_enabled()

    def opened() -> None:
        button.click()
        expect(button).to_have_attribute("aria-expanded", "true")

    opened()
    page.keyboard.press("Escape")
    expect(button).to_have_attribute("aria-expanded", "false")
    expect(button).to_be_focused()
    opened()
    inside = "(button) => button.parentElement.contains(document.activeElement)"
    for _ in range(40):
        page.keyboard.press("Tab")
        if not button.evaluate(inside):
            break
    assert not button.evaluate(inside)
    expect(button).to_have_attribute("aria-expanded", "false")
    opened()
    page.mouse.click(4, 500)
    expect(button).to_have_attribute("aria-expanded", "false")
