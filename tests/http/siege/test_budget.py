"""Requests that are refused when the memory budget is used up, and the release of their bytes."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from helpers.runs import FIELDS
from helpers.server import Server
from helpers.siege.watch import until
from web.settings import KEPT_BYTES, Limits

SMALL = Limits(memory_budget_mb=KEPT_BYTES // 1_000_000 + 8)


@pytest.fixture(scope="module")
def small(checkpoints: Path) -> Iterator[Server]:
    """A server with a memory budget of eight megabytes."""
    from helpers.server import start

    server = start(checkpoints / "tiny", limits=SMALL)
    yield server
    server.close()


@pytest.fixture
def full(small: Server) -> Iterator[Server]:
    """The same server while other clients hold the whole budget."""
    with ExitStack() as stack:
        for other in ("somebody", "somebody else"):
            stack.enter_context(small.services.budget.hold(small.services.budget.most, other))
        yield small
    until(small, lambda: not small.services.budget.held)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/completions", {"prompt": "ab"}),
        ("/v1/completions", {"prompt": "ab", "stream": True}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "ab"}]}),
        ("/v1/attention", {"prompt": "ab"}),
        ("/v1/lens/knockout", {"prompt": "ab"}),
        ("/gradio_api/call/tokenize", {"data": ["ab", None]}),
        ("/learn/tokens", {}),
    ],
)
def test_bodies_beyond_the_budget_are_refused(full: Server, path: str, body: Any) -> None:
    answer = httpx.post(f"{full.url}{path}", json=body)
    assert answer.status_code == 429, answer.text


def test_large_responses_are_refused_and_small_ones_sent(full: Server) -> None:
    answer = httpx.get(f"{full.url}/config")
    assert answer.status_code == 429 and int(answer.headers["retry-after"]) >= 1
    assert answer.json()["error"]["code"] == "memory_budget"
    assert httpx.get(f"{full.url}/health").status_code == 200


def test_budget_is_given_back_after_a_refusal(small: Server) -> None:
    assert len(httpx.get(f"{small.url}/config").content) > 32_768
    assert httpx.post(f"{small.url}/v1/completions", json={"prompt": "ab"}).status_code == 200
    until(small, lambda: not small.services.budget.held)


def test_page_shows_why_a_text_was_refused(small: Server) -> None:
    budget = small.services.budget
    # Everything but the size of the body.
    with budget.hold(budget.most, "somebody"), budget.hold(budget.most - 10_000, "127.0.0.1"):
        answer = httpx.post(f"{small.url}/look/write", json=FIELDS)
    pointer = json.loads(answer.text.strip().splitlines()[-1].removeprefix("data: "))
    assert pointer["state"] == "failed" and "memory budget for requests is used up" in pointer["why"]
    until(small, lambda: not budget.held)


def test_one_client_holds_no_more_than_half(small: Server) -> None:
    budget = small.services.budget
    with budget.hold(budget.most, "127.0.0.1"):
        assert httpx.post(f"{small.url}/v1/completions", json={"prompt": "ab"}).status_code == 429
        other = httpx.HTTPTransport(local_address="127.0.0.9")
        with httpx.Client(transport=other, base_url=small.url) as client:
            assert client.post("/v1/completions", json={"prompt": "ab"}).status_code == 200


def test_requests_larger_than_the_budget_are_refused(small: Server) -> None:
    body = {"prompt": "ab", "max_tokens": 60, "n": 16, "logprobs": 5}
    assert httpx.post(f"{small.url}/v1/completions", json=body).status_code == 200


@pytest.mark.parametrize("body", [{}, {"format": "safetensors"}])
def test_unread_responses_are_held_and_then_released(server: Server, body: dict[str, Any]) -> None:
    """The server has memory for several answers, each of which fills the buffers of its connection."""
    budget = server.services.budget
    content = json.dumps({"prompt": "a" * 64} | body).encode()
    host, port = server.url.removeprefix("http://").split(":")
    ask = b"POST /v1/attention HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(content) + content
    unread = []
    for _ in range(8):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
        connection.connect((host, int(port)))
        connection.sendall(ask * 60)  # one after the other
        unread.append(connection)
    until(server, lambda: budget.held > 0)
    for connection in unread:
        connection.close()
    until(server, lambda: not budget.held)
