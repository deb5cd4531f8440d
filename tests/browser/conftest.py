"""Chromium, and the page opened in it."""

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect, sync_playwright

from helpers.page import AT_ONCE, expect_drawn
from helpers.server import Server

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# As root, without a GPU, and without the browser's own errands.
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
PATIENCE = 15_000  # milliseconds


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        reason = f"no browser: none of {', '.join(BROWSERS)} is installed"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield AtOnce(browser)
        browser.close()


class AtOnce:
    """A browser whose pages show a text as soon as it is written."""

    def __init__(self, browser: Any) -> None:
        self.browser = browser

    def new_page(self, **options: Any) -> Any:
        page = self.browser.new_page(**options)
        page.add_init_script(AT_ONCE)
        return page

    def new_context(self, **options: Any) -> Any:
        context = self.browser.new_context(**options)
        context.add_init_script(AT_ONCE)
        return context


@pytest.fixture(scope="session")
def context(browser: Any) -> Any:
    """A browser profile that keeps the page's files from one test to the next, and what was compiled of them.

    That takes a first page that stays open, and makes opening another twice as fast.
    """
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.new_page()
    return context


@pytest.fixture
def page(context: Any, server: Server) -> Iterator[Any]:
    """The opened page; the test fails if it threw an error or asked another host for anything."""
    errors: list[str] = []
    strangers: list[str] = []
    (kept,) = context.pages
    if not kept.url.startswith(server.url):
        kept.goto(server.url)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda said: errors.append(said.text) if is_error(said) else None)
    page.on("request", lambda request: None if is_own(request.url, server.url) else strangers.append(request.url))
    page.goto(server.url)
    expect_drawn(page)  # the opening is there and drawn
    yield page
    forget(context, server)
    assert not errors
    assert not strangers


def forget(context: Any, server: Server) -> None:
    """Close a visitor's pages, and keep nothing of the visit but the files."""
    kept, *opened = context.pages
    for page in opened:
        page.close()
    session = context.new_cdp_session(kept)
    session.send("Storage.clearDataForOrigin", {"origin": server.url, "storageTypes": "local_storage,indexeddb"})
    session.detach()
    context.clear_cookies()
    context.clear_permissions()


def is_error(said: Any) -> bool:
    """Whether the console shows an error; what is refused or lost has a status that the browser logs by itself."""
    return said.type == "error" and "a status of 4" not in said.text


def is_own(address: str, url: str) -> bool:
    return address.startswith((f"{url}/", "data:", "blob:"))
