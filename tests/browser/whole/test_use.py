"""Every example of the Use tab runs as it stands, against the page's own address."""

from typing import Any

from playwright.sync_api import expect

from helpers.server import Server


def test_the_page_shows_its_own_address(page: Any, server: Server) -> None:
    page.get_by_role("tab", name="Use").click()
    expect(page.get_by_text(f"curl {server.url}/health")).to_be_visible()
