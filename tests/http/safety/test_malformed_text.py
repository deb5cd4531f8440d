"""Text that is not Unicode: half a surrogate pair, in JSON or percent-encoded, and bytes that are not UTF-8."""

import json
import socket
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from helpers.server import Server

HALF = "\ud800"
ENCODED, BYTES = "%ED%A0%80", "%FF%FE"  # the same in a URL, and no UTF-8 at all
BODIES: list[tuple[str, Any]] = [
    ("/v1/completions", {"prompt": HALF}),
    ("/v1/completions", {"prompt": "ab", "stop": HALF}),
    ("/v1/completions", {"prompt": "ab", "model": HALF}),
    ("/v1/completions", {HALF: "ab"}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": HALF}]}),
    ("/v1/embeddings", {"input": HALF}),
    ("/v1/attention", {"prompt": HALF}),
    ("/v1/tokenize", {"prompt": HALF}),
    ("/v1/lens/knockout", {"prompt": HALF}),
    ("/v1/lens/patch", {"prompt": "ab", "corrupted": HALF}),
    ("/v1/lens/passages", {"text": HALF}),
    ("/look/write", {"prompt": HALF, "max_new_tokens": 2}),
    ("/look/write", {"prompt": "ab", "model": HALF}),
    ("/learn/tokens", {"sentence": HALF}),
    ("/learn/tokens", {HALF: HALF}),
    ("/gradio_api/call/v2/tokenize", {HALF: "ab"}),
    ("/train/written", {"size": HALF, "model": HALF}),
]
CALLS: list[tuple[str, Any]] = [
    ("/gradio_api/call/tokenize", {"data": [HALF, "tiny"]}),
    ("/gradio_api/call/tokenize", {"data": ["ab", HALF]}),
    ("/gradio_api/call/v2/tokenize", {"text": HALF, "model": "tiny"}),
]
EVENTS: list[tuple[str, Any]] = [
    ("/gradio_api/queue/join", {"data": [HALF, HALF], "fn_index": 3, "session_hash": HALF}),
    ("/gradio_api/cancel", {"session_hash": HALF, "fn_index": 1, "event_id": HALF}),
]
PATHS = [
    "/v1/models/X",
    "/look/steps/X",
    "/look/opening/X",
    "/look/X/rows",
    "/look/vocabulary/X.json",
    "/look/landing?model=X&prompt=X",
    "/learn/sources/X.json",
    "/gradio_api/call/X/X",
    "/gradio_api/queue/data?session_hash=X",
    "/?__theme=X",
    "/X",
]


@pytest.mark.parametrize(("path", "body"), BODIES)
def test_bodies_with_half_a_surrogate_pair_are_refused(server: Server, path: str, body: Any) -> None:
    answer = post(server, path, body)
    assert 400 <= answer.status_code < 500, answer.text


@pytest.mark.parametrize(("path", "body"), CALLS)
def test_calls_of_gradio_with_half_a_surrogate_pair_end_with_an_error(server: Server, path: str, body: Any) -> None:
    event = post(server, path, body).json()["event_id"]
    answer = httpx.get(f"{server.url}/gradio_api/call/tokenize/{event}", timeout=60)
    assert answer.status_code == 200 and "event: error" in answer.text


@pytest.mark.parametrize(("path", "body"), EVENTS)
def test_names_of_gradio_with_half_a_surrogate_pair_are_not_errors_of_the_server(
    server: Server, path: str, body: Any
) -> None:
    assert post(server, path, body).status_code < 500


MESSAGES = {
    "deep": '{"jsonrpc": "2.0", "id": 1, "method": ' + "[" * 100_000,
    "closed": '{"jsonrpc": "2.0", "id": 1, "params": ' + "[" * 900 + "]" * 900 + "}",
    "long integer": '{"jsonrpc": "2.0", "id": ' + "9" * 5_000 + ', "method": "ping"}',
    "id": json.dumps({"jsonrpc": "2.0", "id": HALF, "method": "ping"}),
    "argument": json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "tokenize", "arguments": {HALF: HALF}}}
    ),
}


@pytest.mark.parametrize("body", MESSAGES.values(), ids=MESSAGES)
def test_messages_to_mcp_that_cannot_be_read_are_refused(
    server: Server, caplog: pytest.LogCaptureFixture, body: str
) -> None:
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    answer = httpx.post(f"{server.url}/gradio_api/mcp/", content=body, headers=headers, timeout=60)
    assert answer.status_code == 422 and "detail" in answer.json()
    assert not caplog.records


def test_browsers_do_not_guess_the_type_of_a_response(server: Server) -> None:
    answer = httpx.get(f"{server.url}/gradio_api/mcp/%3Cscript%3E")
    assert answer.status_code == 404 and answer.headers["X-Content-Type-Options"] == "nosniff"


def post(server: Server, path: str, body: Any) -> httpx.Response:
    headers = {"Content-Type": "application/json"}
    return httpx.post(server.url + path, content=json.dumps(body), headers=headers, timeout=60)


@pytest.mark.parametrize("path", ["/?X", "/config?X", "/static/X", "/assets/X", "/svelte/X", "/look/landing?model=X"])
def test_long_addresses_are_not_errors_of_the_server(server: Server, path: str) -> None:
    address = path.replace("X", "x" * 66_000).encode()  # more than httpx parses, so without it
    with socket.create_connection(("127.0.0.1", urlsplit(server.url).port or 80), timeout=60) as connection:
        connection.sendall(b"GET " + address + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert connection.makefile("rb").readline().split()[1] < b"500"


@pytest.mark.parametrize("host", ["[", "a:b", "x:1:2", "é", "\x7f", "a" * 70_000])
@pytest.mark.parametrize("path", ["/", "/config", "/gradio_api/mcp/"])
def test_malformed_hosts_of_proxies_are_not_errors_of_the_server(server: Server, path: str, host: str) -> None:
    headers = {"X-Forwarded-Host": host.encode(), "Accept": "text/html"}
    assert httpx.get(server.url + path, headers=headers, timeout=60).status_code < 500


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("text", [ENCODED, BYTES])
def test_addresses_that_are_not_unicode_are_not_errors_of_the_server(server: Server, path: str, text: str) -> None:
    with httpx.stream("GET", server.url + path.replace("X", text), timeout=60) as answer:
        assert answer.status_code < 500
