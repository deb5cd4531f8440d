"""What a connection makes of the bytes that it receives, without a network."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from web.edge import connections as module
from web.edge.connections import Connections
from web.seams import uvicorn as seam
from web.serving.budget import Budget

GET = b"GET / HTTP/1.1\r\nHost: a\r\n"
POST = b"POST /p HTTP/1.1\r\nHost: a\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n"
NEXT = b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n"
TURNS = 20_000  # of the event loop, at most, for what a test sends


class Transport(asyncio.Transport):
    """Records what is written; closes at once."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.written, self.is_closed, self.is_paused = b"", False, False

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def close(self) -> None:
        self.is_closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.is_closed

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...


@dataclass
class Seen:
    """The requests that reached the app, and what the client got."""

    paths: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[bytes, bytes]] = field(default_factory=list)
    n_disconnected: int = 0
    transport: Transport = field(default_factory=Transport)

    @property
    def statuses(self) -> list[int]:
        return [int(each[:3]) for each in self.transport.written.split(b"HTTP/1.1 ")[1:] if each[:3].isdigit()]


Feed = Callable[[Any, Transport], Any]


def received(*pieces: bytes, n_proxies: int = 0, gate: asyncio.Event | None = None, lost: bool = False) -> Seen:
    """What happens when a connection receives ``pieces``, each in a turn of the event loop."""
    seen = Seen()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.paths.append(scope["path"])
        seen.headers.append(dict(scope["headers"]))
        body = b""
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                seen.n_disconnected += 1
                return
            body += message["body"]
            if not message["more_body"]:
                break
        seen.bodies.append(body)
        if gate is not None:
            while (await receive())["type"] != "http.disconnect":
                pass
            seen.n_disconnected += 1
            return
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    async def run() -> None:
        connections = Connections(Budget(1), max_open=10, n_proxies=n_proxies)
        config = uvicorn.Config(app, http=connections.protocol, ws="none", log_config=None)
        config.load()
        connection = connections.protocol(config=config, server_state=ServerState(), app_state={})
        connection.connection_made(seen.transport)
        for piece in pieces:
            if not seen.transport.is_closed:
                connection.data_received(piece)
            await asyncio.sleep(0)
        for _ in range(TURNS):
            await asyncio.sleep(0)
            if not (connection.unparsed or connection.pipeline):
                break
        for _ in range(10):
            await asyncio.sleep(0)
        if lost:
            connection.connection_lost(None)
            for _ in range(10):
                await asyncio.sleep(0)

    asyncio.run(run())
    return seen


@pytest.fixture(autouse=True)
def no_waiting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("web.edge.parse_shares.BURST_SECONDS", 60.0)


def bytewise(sent: bytes) -> list[bytes]:
    return [sent[i : i + 1] for i in range(len(sent))]


@pytest.mark.parametrize("cut", [lambda sent: [sent], bytewise])
@pytest.mark.parametrize(
    "sent",
    [
        POST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + NEXT,
        CHUNKED + b"Content-Length: 4\r\n\r\n0\r\n\r\n" + NEXT,
        POST + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\naaaaa",
        POST + b"Content-Length: 4\r\nContent-Length: 4\r\n\r\naaaa",
        POST + b"Content-Length: 4, 4\r\n\r\naaaa",
        POST + b"Content-Length: +4\r\n\r\naaaa",
        POST + b"Content-Length: -4\r\n\r\naaaa",
        POST + b"Content-Length: 99999999999999999999999\r\n\r\naaaa",
        POST + b"Transfer-Encoding: identity\r\n\r\n" + NEXT,
        POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
        CHUNKED + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        GET + b"X: a\r\n b\r\n\r\n",
        GET + b"X: a\r\n\tTransfer-Encoding: chunked\r\n\r\n",
        GET + b"X: a\nY: b\r\n\r\n",
        GET + b"X: a\rY: b\r\n\r\n",
        GET + b"X: a\0b\r\n\r\n",
        GET + b"X : a\r\n\r\n",
        GET + b" X: a\r\n\r\n",
        GET + b"Host: b\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\nHost: a\n\n",
        b"GET / HTTP/2.0\r\nHost: a\r\n\r\n",
        b"GET /\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01",
        POST
        + b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
)
def test_ambiguous_heads_are_refused_before_the_app(sent: bytes, cut: Callable[[bytes], Sequence[bytes]]) -> None:
    seen = received(*cut(sent))
    assert seen.statuses == [400] and seen.transport.is_closed and not seen.paths


@pytest.mark.parametrize(
    "chunks",
    [
        b"3\nabc\r\n0\r\n\r\n",
        b"-3\r\nabc\r\n0\r\n\r\n",
        b"0x3\r\nabc\r\n0\r\n\r\n",
        b"3 \r\nabc\r\n0\r\n\r\n",
        b"3\r\nabcd\r\n0\r\n\r\n",
        b"fffffffffffffffff\r\nabc",
        b"3;a\nb\r\nabc\r\n0\r\n\r\n",
    ],
)
def test_malformed_chunks_end_the_request(chunks: bytes) -> None:
    seen = received(CHUNKED + b"\r\n" + chunks + NEXT)
    assert seen.statuses == [400] and seen.transport.is_closed and not seen.bodies and "/next" not in seen.paths


def test_fields_after_a_body_do_not_change_what_was_checked() -> None:
    seen = received(CHUNKED + b"\r\n3\r\nabc\r\n0\r\nCookie: a=b\r\nHost: other\r\n\r\n")
    assert seen.bodies == [b"abc"] and seen.headers == [{b"host": b"a", b"transfer-encoding": b"chunked"}]


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (GET + b"a:\r\n" * (seam.MAX_FIELDS + 1) + b"\r\n", 431),
        (GET + b"a: " + b"x" * 50_000 + b"\r\n\r\n", 431),
        (b"GET /" + b"x" * 50_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 431),
        (CHUNKED + b"\r\n1;" + b"x" * 50_000 + b"\r\n \r\n0\r\n\r\n", 400),
        (CHUNKED + b"\r\n0\r\n" + b"a: b\r\n" * 10_000 + b"\r\n", 400),
    ],
)
def test_heads_and_framing_have_a_limit(sent: bytes, status: int) -> None:
    seen = received(sent)
    assert seen.statuses == [status] and not seen.bodies


