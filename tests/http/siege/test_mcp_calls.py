"""Calls of MCP tools: many calls from one client do not delay others, and calls end when their clients disconnect."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from helpers.gate import GatedEngine
from helpers.runs import written
from helpers.server import Server, start
from helpers.siege.watch import until
from web.settings import Limits

pytest.importorskip("mcp")
CROWD = 60  # more than the threads that the framework has for plain functions, and than the engine writes at once
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
BAD, GOOD = "127.0.0.66", "127.0.0.9"


def body(tool: str, **arguments: Any) -> bytes:
    parameters = {"name": tool, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": parameters}).encode()


def call(server: Server, tool: str, **arguments: Any) -> Any:
    """The answer of a tool to a client at another address."""
    transport = httpx.HTTPTransport(local_address=GOOD)
    with httpx.Client(base_url=server.url, timeout=60, transport=transport) as client:
        answer = client.post("/gradio_api/mcp/", content=body(tool, **arguments), headers=HEADERS)
    (line,) = [line for line in answer.text.splitlines() if line.startswith("data: ")]
    return json.loads(line.removeprefix("data: "))["result"]


@pytest.fixture(scope="module")
def server(checkpoints: Path) -> Iterator[Server]:
    server = start(checkpoints / "tiny", checkpoints / "other", limits=Limits(max_batch=40))
    yield server
    server.close()


@contextmanager
def crowd(server: Server) -> Iterator[GatedEngine]:
    """Calls from one address for texts that are never written, once all of them wait for the engine."""
    loaded = server.served.models["tiny"]
    engine = GatedEngine(loaded, max_batch=40)
    server.services.engines.add(loaded, engine)
    content = body("generate", prompt="ab", model="tiny", max_new_tokens=50)
    fields = HEADERS | {"Host": "localhost", "Content-Length": str(len(content))}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    connections = []
    for _ in range(CROWD):
        connection = socket.socket()
        connection.bind((BAD, 0))
        connection.connect(("127.0.0.1", int(server.url.rpartition(":")[2])))
        connection.sendall(f"POST /gradio_api/mcp/ HTTP/1.1\r\n{head}\r\n".encode() + content)
        connections.append(connection)
    until(server, lambda: len(engine.active) + len(engine.queue) == CROWD)
    yield engine
    for connection in connections:
        connection.close()
    until(server, lambda: not engine.active and not engine.queue)
    engine.close()


def test_many_calls_do_not_delay_others_and_end_on_disconnect(server: Server) -> None:
    run = written(server.services.runs, server.served.models["other"], 5)
    with crowd(server) as engine:
        assert httpx.get(f"{server.url}/look/{run.id}/rows", timeout=5).status_code == 200
        answer = call(server, "generate", prompt="ab", model="other", max_new_tokens=3)
        assert not answer["isError"] and len(answer["content"][0]["text"]) == 3
        assert {each.client for each in engine.active} == {BAD}
