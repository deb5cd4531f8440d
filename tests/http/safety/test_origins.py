"""Pages of other sites can read what is public, and nothing more unless the operator allows it."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from helpers.server import Server, start
from web.edge.origins import HostMiddleware

KEY = "open-sesame"
STRANGER, FRIEND, HUB = "https://evil.example", "https://friend.example", "https://huggingface.co"
BODY = {"prompt": "ab", "max_tokens": 1}
SCRIPT = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors", "Origin": STRANGER}


@pytest.fixture(scope="module")
def space(checkpoints: Path) -> Iterator[Server]:
    """As on a Space: with a key, behind a proxy, shown in the Hub's frame."""
    names = ("demo.example.org", "x.hf.space")
    server = start(
        checkpoints / "tiny",
        is_space=True,
        space_hosts=names,
        api_key=KEY,
        trusted_proxies=1,
        allowed_origins=(FRIEND,),
    )
    yield server
    server.close()


@pytest.fixture
def visitor(space: Server) -> Iterator[httpx.Client]:
    """A browser in which the key was typed; it sends the cookie with every request, whichever site caused it."""
    answer = httpx.post(f"{space.url}/key", data={"key": KEY}, headers={"X-Forwarded-Proto": "https"})
    cookie = answer.headers["set-cookie"]
    assert {"httponly", "secure", "samesite=none", "partitioned"} <= set(cookie.lower().split("; "))
    with httpx.Client(base_url=space.url, headers={"Cookie": cookie.partition(";")[0]}) as client:
        yield client


def test_same_origin_requests_are_allowed(visitor: httpx.Client) -> None:
    for headers in ({}, {"Sec-Fetch-Site": "same-origin", "Origin": "https://x.hf.space"}, {"Sec-Fetch-Site": "none"}):
        assert visitor.get("/v1/models", headers=headers).status_code == 200
        assert visitor.post("/v1/completions", json=BODY, headers=headers).status_code == 200
    # Without Sec-Fetch-Site, as from an older browser, the host name decides.
    for host, origin in (("x.hf.space", "https://x.hf.space"), ("127.0.0.1:7860", "http://127.0.0.1:7860")):
        headers = {"Host": host, "Origin": origin}
        assert visitor.post("/v1/completions", json=BODY, headers=headers).status_code == 200
    headers = {"Host": "127.0.0.1:7860", "X-Forwarded-Host": "x.hf.space", "Origin": "https://x.hf.space:443"}
    assert visitor.post("/v1/completions", json=BODY, headers=headers).status_code == 200


def test_hugging_face_may_frame_the_page(visitor: httpx.Client) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}
    page = visitor.get("/", headers=headers | {"Referer": HUB})
    assert page.status_code == 200
    ancestors = page.headers["content-security-policy"].removeprefix("frame-ancestors ").split()
    assert ancestors == ["'self'", HUB, FRIEND]


