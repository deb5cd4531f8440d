"""Which visitor a request is for."""

import asyncio

import pytest
from starlette.types import Message, Receive, Scope, Send

from web.serving.served_models import VISITOR
from web.training.visitor_cookie import COOKIE, VisitorMiddleware

TOKEN = "x" * 32


@pytest.mark.parametrize(
    ("path", "expected"), [("/look/landing", TOKEN), ("/v1/lens/head", TOKEN), ("/v1/tokenize", "")]
)
def test_a_request_is_for_the_visitor_of_its_own_cookie_alone(path: str, expected: str) -> None:
    """uvicorn starts the task of a pipelined request in the context of the request before it."""
    seen = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(VISITOR.get())

    async def receive() -> Message:
        raise AssertionError("the cookie is in the headers")

    async def send(message: Message) -> None: ...

    async def after_another_request() -> None:
        VISITOR.set("y" * 32)
        headers = [(b"cookie", f"{COOKIE}={TOKEN}".encode())]
        await VisitorMiddleware(app)({"type": "http", "path": path, "headers": headers}, receive, send)

    asyncio.run(after_another_request())
    assert seen == [expected]
