"""Refuses request bodies above the limit before anything reads them."""

from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..serving.budget import Budget, NoRoom
from ..settings import MAX_LONG_TEXT_BYTES, Limits
from .auth import path_of
from .errors import ApiError, as_api_error

LONG_TEXTS = "/v1/lens/passages"  # the one route whose body is a whole file's text
HELD_TIMES = 2  # a body, and what is read from it
HELD_TIMES_LONG = 8  # the tokens of a long text are numbers
LONG_BODY_BYTES = 3 * MAX_LONG_TEXT_BYTES  # with line breaks, quotes and other letters escaped


class LimitBody:
    """ASGI middleware that refuses bodies above the limit, whether they say how long they are or not.

    ``larger`` names the paths with a limit of their own. All bodies of requests that are being answered count against
    the budget.
    """

    def __init__(self, app: ASGIApp, limits: Limits, budget: Budget, larger: Mapping[str, int] | None = None) -> None:
        self.app, self.limits, self.budget, self.larger = app, limits, budget, larger or {}

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
        n_bytes = n_held = 0
        times = HELD_TIMES_LONG if path == LONG_TEXTS else HELD_TIMES
        client = scope["client"][0] if scope.get("client") else None

        async def counted() -> Message:
            nonlocal n_bytes, n_held
            message = await receive()
            n_new = len(message.get("body", b""))
            n_bytes += n_new
            if n_bytes > most:
                raise HTTPException(413, error.message)
            try:
                self.budget.take(times * n_new, client)
            except NoRoom as no_room:
                raise HTTPException(429, as_api_error(no_room).message) from None
            n_held += times * n_new
            return message

        try:
            await self.app(scope, counted, send)
        finally:
            self.budget.give_back(n_held, client)