@pytest.mark.parametrize("headers", [SCRIPT, {"Origin": STRANGER}, {"Origin": "null"}, {"Sec-Fetch-Site": "same-site"}])
def test_scripts_of_other_origins_are_refused(visitor: httpx.Client, headers: dict[str, str]) -> None:
    read = visitor.get("/v1/models", headers=headers)
    assert read.status_code == 401  # as for any client without the key
    written = visitor.post("/v1/completions", json=BODY, headers=headers)
    assert written.status_code == 403 and written.json()["error"]["code"] == "foreign_origin"
    joined = visitor.post("/gradio_api/queue/join", json={}, headers=headers)
    form = visitor.post("/key", data={"key": KEY}, headers=headers | {"Sec-Fetch-Mode": "navigate"})
    asked = headers | {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    for path in ("/v1/completions", "/gradio_api/queue/join", "/"):
        before = visitor.options(path, headers=asked)
        assert before.status_code == 403
        assert not [name for name in before.headers if name.startswith("access-control")]
    for answer in (read, written, joined, form):
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_allowed_origins_may_call(visitor: httpx.Client) -> None:
    headers = SCRIPT | {"Origin": FRIEND}
    before = visitor.options(
        "/v1/completions",
        headers=headers
        | {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type"},
    )
    assert before.status_code == 204
    assert before.headers["access-control-allow-headers"] == "authorization,content-type"
    answer = visitor.post("/v1/completions", json=BODY, headers=headers)
    assert answer.status_code == 200
    for each in (before, answer):
        assert each.headers["access-control-allow-origin"] == FRIEND
        assert each.headers["access-control-allow-credentials"] == "true"
        assert "origin" in each.headers["vary"].lower()


def test_star_origin_is_allowed_without_cookies(launch: Any, checkpoints: Path) -> None:
    server = launch(checkpoints / "tiny", api_key=KEY, allowed_origins=("*",))
    cookie = httpx.post(f"{server.url}/key", data={"key": KEY}).headers["set-cookie"].partition(";")[0]
    with httpx.Client(base_url=server.url, headers=SCRIPT) as script:
        assert script.post("/v1/completions", json=BODY, headers={"Cookie": cookie}).status_code == 401
        answer = script.post("/v1/completions", json=BODY, headers={"Authorization": f"Bearer {KEY}"})
        assert answer.status_code == 200 and answer.headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-credentials" not in answer.headers


def test_the_names_of_the_space_are_served(space: Server) -> None:
    for host, status in (("x.hf.space", 200), ("demo.example.org", 200), ("y.hf.space", 421), ("evil", 421)):
        assert httpx.get(f"{space.url}/health", headers={"Host": host}).status_code == status, host


def test_origins_are_checked_without_a_key(server: Server) -> None:
    """A page of another site can neither cause an action nor read anything."""
    with httpx.Client(base_url=server.url) as client:
        assert client.post("/v1/completions", json=BODY, headers=SCRIPT).status_code == 403
        read = client.get("/v1/models", headers=SCRIPT)
        assert read.status_code == 200 and "access-control-allow-origin" not in read.headers
        assert "content-security-policy" not in client.get("/").headers  # any site may show it in a frame
        assert client.post("/v1/completions", json=BODY, headers={"Origin": server.url}).status_code == 200


@pytest.mark.parametrize(
    "path", ["/v1/models", "/", "/metrics", "/gradio_api/info", "/gradio_api/mcp/", "/look/landing"]
)
def test_unknown_host_names_get_421(server: Server, path: str) -> None:
    """The owner of a name may let it resolve to this address, and its page would then have the same origin."""
    headers = {"Host": "evil.example", "Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"}
    for method in ("GET", "POST"):
        answer = httpx.request(method, server.url + path, headers=headers)
        assert answer.status_code == 421 and answer.json()["error"]["code"] == "wrong_host", answer.text
        assert "evil.example" in answer.text and "--allowed-hosts" in answer.text


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("127.0.0.1:7860", True),
        ("192.0.2.7", True),
        ("[::1]:7860", True),
        ("[::ffff:192.0.2.7]", True),
        ("localhost:7860", True),
        ("LOCALHOST.:7860", True),
        ("app.localhost", True),
        (socket.gethostname(), True),
        (f"{socket.gethostname().partition('.')[0]}.local", True),
        ("headscope:7860", False),
        ("evil", False),
        ("", False),
        ("2130706433", False),  # an address, but not written as one
        ("demo.example.org", True),
        ("Demo.Example.org.:443", True),
        ("a.b.example.net:80", True),
        ("example.net", False),
        ("example.org", False),
        ("x.demo.example.org", False),
        ("evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example:7860", False),
        ("evilexample.net", False),
        ("[127.0.0.1", False),
        ("localhost:99999", False),
    ],
)
def test_known_host_names_are_served(host: str, allowed: bool) -> None:
    async def app(*_: Any) -> None: ...

    assert HostMiddleware(app, ["demo.example.org", "*.example.net"]).is_allowed(host) == allowed
    assert HostMiddleware(app, ["*"]).is_allowed(host)


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("X-Forwarded-Host", "other.example"),
        ("X-Gradio-Server", "http://other.example"),
        ("X-Gradio-Server", "javascript:other.example"),
    ],
)
def test_visitors_do_not_choose_the_address_of_the_page(server: Server, header: str, value: str) -> None:
    headers = {header: value}
    assert httpx.get(f"{server.url}/config", headers=headers).json()["root"] == server.url
    for path in ("/", "/gradio_api/mcp/"):
        page = httpx.get(server.url + path, headers=headers | {"Accept": "text/html"}, timeout=60)
        assert "other.example" not in page.text and "other.example" not in str(page.headers)


def test_a_trusted_proxy_chooses_it(launch: Callable[..., Server], checkpoints: Path) -> None:
    server = launch(checkpoints / "tiny", trusted_proxies=1)
    headers = {"X-Forwarded-Host": "heads.example", "X-Gradio-Server": "http://other.example"}
    assert httpx.get(f"{server.url}/config", headers=headers).json()["root"] == "http://heads.example"
