"""``--share``: Gradio's tunnel leads to our own server, which treats it as a proxy."""

import re
from pathlib import Path
from typing import Any

import gradio.networking
import httpx
import pytest

from helpers.server import Server, start
from web import settings

PUBLIC = "abc123.gradio.live"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The arguments of Gradio's tunnel."""
    calls: list[dict[str, Any]] = []

    def setup_tunnel(**to: Any) -> str:
        calls.append(to)
        return f"http://{PUBLIC}"

    monkeypatch.setattr(gradio.networking, "setup_tunnel", setup_tunnel)
    return calls


def shared(checkpoints: Path, **changes: Any) -> Server:
    chosen = settings.parse(["--share"], {})
    return start(checkpoints / "tiny", share=chosen.share, trusted_proxies=chosen.trusted_proxies, **changes)


def through_tunnel(server: Server, method: str, path: str, visitor: str, **request: Any) -> httpx.Response:
    headers = {"Host": PUBLIC, "X-Forwarded-For": visitor, "X-Forwarded-Proto": "https"} | request.pop("headers", {})
    return httpx.request(method, server.url + path, headers=headers, timeout=60, **request)


def test_share_tunnel_leads_to_this_server(
    checkpoints: Path, opened: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    server = shared(checkpoints, access_log=True, api_key="secret")
    (to,) = opened
    assert f"http://{to['local_host']}:{to['local_port']}" == server.url
    assert server.demo.share_url == f"https://{PUBLIC}"
    assert f"public URL: https://{PUBLIC}" in capsys.readouterr().out
    # Requests through it meet our limits, and each visitor counts as a separate address.
    key = {"Authorization": "Bearer secret"}
    body = {"prompt": "ab", "max_tokens": 1}
    same_site = key | {"Origin": f"https://{PUBLIC}", "Sec-Fetch-Site": "same-origin"}
    for headers, status in ((key, 200), (same_site, 200), ({}, 401), (key | {"Origin": "https://evil.example"}, 403)):
        answer = through_tunnel(server, "POST", "/v1/completions", "1.2.3.4", json=body, headers=headers)
        assert answer.status_code == status
    through_tunnel(server, "GET", "/health", "made up, 9.8.7.6")
    other = through_tunnel(server, "GET", "/health", "1.2.3.4", headers={"Host": "gradio.live.evil.example"})
    assert other.status_code == 421
    cookie = through_tunnel(server, "POST", "/key", "1.2.3.4", data={"key": "secret"}).headers["set-cookie"]
    assert "secure" in cookie.lower()
    assert server.connections.n_proxies == 1
    server.close()
    addresses = re.findall(r"^\S+Z (\S+) (?:POST|GET) ", capsys.readouterr().out, re.MULTILINE)
    assert addresses == ["1.2.3.4"] * 4 + ["9.8.7.6", "1.2.3.4", "1.2.3.4"]


def test_share_without_a_network_serves_locally(
    checkpoints: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def setup_tunnel(**_: Any) -> str:
        raise RuntimeError("Could not get share link from Gradio API Server.")

    monkeypatch.setattr(gradio.networking, "setup_tunnel", setup_tunnel)
    server = shared(checkpoints)
    assert "Could not create share link" in capsys.readouterr().out and server.demo.share_url is None
    assert httpx.get(f"{server.url}/health").status_code == 200
    server.close()
