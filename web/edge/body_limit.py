"""Refuses request bodies above the limit before anything reads them."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from model.errors import Busy

from ..api.errors import ApiError, as_api_error
from ..ask.table import QUESTIONS
from ..client import client_in
from ..request_path import path_of
from ..serving.budget import Budget, NoRoom
from ..serving.fair_pool import FairPool
from ..settings import BodyLimit, Limits

LARGE_BODY_BYTES = 32_768
BYTES_PER_SECOND = 1_000_000  # the rate at which one client's large bodies are passed on
MAX_WAITING_BODIES = 64


def ask_limits(limits: Limits) -> dict[str, BodyLimit]:
    """The limits of the questions that take larger bodies than usual, by path."""
    declared = {f"/v1{question.path}": question.body_limit for question in QUESTIONS if question.body_limit}
    return {
        path: replace(limit, max_bytes=max(limit.max_bytes, limits.max_body_bytes)) for path, limit in declared.items()
    }


class BodyLimitMiddleware:
    """Refuses bodies above the limit, whether or not they declare their length.

    ``limits_by_path`` maps paths to their own limits. All bodies of requests that are being answered count
    against the budget.
    """

    def __init__(self, app: ASGIApp, limits: Limits, budget: Budget, limits_by_path: Mapping[str, BodyLimit]) -> None:
        self.app, self.budget, self.limits_by_path = app, budget, limits_by_path
        self.usual = BodyLimit(limits.max_body_bytes)
        # A client's large bodies are passed on one by one, because parsing one blocks the event loop for everyone.
        self.large_bodies = FairPool(limits.max_connections, MAX_WAITING_BODIES, max_per_client=1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        limit = self.limits_by_path.get(path_of(scope), self.usual)
        too_large = ApiError(413, f"The body has more than {limit.max_bytes:,} bytes.", code="body_too_large")
        content_length = Headers(scope=scope).get("content-length", "")
        if content_length.isdigit() and int(content_length) > limit.max_bytes:
            await too_large.response()(scope, receive, send)
            return
        n_bytes = n_held = 0
        client = client_in(scope)

        async def counted() -> Message:
            nonlocal n_bytes, n_held
            message = await receive()
            n_new = len(message.get("body", b""))
            n_bytes += n_new
            if n_bytes > limit.max_bytes:
                raise too_large
            try:
                self.budget.take(limit.budget_factor * n_new, client)
            except NoRoom as error:
                raise as_api_error(error) from None
            n_held += limit.budget_factor * n_new
            if message["type"] == "http.request" and not message.get("more_body"):
                await self.wait(client, n_bytes)
            return message

        try:
            await self.app(scope, counted, send)
        finally:
            self.budget.give_back(n_held, client)

    async def wait(self, client: str | None, n_bytes: int) -> None:
        """Wait until a body that has arrived may be passed on."""
        if n_bytes < LARGE_BODY_BYTES:
            return
        try:
            place = await self.large_bodies.take_place(client)
        except Busy as error:
            raise as_api_error(error) from None
        asyncio.get_running_loop().call_later(n_bytes / BYTES_PER_SECOND, self.large_bodies.leave, place)
