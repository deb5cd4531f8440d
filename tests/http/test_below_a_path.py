"""The app below a path of a site, behind an nginx that strips the path and behind one that passes it on."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from gradio_client import Client

from helpers import run_async
from helpers.runs import new_ids, write_text
from helpers.server import Server
from helpers.third_party.mcp_client import with_tools
from helpers.third_party.nginx import below_a_path
from helpers.training.visitors import Visitor, learn_nothing, quick_server
from web.api.auth import ENTER
from web.assets import URL
from web.settings import OWN_PATH

ROOT = "/heads"


@pytest.fixture(scope="module")
def below(checkpoints: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Server]]:
    """The app as each of the proxies serves it, and as it is without one."""
    for server in quick_server(checkpoints, root_path=ROOT, trusted_proxies=1):
        with below_a_path(server.url, tmp_path_factory.mktemp("nginx")) as urls:
            yield {way: replace(server, url=url) for way, url in urls.items()} | {"neither": server}


@pytest.fixture(params=["strips", "passes", "neither"])
def server(request: pytest.FixtureRequest, below: dict[str, Server]) -> Server:
    return below[request.param]


def test_every_kind_of_address_answers(server: Server) -> None:
    paths = [
        "/",
        "/health",
        "/gradio_api/info",
        "/gradio_api/openapi.json",
        "/v1/models",
        f"/{URL}/look.mjs",
        "/look/landing",
        "/train/state",
        "/theme.css",
        "/static/fonts/IBMPlexSans/IBMPlexSans-Regular.woff2",
    ]
    assert {path: httpx.get(server.url + path).status_code for path in paths} == dict.fromkeys(paths, 200)
    assert httpx.get(f"{server.url}/v1/openapi.json").json()["servers"] == [{"url": f"{ROOT}/v1"}]
    unknown = httpx.get(f"{server.url}/v1/nothing")
    assert unknown.status_code == 404 and f"Available: {ROOT}/v1/" in unknown.json()["error"]["message"]
    assert httpx.get(f"{server.url}/headsets").status_code == 404
    picture = f"http://{urlsplit(server.url).netloc}{ROOT}/preview.png"
    assert f'"og:image" content="{picture}"' in httpx.get(f"{server.url}/").text
    assert httpx.get(picture).status_code == 200


def test_the_own_addresses_are_all_known(server: Server) -> None:
    routes: Any = server.demo.app.routes
    beginnings = {f"/{route.path.split('/')[1]}" for route in routes if hasattr(route, "path")} - {"/"}
    assert [path for path in beginnings | {ENTER} if not OWN_PATH.fullmatch(path)] == []


@pytest.mark.parametrize("end", ["", "/"])
def test_the_page_finds_its_files_with_and_without_the_last_slash(server: Server, end: str) -> None:
    page = httpx.get(server.url + end, follow_redirects=True)
    assert page.status_code == 200 and page.text.count("<base ") == 1
    assert f'<base href="{ROOT}/" />' in page.text
    (config,) = [line for line in page.text.splitlines() if "window.gradio_config = " in line]
    root = json.JSONDecoder().raw_decode(config.partition("window.gradio_config = ")[2])[0]["root"]
    assert root == f"http://{urlsplit(server.url).netloc}{ROOT}"


def test_texts_stream_and_are_downloaded(server: Server) -> None:
    body = {"prompt": "to be", "max_tokens": 5, "stream": True}
    with httpx.stream("POST", f"{server.url}/v1/completions", json=body) as response:
        chunks = [line for line in response.iter_lines() if line.startswith("data: ")]
    assert response.status_code == 200 and len(chunks) > 1 and chunks[-1] == "data: [DONE]"
    pointers = write_text(server)
    last, ids = pointers[-1], new_ids(pointers)
    assert httpx.get(f"{server.url}/look/{last['run']}/rows").status_code == 200
    text = {"ids": ids, "n_prompt": 1, "sha256": last["sha256"], "n_tokens": len(ids)}
    saved = httpx.post(f"{server.url}/look/file", json=text)
    assert saved.status_code == 200, saved.text


def test_programs_use_the_tools(server: Server) -> None:
    client = Client(server.url, verbose=False)
    assert len(client.predict("ab", max_new_tokens=3, seed=1, api_name="/generate")) == 3
    tools, results = run_async(with_tools(server.url, {}, [("tokenize", {"text": "so"})]))
    assert "generate" in tools and not results[0].isError


def test_a_visitor_trains_and_comes_back(server: Server, checkpoints: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learn_nothing(monkeypatch, checkpoints / "tiny")
    with Visitor(server) as visitor:
        assert visitor.train().status_code == 200
        (cookie,) = visitor.cookies.jar
        assert cookie.path in ("/", f"{ROOT}/")
        visitor.watch_until("state", state="done")
        assert visitor.get("/train/model.zip").status_code == 200


def test_the_key_is_asked_for_below_the_path(launch: Callable[..., Server], checkpoints: Path, tmp_path: Path) -> None:
    server = launch(checkpoints / "tiny", root_path=ROOT, trusted_proxies=1, api_key="open-sesame")
    with below_a_path(server.url, tmp_path) as urls:
        for url in urls.values():
            with httpx.Client(follow_redirects=True) as client:
                asked = client.get(f"{url}/", headers={"Accept": "text/html"})
                assert asked.status_code == 401 and f'action="{ROOT}/key"' in asked.text
                assert client.post(f"{url}/key", data={"key": "open-sesame"}).url.path == f"{ROOT}/"
                assert client.get(f"{url}/v1/models").status_code == 200
