"""Refuses request bodies above the limit before anything reads them."""

import asyncio
import time
from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..ask.table import QUESTIONS
from ..client import client_in
from ..serving.budget import Budget, NoRoom
from ..settings import Limits
from .auth import path_of
from .errors import RefusedBody, as_api_error

HELD_TIMES = 2  # a body, and what is read from it
LARGE_BODY_BYTES = 32_768
BYTES_PER_SECOND = 1_000_000  # of one client's large bodies
MOST_DELAY = 5.0  # seconds
OF_ASK = {f"/v1{question.path}": question.body_limit for question in QUESTIONS if question.body_limit}


class LargeBodyQueue:
    """Large bodies of one client are handed on one after the other: reading one keeps everybody's loop busy."""

    def __init__(self) -> None:
        self.free_at: dict[str | None, float] = {}  # when the next large body of a client may be handed on

    def delay(self, client: str | None, n_bytes: int) -> float:
        """Seconds to wait with this one; raises ``NoRoom`` where that is too long."""
        now = time.monotonic()
        if n_bytes < LARGE_BODY_BYTES:
            return 0.0
        self.free_at = {other: at for other, at in self.free_at.items() if at > now}
        delay = self.free_at.get(client, now) - now
        if delay > MOST_DELAY:
            raise NoRoom
        self.free_at[client] = now + delay + n_bytes / BYTES_PER_SECOND
        return delay


class BodyLimitMiddleware:
    """Refuses bodies above the limit, whether they say how long they are or not.

    ``larger`` names the paths with a limit of their own. All bodies of requests that are being answered count against
    the budget.
    """

    def __init__(self, app: ASGIApp, limits: Limits, budget: Budget, larger: Mapping[str, int] | None = None) -> None:
        self.app, self.limits, self.budget, self.larger = app, limits, budget, larger or {}
        self.large_bodies = LargeBodyQueue()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path, most = path_of(scope), self.limits.max_body_bytes
        own = OF_ASK.get(path)
        if own:
            most = max(most, own.max_bytes)
        most = self.larger.get(path, most)
        too_large = RefusedBody(413, f"The body has more than {most:,} bytes.", "body_too_large")
        said = Headers(scope=scope).get("content-length", "")
        if said.isdigit() and int(said) > most:
            await as_api_error(too_large).response()(scope, receive, send)
            return
        n_bytes = n_held = 0
        times = own.held_times if own else HELD_TIMES
        client = client_in(scope)

        async def counted() -> Message:
            nonlocal n_bytes, n_held
            message = await receive()
            n_new = len(message.get("body", b""))
            n_bytes += n_new
            if n_bytes > most:
                raise too_large
            try:
                self.budget.take(times * n_new, client)
            except NoRoom as error:
                raise refused(error) from None
            n_held += times * n_new
            if message["type"] == "http.request" and not message.get("more_body"):
                await self.wait(client, n_bytes)
            return message

        try:
            await self.app(scope, counted, send)
        finally:
            self.budget.give_back(n_held, client)

    async def wait(self, client: str | None, n_bytes: int) -> None:
        """Until a body that has arrived may be handed on."""
        try:
            delay = self.large_bodies.delay(client, n_bytes)
        except NoRoom as error:
            raise refused(error) from None
        if delay:
            await asyncio.sleep(delay)


def refused(error: NoRoom) -> RefusedBody:
    told = as_api_error(error)
    return RefusedBody(told.status, told.message, told.code)
