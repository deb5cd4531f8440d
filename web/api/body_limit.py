"""Refuses request bodies above the limit before anything reads them."""

from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..settings import MAX_LONG_TEXT_BYTES, Limits
from .auth import path_of
from .errors import ApiError

LONG_TEXTS = "/v1/lens/passages"  # the one route whose body is a whole file's text
LONG_BODY_BYTES = 3 * MAX_LONG_TEXT_BYTES  # with line breaks, quotes and other letters escaped


class LimitBody:
    """ASGI middleware that refuses bodies above the limit, whether they say how long they are or not.

    ``larger`` names the paths with a limit of their own.
    """

    def __init__(self, app: ASGIApp, limits: Limits, larger: Mapping[str, int] | None = None) -> None:
        self.app, self.limits, self.larger = app, limits, larger or {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path, most = path_of(scope), self.limits.max_body_bytes
        if path == LONG_TEXTS:
            most = max(most, LONG_BODY_BYTES)
        most = self.larger.get(path, most)
        error = ApiError(413, f"The body has more than {most:,} bytes.", code="body_too_large")
        said = Headers(scope=scope).get("content-length", "")
        if said.isdigit() and int(said) > most:
            await error.response()(scope, receive, send)
            return
        n_bytes = 0

        async def counted() -> Message:
            nonlocal n_bytes
            message = await receive()
            n_bytes += len(message.get("body", b""))
            if n_bytes > most:
                raise HTTPException(413, error.message)
            return message

        await self.app(scope, counted, send)
