"""Every example of the Use tab runs as it stands, against the page's own address."""

from typing import Any

from playwright.sync_api import expect

from helpers.page import show_page
from helpers.server import Server


def test_the_page_shows_its_own_address(page: Any, server: Server) -> None:
    show_page(page, "Use")
    expect(page.get_by_text(f"curl {server.url}/health")).to_be_visible()
