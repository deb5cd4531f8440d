"""What Headscope uses of uvicorn beyond what it publishes: a connection of its own, made from uvicorn's.

uvicorn has a timeout only between requests, and no limit on the size of a head. Here, a client that opens a connection
and sends nothing, stops in the middle of a request, or does not read its response is dropped about a second after
``STALL_SECONDS``; clients take turns at having their requests parsed.
"""

import asyncio
import socket
import struct
import sys
import time
from collections.abc import Hashable
from typing import Any, Protocol

import httptools
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from ..client import client_at, client_in, set_client_address
from ..serving.budget import DROP
from ..settings import UPLOAD_SECONDS

HTTP = "uvicorn.protocols.http.httptools_impl"
PARTS = {
    "uvicorn.protocols.http.flow_control.FlowControl.read_paused": "says whether the app has enough of a body",
    f"{HTTP}.STATUS_LINE": "holds the first lines of responses",
    f"{HTTP}.HttpToolsProtocol._unset_keepalive_if_required": "ends the wait for a request",
    f"{HTTP}.HttpToolsProtocol._start_asgi_task": "begins to answer a request",
    f"{HTTP}.HttpToolsProtocol.pipeline": "holds requests that were sent before an answer",
    f"{HTTP}.HttpToolsProtocol.cycle": "is the newest request",
    f"{HTTP}.HttpToolsProtocol.flow": "stops reading from a client that sends too much",
    f"{HTTP}.HttpToolsProtocol.parser": "is fed with what was received",
    f"{HTTP}.HttpToolsProtocol.scope": "describes the request to the app",
    f"{HTTP}.HttpToolsProtocol.on_response_complete": "is told when a response was sent",
    f"{HTTP}.RequestResponseCycle.disconnected": "tells the app that the client is gone",
    f"{HTTP}.RequestResponseCycle.message_event": "wakes an app that waits for a body",
    f"{HTTP}.RequestResponseCycle.more_body": "says whether a body is complete",
    f"{HTTP}.RequestResponseCycle.response_started": "says whether an error can be sent",
    f"{HTTP}.RequestResponseCycle.response_complete": "says whether a request is answered",
    f"{HTTP}.RequestResponseCycle.keep_alive": "says whether another request may follow",
}

STALL_SECONDS = 15.0  # after which a connection is closed if it waits for a client that does nothing
MAX_BODY_SECONDS = UPLOAD_SECONDS + 5.0  # within which a request body must have arrived
RESET = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)  # SO_LINGER: on, for 0 seconds
WRITE_AHEAD = 16_384  # unread bytes at which writing to a client pauses
PARSE_BYTES = 4_096  # parsed at a time; it is also how far a client's later requests are read ahead
MAX_HEAD_BYTES = 32_768  # of a request line with its header fields, and of the fields after a body
MAX_FIELDS = 128  # in a head
CHUNK_FRAME_BYTES = 16  # around a chunk, at most, on average
MIN_PIECE_BYTES = 16  # of a body, on average, after the first ``MANY_PIECES``
MANY_PIECES = 16_384
VERSIONS = ("1.0", "1.1")


class Shares(Protocol):
    """How much of the time each client may have its requests parsed."""

    def may_parse(self, connection: "Connection", loop: asyncio.AbstractEventLoop) -> bool: ...
    def charge(self, client: Hashable, seconds: float) -> None: ...


class AllConnections(Protocol):
    """All connections of a server, each of which tells them when it begins, whose it is, and when it ends."""

    n_proxies: int
    buffer: bytearray  # each connection copies from it at once what it has received

    @property
    def parse_shares(self) -> Shares: ...
    def add(self, connection: "Connection") -> None: ...
    def belongs_to(self, connection: "Connection", owner: Hashable) -> None: ...
    def remove(self, connection: "Connection") -> None: ...


class GatheredWrites:
    """A ``transport`` that sends together what is written in one turn of the event loop, up to ``WRITE_AHEAD`` bytes.

    uvicorn writes headers, body and end of a response one by one. Each write would be a system call, during which other
    threads take Python's lock.
    """

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.transport, self.loop = transport, loop
        self.parts: list[bytes] = []
        self.n_bytes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.transport, name)

    def write(self, data: bytes) -> None:
        if not self.parts:
            self.loop.call_soon(self.flush)
        self.parts.append(data)
        self.n_bytes += len(data)
        if self.n_bytes > WRITE_AHEAD:
            self.flush()

    def flush(self) -> None:
        data, self.n_bytes = b"".join(self.parts), 0
        self.parts.clear()
        if data and not self.transport.is_closing():
            self.transport.write(data)

    def close(self) -> None:
        self.flush()
        self.transport.close()

    def get_write_buffer_size(self) -> int:
        return self.n_bytes + int(self.transport.get_write_buffer_size())


