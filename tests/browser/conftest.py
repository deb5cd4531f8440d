"""Chromium, and the page opened in it."""

import os
import shutil
from collections.abc import Callable, Generator, Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect, sync_playwright

from helpers.files import ROOT
from helpers.page import change_settings, expect_drawn, expect_status, write
from helpers.server import Server, start
from helpers.tabs import HAS_FAILED, PATIENCE, KeptTab, Profiles, opened_page

# The headless shell first: without windows and toolbars of its own, it takes a tenth to a quarter less processor time.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
# As root, without a GPU, and without the browser's background requests.
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    item.stash[HAS_FAILED] = report.failed
    return report


@pytest.fixture(scope="session")
def profiles() -> Iterator[Profiles]:
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        reason = f"no browser: none of {', '.join(BROWSERS)} is installed"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield Profiles(browser)
        browser.close()


@pytest.fixture(scope="module")
def story() -> Iterator[Server]:
    """The shipped model of stories, with the roles of its heads known."""
    server = start(ROOT / "checkpoints" / "stories-bpe")
    httpx.get(f"{server.url}/v1/lens/roles", params={"model": "stories-bpe"}, timeout=60).raise_for_status()
    yield server
    server.close()


@pytest.fixture
def browser(request: pytest.FixtureRequest, profiles: Profiles, launch: Callable[..., Server]) -> Iterator[Profiles]:
    """Opens pages, each for a visitor with separate storage. They are closed before a launched server closes.

    Look is started by the page's HTML and does not need Gradio, whose start is a third of the time of opening the page.
    Gradio starts only in tests marked ``gradio``, which show other tabs or how the page starts.
    """
    profiles.with_gradio = request.node.get_closest_marker("gradio") is not None
    yield profiles
    profiles.end_visits(keep_tab=not request.node.stash.get(HAS_FAILED, False))


@pytest.fixture
def page(browser: Profiles, server: Server) -> Iterator[Any]:
    """The opened page; the test fails if it threw an error or asked another host for anything."""
    page, complaints = opened_page(browser, server.url)
    expect_drawn(page)
    yield page
    complaints.check()


class KeptText(KeptTab):
    """Shows a text that was written once."""

    def write(self, prompt: str, length: int) -> Any:
        if self.visit():
            expect_drawn(self.page)
            change_settings(self.page, seed=1, length=length)
            write(self.page, prompt)
            expect_status(self.page, f"{length} tokens written")
            expect_drawn(self.page)
            self.page.wait_for_function("location.search")
            self.address = self.page.url
        return self.page

    def reset(self) -> None:
        self.go_to("/")
        self.go_to(self.address)
        self.page.wait_for_function("document.querySelector('.hs-workspace').dataset.state === 'linked'")
        expect_drawn(self.page)


@pytest.fixture(scope="module")
def kept_text(profiles: Profiles, server: Server) -> Iterator[KeptText]:
    kept = KeptText(profiles, server)
    yield kept
    kept.leave(keep_tab=True)


@pytest.fixture
def write_once(request: pytest.FixtureRequest, kept_text: KeptText) -> Iterator[Callable[[str, int], Any]]:
    """Called with a prompt and a number of tokens: ``page`` with such a text, the same for all tests of a file."""
    yield kept_text.write
    kept_text.end_test(request.node.stash.get(HAS_FAILED, False))
