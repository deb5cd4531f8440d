"""Whatever the server is sent, it looks up no host name and opens no connection."""

import asyncio
import json
import socket
from typing import Any

import httpx
import pytest

from helpers.server import Server

ELSEWHERE = "http://made-up.example/x"
FILE = {"path": ELSEWHERE, "meta": {"_type": "gradio.FileData"}}
ESCAPED = json.dumps(FILE).replace("_type", "\\u005ftype").replace("FileData", "\\u0046ileData")


@pytest.fixture
def elsewhere(server: Server, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The names looked up and addresses connected to, apart from the server's own."""
    found: list[Any] = []
    port = int(server.url.rpartition(":")[2])
    connect, look_up = socket.socket.connect, socket.getaddrinfo

    def watched_connect(self: socket.socket, address: Any) -> Any:
        if not isinstance(address, tuple) or address[1] != port:
            found.append(address)
            raise OSError("no connections here")
        return connect(self, address)

    def watched_look_up(host: Any, port_asked: Any, *args: Any, **options: Any) -> Any:
        if host not in ("127.0.0.1", "localhost"):
            found.append(host)
            raise socket.gaierror(f"no look-ups here: {host}")
        return look_up(host, port_asked, *args, **options)

    async def watched_sock_connect(_loop: Any, _sock: Any, address: Any) -> Any:
        found.append(address)
        raise OSError("no connections here")

    monkeypatch.setattr(socket.socket, "connect", watched_connect)
    monkeypatch.setattr(socket.socket, "connect_ex", watched_connect)
    monkeypatch.setattr(socket, "getaddrinfo", watched_look_up)
    monkeypatch.setattr(asyncio.selector_events.BaseSelectorEventLoop, "sock_connect", watched_sock_connect)
    return found


def test_fixture_records_name_lookups(elsewhere: list[Any]) -> None:
    with pytest.raises(httpx.ConnectError):
        httpx.get(ELSEWHERE)
    assert elsewhere == ["made-up.example"]


def events_of(server: Server) -> list[tuple[int, int]]:
    """Index and number of inputs of every Gradio event, the page's own included."""
    functions = server.demo.fns
    return [(index, len(function.inputs)) for index, function in functions.items()]


def test_file_objects_in_gradio_events_fetch_nothing(server: Server, elsewhere: list[Any]) -> None:
    with httpx.Client(base_url=server.url, timeout=30) as client:
        for data in (FILE, [FILE], {"a": [{"b": FILE}]}):
            for index, n_inputs in events_of(server):
                body = {"data": [data] * max(n_inputs, 1), "fn_index": index, "session_hash": "s", "event_data": data}
                answer = client.post("/gradio_api/queue/join", json=body)
                assert answer.status_code == 400 and answer.json()["error"]["code"] == "file_object"
            for path in ("call/generate", "call/v2/generate"):
                assert client.post(f"/gradio_api/{path}", json={"data": [data], "prompt": data}).status_code == 400
        for content in (f'{{"data": [{ESCAPED}]}}', f'{{"prompt": {ESCAPED}}}'):
            assert client.post("/gradio_api/call/v2/generate", content=content).status_code == 400
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "generate", "arguments": {}}}
        call["params"] = {"name": "generate", "arguments": {"prompt": FILE}}
        accept = {"Accept": "application/json, text/event-stream"}
        assert client.post("/gradio_api/mcp/", json=call, headers=accept).status_code == 400
    assert elsewhere == []


@pytest.mark.parametrize("coding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le"])
@pytest.mark.parametrize("path", ["queue/join", "call/tokenize", "call/v2/tokenize", "mcp/"])
def test_encoded_file_objects_fetch_nothing(server: Server, elsewhere: list[Any], path: str, coding: str) -> None:
    """The oracle is ``json.loads``, which Gradio reads bodies with: it tells all of these encodings apart."""
    content = json.dumps({"data": [FILE, "tiny"], "text": FILE, "params": {"arguments": {"prompt": FILE}}})
    assert json.loads(content.encode(coding))["text"] == FILE
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    for cut in (len(content), 1, 2):  # in one piece, and the first bytes alone
        sent = content.encode(coding)
        answer = httpx.post(f"{server.url}/gradio_api/{path}", content=iter([sent[:cut], sent[cut:]]), headers=headers)
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == ("file_object" if coding == "utf-8" else "not_utf8")
    assert elsewhere == []


def test_urls_in_paths_fetch_nothing(server: Server, elsewhere: list[Any]) -> None:
    with httpx.Client(base_url=server.url, timeout=30) as client:
        for name in ("file", "proxy"):
            for address in (ELSEWHERE, "https://made-up.hf.space/x", "http%3A%2F%2Fmade-up.example%2Fx"):
                assert client.get(f"/gradio_api/{name}={address}").status_code == 404
        files = {"files": ("x.txt", b"x")}
        assert client.post("/gradio_api/upload", files=files).status_code in (404, 415)
    assert elsewhere == []


def test_urls_in_text_stay_text(server: Server, elsewhere: list[Any]) -> None:
    with httpx.Client(base_url=server.url, timeout=30) as client:
        event = client.post("/gradio_api/call/v2/tokenize", json={"text": ELSEWHERE}).json()["event_id"]
        assert "event: complete" in client.get(f"/gradio_api/call/tokenize/{event}").text
        for body in ({"prompt": ELSEWHERE, "model": ELSEWHERE}, {"prompt": ELSEWHERE, "user": ELSEWHERE}):
            client.post("/v1/completions", json=body)
        image = [{"type": "image_url", "image_url": {"url": ELSEWHERE}}]
        assert client.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": image}]}).is_error
        assert client.post("/look/write", json={"prompt": ELSEWHERE, "model": "someone/else"}).is_error
        client.get("/look/landing", params={"model": "someone/else", "sha256": ELSEWHERE, "ids": ELSEWHERE})
        headers = {"Referer": ELSEWHERE, "X-Forwarded-Host": "made-up.example", "Origin": ELSEWHERE}
        client.get("/", headers=headers)
    assert elsewhere == []


def test_ordinary_event_data_is_accepted(server: Server) -> None:
    """The keys alone do not make a file object."""
    text = 'My "_type" is "gradio.FileData".'
    with httpx.Client(base_url=server.url, timeout=30) as client:
        event = client.post("/gradio_api/call/v2/tokenize", json={"text": text}).json()["event_id"]
        assert "event: complete" in client.get(f"/gradio_api/call/tokenize/{event}").text
