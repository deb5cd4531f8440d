"""HTTP over plain sockets from any loopback address, for requests that a client library would not allow."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

GOOD, BAD = "127.0.0.9", "127.0.0.66"  # where visitors and attackers come from
LIMIT = 2**24  # bytes that a reader buffers


@dataclass(frozen=True)
class Answer:
    """The status, 0 if the connection broke or timed out, and the raw body, possibly chunked."""

    status: int
    body: bytes

    @property
    def json(self) -> dict[str, object]:
        found: dict[str, object] = json.loads(self.body[self.body.index(b"{") : self.body.rindex(b"}") + 1])
        return found


def request(method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None) -> bytes:
    """The bytes of a request; ``body`` is raw bytes, or a value to be sent as JSON."""
    content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    fields = {"Host": "127.0.0.1", "Content-Type": "application/json", "Content-Length": str(len(content))}
    head = "".join(f"{name}: {value}\r\n" for name, value in (fields | dict(headers or {})).items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + content


async def connect(
    port: int, source: str = GOOD, receive_buffer: int | None = None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection; with a small ``receive_buffer`` (bytes), little of a response is buffered."""
    opened = socket.socket()
    try:
        opened.setblocking(False)
        if receive_buffer:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        opened.bind((source, 0))
        await asyncio.get_running_loop().sock_connect(opened, ("127.0.0.1", port))
    except BaseException:
        opened.close()
        raise
    return await asyncio.open_connection(sock=opened, limit=LIMIT)


@asynccontextmanager
async def opened(
    port: int, sent: bytes, source: str = GOOD, receive_buffer: int | None = None
) -> AsyncIterator[asyncio.StreamReader]:
    """A connection that sends ``sent`` and is dropped at the end."""
    reader, writer = await connect(port, source, receive_buffer)
    try:
        writer.write(sent)
        await writer.drain()
        yield reader
    finally:
        writer.transport.abort()


async def ask(
    port: int,
    method: str,
    path: str,
    body: object = None,
    source: str = GOOD,
    headers: Mapping[str, str] | None = None,
    timeout: float = 60.0,
) -> Answer:
    """The whole response to one request on a separate connection."""
    sent = request(method, path, body, {"Connection": "close"} | dict(headers or {}))
    try:
        async with asyncio.timeout(timeout), opened(port, sent, source) as reader:
            return await read_answer(reader)
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return Answer(0, b"")


class Session:
    """Requests one after the other on one connection, which is kept open between them, as browsers do."""

    def __init__(self, port: int, source: str) -> None:
        self.port, self.source = port, source
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: object = None, timeout: float = 60.0) -> Answer:
        """The response to one request, which must have a length. A connection that was closed is opened again."""
        sent, is_new = request(method, path, body), self.streams is None
        try:
            async with asyncio.timeout(timeout):
                reader, writer = self.streams = self.streams or await connect(self.port, self.source)
                writer.write(sent)
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(line[15:] for line in head.lower().splitlines() if line.startswith(b"content-length:"))
                return Answer(int(head.split(b" ", 2)[1]), await reader.readexactly(int(length)))
        except (OSError, TimeoutError, StopIteration, asyncio.IncompleteReadError) as error:
            self.close()
            if is_new or isinstance(error, TimeoutError | StopIteration):
                return Answer(0, b"")
        return await self.ask(method, path, body, timeout)

    def close(self) -> None:
        if self.streams:
            self.streams[1].transport.abort()
        self.streams = None


async def read_answer(reader: asyncio.StreamReader) -> Answer:
    """Everything received until the server closes the connection."""
    found = await reader.read(-1)
    head, _, body = found.partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    return Answer(int(words[1]) if len(words) > 1 and words[1].isdigit() else 0, body)
