"""What a crawler reads of the page, and of a link to a text."""

import html
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from helpers.links import encode_ids
from helpers.server import Server
from web.page.link_preview import SENTENCE, TITLE


class Crawler(HTMLParser):
    """Collects what link previews are made of."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        name = given.get("property") or given.get("name") or ""
        if tag == "title":
            self.tags.append((tag, ""))
        elif tag == "meta" and (name == "description" or name.startswith(("og:", "twitter:"))):
            assert set(given) == {"property" if name.startswith("og:") else "name", "content"}
            self.tags.append((name, given["content"] or ""))


def preview(url: str, **query: Any) -> dict[str, str]:
    page = httpx.get(f"{url}/?{urlencode(query)}" if query else url, headers={"User-Agent": "facebookexternalhit/1.1"})
    tags = Crawler(page.text).tags
    assert set(Counter(name for name, _ in tags).values()) == {1}
    assert "undefined" not in str(tags) and "Gradio" not in str(tags)
    return dict(tags)


def link_to(server: Server, text: str) -> dict[str, Any]:
    loaded = server.served.models["tiny"]
    ids = encode_ids(loaded.parse_prompt(text))
    return {"model": "tiny", "sha256": loaded.sha256[:16], "ids": ids, "prompt": 1}


def test_the_page_has_its_own_title_sentence_and_picture(server: Server) -> None:
    tags = preview(server.url)
    assert tags.keys() == {
        *("title", "description", "og:title", "og:type", "og:url", "og:description", "og:image", "twitter:card")
    }
    assert (tags["og:title"], tags["og:description"], tags["og:url"]) == (TITLE, SENTENCE, f"{server.url}/")
    picture = httpx.get(tags["og:image"])
    assert picture.status_code == 200 and picture.headers["content-type"] == "image/png"
    assert picture.content.startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "text",
    [
        "to be or not to be",
        '"><script>alert(1)</script>',
        "</head><img src=x onerror=alert(1)>",
        "a' content='b\" onload=\"c",
        "&quot;&lt;",
    ],
)
def test_a_link_to_a_text_shows_its_first_words(server: Server, text: str) -> None:
    query = link_to(server, text)
    tags = preview(server.url, **query)
    assert tags["og:description"] == tags["description"] == text
    assert tags["og:url"] == f"{server.url}/?{urlencode(query)}"
    page = httpx.get(server.url, params=query).text
    assert html.escape(text) in page and (html.escape(text) == text or text not in page)


@pytest.mark.parametrize(
    "change", [{"ids": "%%"}, {"ids": ""}, {"sha256": "0" * 16}, {"sha256": ""}, {"ids": encode_ids([0] * 500)}]
)
def test_a_link_that_cannot_be_followed_shows_the_page(server: Server, change: dict[str, str]) -> None:
    assert preview(server.url, **link_to(server, "to be") | change)["description"] == SENTENCE


def test_where_a_key_is_set_nothing_of_a_text_is_told(launch: Callable[..., Server], checkpoints: Path) -> None:
    server = launch(checkpoints / "tiny", api_key="sesame")
    query = link_to(server, "to be or not")
    asked = httpx.get(server.url, params=query, headers={"Accept": "text/html"})
    assert asked.status_code == 401 and "to be" not in asked.text
    page = httpx.get(server.url, params=query, headers={"Authorization": "Bearer sesame"}).text
    assert dict(Crawler(page).tags)["og:description"] == SENTENCE and query["ids"] not in page
