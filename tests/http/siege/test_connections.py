"""Idle connections, too many connections, and the addresses that they belong to."""

import contextlib
import logging
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx
import pytest

from helpers.gate import GatedEngine
from helpers.server import Server
from web.edge import connections as module
from web.edge.connections import Connections
from web.seams import uvicorn as seam
from web.serving.budget import Budget
from web.settings import Limits

HEAD = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
BODY = b'{"prompt": "ab", "stream": true}'
WRITE = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
# A request of each kind that keeps a server waiting.
STALLED = {
    "silent": b"",
    "half a head": HEAD,
    "half a body": HEAD + b'Content-Length: 200\r\n\r\n{"prompt":',
    "no body": HEAD + b"Content-Length: 200\r\n\r\n",
    "half a chunk": HEAD + b'Transfer-Encoding: chunked\r\n\r\nff\r\n{"prompt":',
    "half a join": b"POST /gradio_api/queue/join HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200\r\n\r\n{",
    "half a text": b"POST /train/text?size=small HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000\r\n\r\nabc",
    "idle": b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
}


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seam, "STALL_SECONDS", 0.3)
    monkeypatch.setattr(module, "SWEEP_SECONDS", 0.05)


def open_from(server: Server, source: str = "127.0.0.1", sent: bytes = b"", buffer: int | None = None) -> socket.socket:
    """A connection; ``buffer`` is about the number of bytes that it accepts unread."""
    connection = socket.socket()
    if buffer:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    connection.settimeout(30)
    connection.bind((source, 0))
    connection.connect(("127.0.0.1", int(server.url.rsplit(":", 1)[1])))
    connection.sendall(sent)
    return connection


@contextmanager
def active(server: Server, *asks: bytes, source: str = "127.0.0.1") -> Iterator[None]:
    """Run the block while these requests for texts are pending; the server does not write them."""
    loaded = server.served.models["tiny"]
    engine = GatedEngine(loaded)
    server.services.engines.add(loaded, engine)
    waiting = [open_from(server, source, ask) for ask in asks]
    engine.news.wait_until(lambda: len(engine.active) + len(engine.queue) == len(asks))
    yield
    for connection in waiting:
        connection.close()


def is_closed(connection: socket.socket) -> bool:
    """Read to the end of the connection, which the server must close."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionError:
        pass
    return True


@pytest.mark.parametrize("kind", STALLED)
def test_stalled_connections_are_closed(server: Server, impatient: None, kind: str) -> None:
    connection = open_from(server, sent=STALLED[kind])
    assert is_closed(connection)
    connection.close()


def test_connections_of_clients_that_do_not_read_are_closed(server: Server, impatient: None) -> None:
    """Its answers fill the buffers on both sides, and are dropped."""
    ask = b"GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
    connection = open_from(server, buffer=2_048)
    connection.settimeout(0.05)
    own = connection.getsockname()
    sent = 0
    while any(each.client == own for each in server.connections.open) or not sent:
        with contextlib.suppress(TimeoutError, ConnectionError):
            sent += connection.send(ask)
    connection.close()


@pytest.mark.parametrize("n_unsent", [0, 1])
def test_the_system_keeps_no_unsent_data_of_a_dropped_connection(n_unsent: int) -> None:
    ours, theirs = socket.socketpair()
    options = {"get_write_buffer_size.return_value": n_unsent, "get_extra_info.return_value": ours}
    connection = Mock(transport=Mock(**options))
    module.Connection.drop(connection)
    connection.transport.abort.assert_called_once()
    is_reset, seconds = struct.unpack("ii", ours.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8))
    assert (is_reset, seconds) == (n_unsent, 0)
    ours.close(), theirs.close()


def test_slow_but_steady_clients_are_served(server: Server, impatient: None) -> None:
    with httpx.Client(base_url=server.url) as client, client.stream("GET", "/v1/openapi.json") as answer:
        content = b"".join(answer.iter_bytes(100))
    assert content.endswith(b"}")


def test_long_generation_is_not_a_stall(server: Server, slow: Any, impatient: None) -> None:
    """The server must close the connection, not the client."""
    connection = open_from(server)
    body = b'{"model": "slow", "prompt": "ab", "max_tokens": 3}'
    connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    stalled = open_from(server)
    assert is_closed(stalled)  # so the limit has passed
    slow.gate.release(5)
    assert b"200 OK" in connection.recv(65536)
    connection.close()
    stalled.close()


def test_idle_connections_are_closed_for_new_ones(launch: Callable[..., Server], checkpoints: Path) -> None:
    server = launch(checkpoints / "tiny", limits=Limits(max_connections=20, max_connections_per_address=0))
    silent = [open_from(server) for _ in range(100)]
    for _ in range(5):
        assert httpx.get(f"{server.url}/health").status_code == 200
    assert len(server.connections.open) <= 20
    assert all(map(is_closed, silent[:70]))
    for connection in silent:
        connection.close()


def test_connections_per_client_are_limited(launch: Callable[..., Server], checkpoints: Path) -> None:
    server = launch(checkpoints / "tiny", limits=Limits(max_connections=100, max_connections_per_address=10))
    with active(server, *[WRITE] * 10, source="127.0.0.66"):
        surplus = open_from(server, "127.0.0.66")
        assert is_closed(surplus)  # none of the others is idle
        assert httpx.get(f"{server.url}/health").status_code == 200  # from another address
        surplus.close()


def test_clients_behind_a_proxy_do_not_share_a_limit(launch: Callable[..., Server], checkpoints: Path) -> None:
    limits = Limits(max_connections=10, max_connections_per_address=5)
    server = launch(checkpoints / "tiny", limits=limits, trusted_proxies=1)
    ask = WRITE.replace(b"Host: localhost", b"Host: localhost\r\nX-Forwarded-For: 192.0.2.66")
    with active(server, *[ask] * 10):
        answer = httpx.get(f"{server.url}/health", headers={"X-Forwarded-For": "192.0.2.9"})
        assert answer.status_code == 200


def test_limit_is_logged_once(server: Server, capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(50):
        connection = open_from(server, sent=b"no request\r\n\r\n")
        assert is_closed(connection)
        connection.close()
    logging.getLogger("uvicorn.error").warning("enough")
    assert capfd.readouterr().err.count("Invalid HTTP request") <= 1


def test_a_failing_check_does_not_end_the_sweep(caplog: pytest.LogCaptureFixture) -> None:
    class Stalled:
        def __init__(self, error: Exception | None = None) -> None:
            self.error, self.is_dropped = error, False

        def is_stalled(self, _now: float) -> bool:
            if self.error:
                raise self.error
            return True

        def drop(self) -> None:
            self.is_dropped = True

    class Loop:
        def __init__(self) -> None:
            self.later: list[Any] = []

        def time(self) -> float:
            return 3.0

        def call_at(self, _due: float, *call: Any) -> None:
            self.later.append(call)

        def run_in_executor(self, *_: Any) -> None:
            raise RuntimeError("no more threads")

    connections, loop = Connections(Budget(1), max_open=8), Loop()
    broken, stalled = Stalled(OSError("gone")), Stalled()
    connections.open = {broken: None, stalled: None}
    with pytest.raises(RuntimeError):
        connections.sweep(loop, 1.0)
    assert stalled.is_dropped and "could not be checked" in caplog.text
    assert loop.later == [(connections.sweep, loop, 4.0)] and connections.lag == 2.0
