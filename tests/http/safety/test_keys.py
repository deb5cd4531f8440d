"""With an API key, everything but /health needs it."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from gradio_client import Client

from helpers.server import Server, start
from web.api import auth

KEY = "open-sesame"
BEARER = {"Authorization": f"Bearer {KEY}"}


@pytest.fixture(scope="module")
def locked(checkpoints: Path) -> Iterator[Server]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(auth, "MAX_REFUSALS", 1_000)  # the bound itself is tested in tests/unit/edge/test_auth.py
        server = start(checkpoints / "tiny", api_key=KEY)
        yield server
        server.close()


def test_health_needs_no_key(locked: Server) -> None:
    assert httpx.get(f"{locked.url}/health").status_code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/config"),
        ("GET", "/gradio_api/info"),
        ("GET", "/gradio_api/startup-events"),
        ("POST", "/gradio_api/call/v2/generate"),
        ("POST", "/gradio_api/queue/join"),
        ("POST", "/gradio_api/cancel"),
        ("GET", "/look/some-run/rows"),
        ("POST", "/look/again/rows"),
        ("GET", "/view/x/main.mjs"),
        ("GET", "/health/"),
        ("GET", "//health"),
        ("GET", "/no-such-page"),
        ("GET", "/metrics"),
        ("GET", "/v1/models"),
        ("POST", "/v1/completions"),
        ("POST", "/v1/attention"),
        ("POST", "/v1/lens/knockout"),
        ("POST", "/gradio_api/mcp/"),
    ],
)
def test_everything_but_health_needs_the_key(locked: Server, method: str, path: str) -> None:
    answer = httpx.request(method, locked.url + path)
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "invalid_api_key"
    for wrong in ("Bearer", "Bearer open", f"Basic {KEY}", f"Bearer {KEY}x", "Bearer \u00e9"):
        headers = {"Authorization": wrong.encode("latin-1")}
        assert httpx.request(method, locked.url + path, headers=headers).status_code == 401
    assert httpx.request(method, locked.url + path, headers=BEARER).status_code != 401


def test_page_asks_for_the_key_once(locked: Server) -> None:
    with httpx.Client(base_url=locked.url, headers={"Accept": "text/html"}) as client:
        form = client.get("/", params={"__theme": "dark"})
        assert form.status_code == 401
        assert 'name="key"' in form.text and 'action="key?__theme=dark"' in form.text
        wrong = client.post("/key", data={"key": "wrong"})
        assert wrong.status_code == 401 and "This key is wrong." in wrong.text and not client.cookies
        right = client.post("/key?__theme=dark", data={"key": KEY})
        assert right.status_code == 303 and right.headers["location"] == "./?__theme=dark"
        cookie = right.headers["set-cookie"].lower()
        assert "httponly" in cookie and "samesite=lax" in cookie and KEY not in cookie
        assert client.get("/").status_code == 200
        assert client.get("/gradio_api/info").status_code == 200
        client.cookies.set(next(iter(client.cookies)), "forged")
        assert httpx.get(locked.url, cookies=dict.fromkeys(client.cookies, "forged")).status_code == 401


def test_right_key_works_after_wrong_ones(locked: Server) -> None:
    for i in range(12):
        assert httpx.post(f"{locked.url}/key", data={"key": f"wrong {i}"}).status_code == 401
    assert httpx.post(f"{locked.url}/key", data={"key": KEY}).status_code == 303
    assert httpx.get(f"{locked.url}/v1/models", headers=BEARER).status_code == 200


def test_address_is_escaped_in_the_login_page(locked: Server) -> None:
    form = httpx.get(f'{locked.url}/?"><script>alert(1)</script>', headers={"Accept": "text/html"})
    assert "<script" not in form.text


def test_gradio_client_sends_the_key(locked: Server) -> None:
    client = Client(locked.url, headers=BEARER, verbose=False)
    assert len(client.predict("ab", max_new_tokens=3, seed=1, api_name="/generate")) == 3


def test_without_a_key_nothing_is_asked(server: Server) -> None:
    assert httpx.get(server.url).status_code == 200
    assert httpx.get(f"{server.url}/gradio_api/info").status_code == 200
