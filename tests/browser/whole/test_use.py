"""The examples of the Use tab name the page's own address and fit a phone. (tests/http/test_use.py runs them.)"""

from typing import Any

import pytest
from playwright.sync_api import expect

from helpers.page import show_page
from helpers.server import Server

pytestmark = pytest.mark.gradio


def test_examples_name_this_address_and_fit_a_phone(page: Any, server: Server) -> None:
    show_page(page, "Use")
    expect(page.get_by_text(f"curl {server.url}/health")).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    cut_off = page.evaluate(
        "[...document.querySelectorAll('#hs-use pre')].filter(e => e.scrollWidth > e.clientWidth).length"
    )
    assert cut_off == 0
    under = page.evaluate("""[...document.querySelectorAll('#hs-use .code_wrap')].filter((wrap) => {
        const left = wrap.querySelector('button').getBoundingClientRect().left;
        const lines = [...wrap.querySelector('code').getClientRects()];
        return lines.some(({ right }) => right > left);
    }).length""")
    assert under == 0
