"""Concurrent clients that stream texts over HTTP, and the arrival times of their tokens. Loopback only."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

TIMEOUT = 600.0  # seconds for one answer


@dataclass(frozen=True)
class Heard:
    """One client: the times of its request and of each piece of the response, by ``time.perf_counter()``."""

    asked: float
    times: list[float]

    @property
    def first(self) -> float:
        return self.times[0] - self.asked

    @property
    def gaps(self) -> list[float]:
        return [after - before for before, after in zip(self.times, self.times[1:], strict=False)]


@dataclass(frozen=True)
class Load:
    """The timings of a group of clients."""

    clients: list[Heard]
    n_tokens: int  # sent to each client; one piece may contain several

    @property
    def rate(self) -> float:
        """Tokens per second, all clients together, from the first request to the last token."""
        start = min(client.asked for client in self.clients)
        return self.n_tokens * len(self.clients) / (max(client.times[-1] for client in self.clients) - start)

    def first(self, quantile: float) -> float:
        """Seconds to the first token."""
        return at_quantile([client.first for client in self.clients], quantile)

    def gap(self, quantile: float) -> float:
        """Seconds between two tokens of one text."""
        return at_quantile([gap for client in self.clients for gap in client.gaps], quantile)


def at_quantile(values: Sequence[float], quantile: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(quantile * len(ordered)))]


def completions(
    port: int, prompts: Sequence[str], n_tokens: int, spread: float = 1.0, model: str | None = None, **more: object
) -> Load:
    """Stream from /v1/completions with one client per prompt; the clients start evenly spaced within ``spread``
    seconds.
    """

    async def ask(prompt: str, delay: float) -> Heard:
        await asyncio.sleep(delay)
        body = {"prompt": prompt, "max_tokens": n_tokens, "temperature": 0, "stream": True, "model": model}
        body |= more
        return await stream(port, "POST", "/v1/completions", body, b'data: {"')

    return Load(run(prompts, ask, spread), n_tokens)


def gradio_calls(port: int, prompts: Sequence[str], n_tokens: int, spread: float = 1.0) -> Load:
    """The same through a Gradio demo's REST calls."""

    async def ask(prompt: str, delay: float) -> Heard:
        await asyncio.sleep(delay)
        asked = time.perf_counter()
        body = {"data": [prompt, n_tokens]}
        posted = json.loads((await answer(port, "POST", "/gradio_api/call/write", body)).split(b"\r\n\r\n", 1)[1])
        path = f"/gradio_api/call/write/{posted['event_id']}"
        return Heard(asked, (await stream(port, "GET", path, None, b"event: generating")).times)

    return Load(run(prompts, ask, spread), n_tokens)


def run(prompts: Sequence[str], ask: Callable[[str, float], Awaitable[Heard]], spread: float) -> list[Heard]:
    async def all_of_them() -> list[Heard]:
        delays = [spread * i / len(prompts) for i in range(len(prompts))]
        return list(await asyncio.gather(*map(ask, prompts, delays)))

    return asyncio.run(all_of_them())


class Listener(asyncio.Protocol):
    """Notes the arrival time of each line that begins with ``mark``, using little CPU, because the server needs the
    cores.
    """

    def __init__(self, request: bytes, mark: bytes) -> None:
        self.request, self.mark = request, mark
        self.times: list[float] = []
        self.rest, self.other = b"", b""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            if line.startswith(self.mark) and b'"choices":[]' not in line and b'"error"' not in line:
                self.times.append(now)
            else:
                self.other += line
                if line.startswith((b"data: [DONE]", b"event: complete", b"0\r")):
                    self.transport.close()

    def connection_lost(self, _error: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


async def stream(port: int, method: str, path: str, body: object, mark: bytes) -> Heard:
    """Note the time of each line that begins with ``mark``; raises ``RuntimeError`` if there is none."""
    asked, request = time.perf_counter(), as_bytes(method, path, body, "keep-alive")
    transport, listener = await asyncio.get_running_loop().create_connection(
        lambda: Listener(request, mark), "127.0.0.1", port
    )
    try:
        async with asyncio.timeout(TIMEOUT):
            await listener.ended
    finally:
        transport.close()
    if not listener.times:
        raise RuntimeError(f"{method} {path}: {listener.other[-500:].decode(errors='replace')}")
    return Heard(asked, listener.times)


async def answer(port: int, method: str, path: str, body: object) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(as_bytes(method, path, body, "close"))
        return await reader.read()
    finally:
        writer.close()


def as_bytes(method: str, path: str, body: object, connection: str) -> bytes:
    """A request."""
    content = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(content)}\r\nConnection: {connection}\r\n\r\n".encode() + content
