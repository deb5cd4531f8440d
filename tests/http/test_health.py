"""The port answers before the checkpoints are loaded, and a bad checkpoint never stops the others."""

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from helpers.server import Server

Launch = Callable[..., Server]


def test_health_before_and_after_loading(launch: Launch, checkpoints: Path, caplog: pytest.LogCaptureFixture) -> None:
    server = launch(checkpoints / "broken", checkpoints / "tiny", loaded=False)
    answer = httpx.get(f"{server.url}/health")
    assert (answer.status_code, answer.json()) == (503, {"status": "loading"})
    assert httpx.get(server.url).status_code == 200
    server.services.load()
    answer = httpx.get(f"{server.url}/health")
    assert answer.status_code == 200
    body = answer.json()
    assert (body["status"], body["models"]) == ("ok", ["tiny"])
    assert "model.safetensors" in body["failed"]["broken"]
    assert "model.safetensors" in caplog.text


def test_health_when_nothing_loads(launch: Launch, checkpoints: Path) -> None:
    server = launch(checkpoints / "broken", checkpoints / "missing")
    answer = httpx.get(f"{server.url}/health")
    assert (answer.status_code, answer.json()["status"]) == (503, "error")
    assert set(answer.json()["failed"]) == {"broken", "missing"}


def test_health_while_the_server_shuts_down(launch: Launch, checkpoints: Path) -> None:
    server = launch(checkpoints / "tiny")
    server.services.close()
    answer = httpx.get(f"{server.url}/health")
    assert (answer.status_code, answer.json()) == (503, {"status": "draining"})


def test_metrics_show_the_budget_the_connections_and_the_process(launch: Launch, checkpoints: Path) -> None:
    server = launch(checkpoints / "tiny")
    with server.services.budget.hold(1_000_000, "somebody"):
        lines = dict(line.rsplit(" ", 1) for line in httpx.get(f"{server.url}/metrics").text.splitlines())
    assert float(lines["headscope_budget_held_bytes"]) >= 1_000_000
    assert float(lines["headscope_budget_bytes"]) == server.services.budget.n_bytes
    assert float(lines["headscope_connections"]) >= 1 and float(lines["headscope_event_loop_lag_seconds"]) >= 0
    assert float(lines["process_resident_memory_bytes"]) > 0 and float(lines["process_open_fds"]) > 0


def test_health_without_its_body(server: Server) -> None:
    answer = httpx.head(f"{server.url}/health")
    assert answer.status_code == 200 and answer.content == b""
    assert answer.headers["content-length"] == httpx.get(f"{server.url}/health").headers["content-length"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/health", "GET, HEAD"),
        ("DELETE", "/v1/models", "GET"),
        ("GET", "/v1/completions", "POST"),
        ("PUT", "/v1/attention", "POST"),
        ("POST", "/version", "GET"),
        ("POST", "/metrics", "GET"),
        ("POST", "/look/landing", "GET"),
        ("GET", "/look/write", "POST"),
        ("GET", "/learn/tokens", "POST"),
    ],
)
def test_wrong_methods_name_the_allowed_ones(server: Server, method: str, path: str, allowed: str) -> None:
    answer = httpx.request(method, server.url + path)
    assert answer.status_code == 405
    assert sorted(answer.headers["allow"].split(", ")) == sorted(allowed.split(", "))


def test_own_routes_come_before_gradio(server: Server) -> None:
    page = httpx.get(server.url).text
    assert "Headscope" in page
    style = page.split('rel="stylesheet" href="js/')[1].split('"')[0]
    answer = httpx.get(f"{server.url}/js/{style}")
    assert answer.status_code == 200 and "immutable" in answer.headers["cache-control"]
    assert httpx.get(f"{server.url}/js/{style.rsplit('/', 1)[0]}/__init__.py").status_code == 404


def test_body_size_is_limited(server: Server) -> None:
    from web.settings import Limits

    url = f"{server.url}/look/again/rows"
    assert httpx.post(url, content=b"x" * (Limits.max_body_bytes + 1)).status_code == 413
    assert httpx.post(url, content=b"x" * (Limits.max_body_bytes - 1)).status_code == 422


def test_explicit_host_overrides_gradios_variable(
    launch: Launch, checkpoints: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADIO_SERVER_NAME", "0.0.0.0")
    server = launch(checkpoints / "tiny", host="127.0.0.1")
    assert httpx.get(f"{server.url}/health").status_code == 200
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{server.url.replace('127.0.0.1', '127.0.0.2')}/health", timeout=5)