def test_heads_below_the_limit_are_accepted() -> None:
    fields = b"".join(b"a%d: b\r\n" % i for i in range(seam.MAX_FIELDS - 2))
    assert received(GET + fields + b"b: " + b"x" * 28_000 + b"\r\n\r\n").statuses == [200]


@pytest.mark.parametrize(("n_pieces", "n_bytes"), [(seam.MANY_PIECES, 1), (40_000, seam.MIN_PIECE_BYTES)])
def test_bodies_in_small_pieces_arrive(n_pieces: int, n_bytes: int) -> None:
    seen = received(CHUNKED + b"\r\n" + (b"%x\r\n" % n_bytes + b"x" * n_bytes + b"\r\n") * n_pieces + b"0\r\n\r\n")
    assert seen.bodies == [b"x" * n_bytes * n_pieces] and seen.statuses == [200]


def test_bodies_in_a_great_many_pieces_are_refused() -> None:
    seen = received(CHUNKED + b"\r\n" + b"1\r\nx\r\n" * 20_000 + b"0\r\n\r\n")
    assert seen.statuses == [400] and not seen.bodies and seen.transport.is_closed


@pytest.mark.parametrize("cut", [lambda sent: [sent], bytewise])
def test_pipelined_requests_are_answered_in_turn(cut: Callable[[bytes], Sequence[bytes]]) -> None:
    seen = received(*cut(GET + b"\r\n" + POST + b"Content-Length: 2\r\n\r\nab" + NEXT))
    assert seen.paths == ["/", "/p", "/next"] and seen.bodies == [b"", b"ab", b""] and seen.statuses == [200] * 3


def test_requests_are_read_ahead_only_a_little() -> None:
    seen = received(NEXT * 5_000, gate=asyncio.Event())
    assert len(seen.paths) == 1 and seen.transport.is_paused


def test_an_error_after_a_request_does_not_become_its_answer() -> None:
    seen = received(GET + b"\r\nnonsense\r\n\r\n")
    assert seen.statuses == [200] and seen.transport.is_closed


def test_a_request_ends_with_its_connection_even_if_another_waits_behind_it() -> None:
    seen = received(GET + b"\r\n" + NEXT, gate=asyncio.Event(), lost=True)
    assert seen.paths == ["/"] and seen.n_disconnected == 1


@pytest.mark.parametrize("cut", [lambda sent: [sent], bytewise])
@pytest.mark.parametrize("protocol", [b"h2c", b"websocket"])
@pytest.mark.parametrize("chunked", [False, True])
def test_an_offer_of_another_protocol_is_ignored(
    protocol: bytes, chunked: bool, cut: Callable[[bytes], Sequence[bytes]]
) -> None:
    """Java's client offers HTTP/2 with every request, and the parser alone would take the body for that."""
    framing, body = (
        (b"Transfer-Encoding: chunked", b"5\r\nhello\r\n0\r\n\r\n") if chunked else (b"Content-Length: 5", b"hello")
    )
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: " + protocol + b"\r\n" + framing + b"\r\n\r\n"
    seen = received(*cut(POST + offer + body + NEXT))
    assert seen.paths == ["/p", "/next"] and seen.bodies == [b"hello", b""] and seen.statuses == [200, 200]


@pytest.mark.parametrize("n_proxies", [0, 1])
def test_parsing_counts_for_the_client(n_proxies: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a proxy, whose connections many clients share, that of a head before its client is known does not."""
    charged = []
    monkeypatch.setattr(module.ParseShares, "charge", lambda _, client, seconds: charged.append(client))
    head = GET + b"X-Forwarded-For: 192.0.2.1\r\nContent-Length: 3\r\n\r\n"
    received(head, b"a", b"bc", n_proxies=n_proxies)
    assert charged[1:] == (["192.0.2.1"] * 2 if n_proxies else ["127.0.0.1"] * 2)
    assert isinstance(charged[0], module.Connection) == bool(n_proxies)
