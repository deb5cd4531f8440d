"""Bounds on what a remote engine may send: a limited amount, uncompressed; anything else is a one-sentence error."""

import asyncio
import gzip
import itertools
from collections.abc import AsyncIterator, Callable, Iterable

import httpx
import pytest

from helpers import run_async
from helpers.models import tiny_model
from web.serving import engine_client
from web.serving.engine_addresses import EngineAddress
from web.serving.engine_client import (
    MAX_ERROR_BYTES,
    MAX_LIST_BYTES,
    MAX_TEXT_BYTES,
    MAX_TOKEN_BYTES,
    EngineClient,
    EngineLost,
)

N_TOKENS = 3
PIECE = 65_536
DEEP = b"[" * 100_000
MAX_BYTES = MAX_TEXT_BYTES + MAX_TOKEN_BYTES * N_TOKENS
MORE = f"it sent more than {MAX_BYTES:,} bytes"
CHUNK = b'data: {"choices": [{"text": "a", "finish_reason": null}]}\n'


def wrote(answers: Callable[[str], httpx.Response], model: str | None = "tiny") -> str:
    """The text written by an engine with these answers by path."""

    async def write() -> str:
        transport = httpx.MockTransport(lambda request: answers(request.url.path))
        async with httpx.AsyncClient(transport=transport) as client:
            engine = EngineClient("tiny", EngineAddress("http://engine/v1", model), client)
            request = tiny_model().request([1, 2], N_TOKENS)
            return "".join([text async for text, _ in engine.write("ab", request, N_TOKENS)])

    return str(run_async(write()))


class Sent:
    """Pieces that are counted as they are read."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self.pieces, self.n_bytes = pieces, 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            self.n_bytes += len(piece)
            yield piece


@pytest.mark.parametrize(
    ("status", "pieces", "headers", "said", "most"),
    [
        (500, itertools.repeat(b"x" * PIECE), {}, "it answered 500", MAX_ERROR_BYTES),
        (500, [DEEP], {}, "it answered 500", len(DEEP)),
        (200, itertools.repeat(b"x" * PIECE), {}, MORE, MAX_BYTES),
        (200, itertools.repeat(CHUNK * 1_000), {}, MORE, MAX_BYTES),
        (200, itertools.repeat(b": still here\n" * 1_000), {}, MORE, MAX_BYTES),
        (200, [b"data: " + DEEP + b"\n"], {}, "its response is invalid", MAX_BYTES),
        (200, [b'data: {"choices": [{"text": ["a"]}]}\n'], {}, "its response is invalid", PIECE),
        (200, [b'data: {"choices": [{"text": NaN}]}\n'], {}, "its response is invalid", PIECE),
        (200, [gzip.compress(CHUNK)], {"Content-Encoding": "gzip"}, "it sent a compressed response", 0),
        (500, [gzip.compress(CHUNK)], {"Content-Encoding": "br, gzip"}, "it answered 500", 0),
    ],
)
def test_oversized_or_compressed_engine_responses_are_refused(
    status: int, pieces: Iterable[bytes], headers: dict[str, str], said: str, most: int
) -> None:
    sent = Sent(pieces)
    with pytest.raises(EngineLost, match=said):
        wrote(lambda _: httpx.Response(status, headers=headers, content=sent))
    assert sent.n_bytes <= most + PIECE


@pytest.mark.parametrize("pieces", [itertools.repeat(b" " * PIECE), [DEEP], [b'{"data": [{"id": "\\ud800"}]}']])
def test_unusable_model_lists_are_ignored(pieces: Iterable[bytes]) -> None:
    listed, end = Sent(pieces), b'data: {"choices": [{"text": "b", "finish_reason": "stop"}]}'
    found = wrote(
        lambda path: httpx.Response(200, content=listed if path.endswith("/models") else Sent([CHUNK, end])), model=None
    )
    assert found == "ab" and listed.n_bytes <= MAX_LIST_BYTES + PIECE


def test_a_model_list_that_never_ends_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silence() -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""

    monkeypatch.setattr(engine_client, "LIST_SECONDS", 0.0)
    end = b'data: {"choices": [{"text": "b", "finish_reason": "stop"}]}'
    found = wrote(
        lambda path: httpx.Response(200, content=silence() if path.endswith("/models") else Sent([end])), model=None
    )
    assert found == "b"


def test_stream_lines_may_arrive_in_pieces() -> None:
    text = "".join(f'data: {{"choices": [{{"text": "{c}", "finish_reason": null}}]}}\r\n\r\n' for c in "aé🙂")
    end = 'data: {"choices": [{"text": "", "finish_reason": "stop"}]}\n'
    pieces = [bytes([byte]) for byte in (text + end).encode()]
    assert wrote(lambda _: httpx.Response(200, content=Sent(pieces))) == "aé🙂"
