"""Responses that are streamed, and responses that are abandoned if the client disconnects."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from typing import TypeVar

from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from ..serving.server_sent_events import STREAM_HEADERS
from ..settings import Limits
from .errors import CLIENT_LEFT

T = TypeVar("T")
LEFT = Response(status_code=CLIENT_LEFT)


class Stream(StreamingResponse):
    """A streamed response; ``on_end`` always runs, even if the client disconnects before the first piece.

    A client that does not read the stream is disconnected after a time limit.
    """

    def __init__(
        self,
        content: AsyncIterator[bytes],
        on_end: Callable[[], Awaitable[None]],
        limits: Limits,
        *,
        media_type: str,
        max_seconds: float | None = None,
    ) -> None:
        super().__init__(content, media_type=media_type, headers=STREAM_HEADERS)
        self.on_end = on_end
        self.seconds = (limits.max_seconds if max_seconds is None else max_seconds) + limits.grace_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(self.seconds):
                    await super().__call__(scope, receive, send)
        finally:
            await self.on_end()


async def stream(
    request: Request,
    stack: AsyncExitStack,
    pieces: AsyncIterator[bytes],
    limits: Limits,
    *,
    media_type: str,
    max_seconds: float | None = None,
) -> Response:
    """A response that sends ``pieces``, and leaves what ``stack`` has entered afterwards: it outlives its route.

    The status is sent with the first piece, so that an error before it is answered with its own.
    """
    first = await unless_client_leaves(request, anext(pieces))
    if first is None:
        return LEFT
    on_end = stack.pop_all().aclose
    return Stream(then(first, pieces), on_end, limits, media_type=media_type, max_seconds=max_seconds)


async def then(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """``first``, then the pieces of ``rest``."""
    yield first
    async for piece in rest:
        yield piece


async def unless_client_leaves(request: Request, answer: Coroutine[object, object, T] | Awaitable[T]) -> T | None:
    """Await ``answer`` and return its result, or cancel it and return None if the client disconnects first."""

    async def left() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    answering, leaving = asyncio.ensure_future(answer), asyncio.ensure_future(left())
    try:
        await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return answering.result() if answering.done() else None
    finally:
        answering.cancel()
        leaving.cancel()
