"""The page below a path of a site, behind an nginx that strips the path and behind one that passes it on."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers import also_slow
from helpers.page import expect_drawn, expect_status, show_page, write
from helpers.server import Server, start
from helpers.tabs import Profiles, opened_page
from helpers.third_party.nginx import below_a_path

pytestmark = pytest.mark.gradio


@pytest.fixture(scope="module")
def below(checkpoints: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Server]]:
    server = start(checkpoints / "tiny", root_path="/heads", trusted_proxies=1)
    with below_a_path(server.url, tmp_path_factory.mktemp("nginx")) as urls:
        yield {way: replace(server, url=url) for way, url in urls.items()}
    server.close()


@pytest.mark.parametrize("way", ["strips", *also_slow("passes")])
def test_the_page_works_and_asks_for_nothing_outside_its_path(
    browser: Profiles, below: dict[str, Server], way: str
) -> None:
    url = below[way].url
    page, complaints = opened_page(browser, url)
    asked: list[str] = []
    failed: list[Any] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("response", lambda response: failed.append(response.url) if response.status >= 400 else None)
    expect_drawn(page)
    write(page, "to be or")
    expect_status(page, "40 tokens written")
    page.wait_for_function("location.search")
    assert page.url.startswith(f"{url}/?")
    show_page(page, "Learn")
    expect(page.locator(".hl-page h2").first).to_be_visible()
    show_page(page, "Train")
    expect(page.get_by_role("heading", name="Train your own GPT")).to_be_visible()
    show_page(page, "Use")
    expect(page.get_by_text(f"curl {url}/health")).to_be_visible()
    link = page.url.partition("#")[0]
    page.goto(link)
    page.wait_for_function("document.querySelector('.hs-workspace').dataset.state === 'linked'")
    outside = [each for each in asked if not each.startswith((f"{url}/", "data:", "blob:"))]
    assert outside == [] and failed == []
    complaints.check()


@pytest.mark.parametrize("way", ["strips", *also_slow("passes")])
def test_the_page_opens_without_the_last_slash(browser: Profiles, below: dict[str, Server], way: str) -> None:
    page, complaints = opened_page(browser, below[way].url.removesuffix("/heads"), "heads?__theme=dark")
    expect_drawn(page)
    complaints.check()