class Refused(Exception):
    """Why a request is refused before it reaches a route."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.message, self.status = message, status


class PieceFlow(FlowControl):
    """uvicorn's flow control, for a connection that may hold data which it has received but not parsed."""

    def __init__(self, connection: "Connection") -> None:
        super().__init__(connection.transport)
        self.connection = connection

    def resume_reading(self) -> None:
        if self.read_paused:
            self.read_paused = False
            self.connection.parse_on()


class Connection(HttpToolsProtocol, asyncio.BufferedProtocol):
    """A uvicorn connection that also keeps track of its client and of when data last moved on it.

    It is read only as far as it has been parsed, piece by piece, when it is the client's turn.
    """

    def __init__(self, connections: AllConnections, *args: Any, **options: Any) -> None:
        self.pieces: list[bytes] = []  # of the body, from the newest piece parsed
        self.on_body = self.pieces.append  # type: ignore[assignment]  # the parser's callback, at the least cost
        super().__init__(*args, **options)
        self.all = connections
        self.owner: Hashable = None  # the client, once it is known
        self.payer: Hashable = self  # for parsing; on a proxy's connection, the client is known after the head
        self.routed = self.app
        self.app = self.serve
        now = time.monotonic()
        self.idle_since = self.heard_at = self.asked_at = self.written_at = now
        self.n_unsent = 0
        self.unparsed = memoryview(b"")
        self.in_head = self.is_upgrade = False
        # Since the message began: bytes parsed, and bytes and pieces of its body.
        self.n_parsed = self.n_body = self.n_pieces = 0
        self.running: RequestResponseCycle | None = None  # ``cycle`` is the newest, which may wait for this one

    def connection_made(self, transport: Any) -> None:
        gathered: Any = GatheredWrites(transport, self.loop)
        super().connection_made(gathered)
        self.flow = PieceFlow(self)
        transport.set_write_buffer_limits(WRITE_AHEAD)
        self.owner = client_at(self.client[0]) if self.client else None
        if not self.all.n_proxies:
            self.payer = self.owner
        self.all.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.unparsed = memoryview(b"")
        for cycle in (self.running, *(waiting for waiting, _ in self.pipeline)):
            if cycle is not None and not cycle.response_complete:  # uvicorn tells only the newest
                cycle.disconnected = True
                cycle.message_event.set()
        self.pipeline.clear()
        super().connection_lost(exc)
        self.all.remove(self)

    # ---- What has been received --------------------------------------------------------------------------------------

    def get_buffer(self, _sizehint: int) -> bytearray:
        return self.all.buffer

    def buffer_updated(self, n_bytes: int) -> None:
        self.data_received(bytes(memoryview(self.all.buffer)[:n_bytes]))

    def data_received(self, data: bytes) -> None:
        self.heard_at = time.monotonic()
        self.unparsed = memoryview(bytes(self.unparsed) + data if self.unparsed else data)
        self.parse_on()

    def parse_on(self) -> None:
        """Parse what has been received, as far as it is this client's turn and the app takes it."""
        while self.unparsed and not (self.pipeline or self.flow.read_paused or self.transport.is_closing()):
            if not self.all.parse_shares.may_parse(self, self.loop):
                break
            payer, began = self.payer, time.perf_counter()
            self._unset_keepalive_if_required()
            self.parse_piece()
            self.all.parse_shares.charge(payer, time.perf_counter() - began)
        if self.unparsed or self.flow.read_paused:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def parse_piece(self) -> None:
        piece, self.unparsed = self.unparsed[:PARSE_BYTES], self.unparsed[PARSE_BYTES:]
        try:
            self.parser.feed_data(piece)
            self.pass_body_on()
            self.n_parsed += len(piece)
            if self.n_parsed - self.n_body > MAX_HEAD_BYTES + CHUNK_FRAME_BYTES * self.n_pieces:
                part = "head" if self.in_head else "framing around the body"
                raise Refused(f"The {part} is longer than {MAX_HEAD_BYTES:,} bytes.", 431 if self.in_head else 400)
            if MIN_PIECE_BYTES * (self.n_pieces - MANY_PIECES) > self.n_body:
                raise Refused(f"The body comes in chunks of fewer than {MIN_PIECE_BYTES} bytes.")
        except httptools.HttpParserUpgrade as pause:
            self.ignore_upgrade(piece[pause.args[0] :])
        except httptools.HttpParserError as error:
            cause = error.__context__
            self.refuse(cause if isinstance(cause, Refused) else Refused("Invalid HTTP request received."))
        except Refused as error:
            self.refuse(error)

    def ignore_upgrade(self, rest: memoryview) -> None:
        """Parse a request again without the other protocol that it offers; ``rest`` is what came after its head.

        llhttp would take its body, which Java's client may well send, for the other protocol.
        """
        head = [self.parser.get_method(), b" ", self.url, b" HTTP/1.1\r\n"]
        head += [part for name, value in self.headers if name != b"upgrade" for part in (name, b": ", value, b"\r\n")]
        self.unparsed = memoryview(b"".join([*head, b"\r\n", rest, self.unparsed]))
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)

    def refuse(self, reason: Refused) -> None:
        """Answer with an error if that is possible, and close the connection."""
        self.logger.warning(reason.message)
        self.unparsed = memoryview(b"")
        cycle = self.cycle
        if cycle and not cycle.response_complete:
            if not cycle.more_body:  # it is the request after this one that is refused
                cycle.keep_alive = False
                return
            if cycle is not self.running or cycle.response_started:
                self.drop()  # an error would become part of a response
                return
            cycle.disconnected = True
            cycle.message_event.set()
        content = reason.message.encode()
        head = b"content-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[reason.status] + head % len(content) + content)
        self.transport.close()

    # ---- Callbacks of the parser -------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.in_head, self.is_upgrade = True, False
        self.n_parsed = self.n_body = self.n_pieces = 0
        if self.all.n_proxies:
            self.payer = self

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.in_head:
            return  # a field after the body: what was checked before must stay as it is
        if len(self.headers) >= MAX_FIELDS:
            raise Refused(f"The head has more than {MAX_FIELDS} fields.", 431)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self.in_head = False
        version, hosts = self.parser.get_http_version(), [value for name, value in self.headers if name == b"host"]
        if version not in VERSIONS or self.parser.get_method() == b"CONNECT":
            raise Refused("Only requests in HTTP/1.0 and HTTP/1.1 for this server itself are answered.")
        if len(hosts) > 1 or (not hosts and version == "1.1"):
            raise Refused("A request must have one Host.")
        if any(name == b"transfer-encoding" and value.lower() != b"chunked" for name, value in self.headers):
            raise Refused("The only transfer coding that is accepted is chunked.")
        self.is_upgrade = self.parser.should_upgrade()
        if self.is_upgrade:
            return  # ``ignore_upgrade`` is next
        super().on_headers_complete()
        scope: Any = self.scope
        set_client_address(scope, self.all.n_proxies)
        self.all.belongs_to(self, client_in(scope))
        self.payer = self.owner

    def pass_body_on(self) -> None:
        if self.pieces:
            body = b"".join(self.pieces)
            self.n_pieces += len(self.pieces)
            self.n_body += len(body)
            self.pieces.clear()
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self.is_upgrade:
            self.pass_body_on()
            super().on_message_complete()

    # ---- Requests ----------------------------------------------------------------------------------------------------

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self.running = cycle
        super()._start_asgi_task(cycle, app)

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        self.asked_at = time.monotonic()
        scope.setdefault("extensions", {})[DROP] = self.drop
        await self.routed(scope, receive, send)

    def on_response_complete(self) -> None:
        self.idle_since = time.monotonic()
        super().on_response_complete()
        self.parse_on()

    @property
    def is_idle(self) -> bool:
        """Whether the connection is waiting for a request, or for the rest of a request's headers."""
        return self.cycle is None or self.cycle.response_complete

    def is_stalled(self, now: float) -> bool:
        n_unsent = self.transport.get_write_buffer_size()
        if n_unsent < self.n_unsent or not n_unsent:
            self.written_at = now
        self.n_unsent = n_unsent
        if now - self.written_at > STALL_SECONDS:
            return True
        if self.is_idle:
            return now - self.idle_since > STALL_SECONDS and not n_unsent
        if self.cycle.more_body and not self.flow.read_paused:
            is_silent = not self.unparsed and now - self.heard_at > STALL_SECONDS
            return is_silent or now - self.asked_at > MAX_BODY_SECONDS
        return False

    def drop(self) -> None:
        """Close the connection at once, discarding unsent data."""
        self.all.remove(self)
        if self.transport.get_write_buffer_size():
            # Without this, the system would keep what it has taken, megabytes, for minutes, and count it for no one.
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.transport.abort()
