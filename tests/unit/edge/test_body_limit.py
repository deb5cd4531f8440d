"""Large bodies of one client are passed on one by one."""

import asyncio
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from web.edge import body_limit
from web.edge.body_limit import LARGE_BODY_BYTES, BodyLimitMiddleware
from web.serving.budget import Budget
from web.settings import Limits

N_BYTES = 2 * LARGE_BODY_BYTES


class Passed:
    """An app that notes whose bodies it has received."""

    def __init__(self) -> None:
        self.clients: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        self.clients.append(scope["client"][0])


async def nothing(_message: Message) -> None:
    raise AssertionError("nothing is sent")


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_large_bodies_of_one_client_come_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_limit, "MAX_WAITING_BODIES", 2)
    ended = asyncio.Event()

    def call_later(_seconds: float, end: Any, *arguments: Any) -> None:
        asyncio.ensure_future(ended.wait()).add_done_callback(lambda _: end(*arguments))

    async def run() -> None:
        monkeypatch.setattr(asyncio.get_running_loop(), "call_later", call_later)
        passed, budget = Passed(), Budget(10**9)
        app = BodyLimitMiddleware(passed, Limits(), budget, {})

        def post(client: str, n_bytes: int = N_BYTES) -> "asyncio.Task[None]":
            async def receive() -> Message:
                return {"type": "http.request", "body": b"x" * n_bytes}

            scope = {"type": "http", "method": "POST", "path": "/", "client": (client, 0), "headers": []}
            return asyncio.ensure_future(app(scope, receive, nothing))

        tasks = [post("a"), post("a"), post("a"), post("b"), post("a", n_bytes=1_000)]
        await settle()
        assert passed.clients == ["a", "b", "a"]  # two large ones wait
        (refused,) = await asyncio.gather(post("a"), return_exceptions=True)
        assert isinstance(refused, body_limit.ApiError) and refused.status_code == 429
        ended.set()
        await asyncio.gather(*tasks)
        assert passed.clients == ["a", "b", "a", "a", "a"] and not budget.held

    asyncio.run(run())


def test_a_body_that_is_declared_too_large_is_refused_unread() -> None:
    sent: list[Message] = []

    async def unread() -> Message:
        raise AssertionError("the body is read")

    async def send(message: Message) -> None:
        sent.append(message)

    limits = Limits()
    headers = [(b"content-length", str(limits.max_body_bytes + 1).encode())]
    scope = {"type": "http", "method": "POST", "path": "/", "client": ("a", 0), "headers": headers}
    asyncio.run(BodyLimitMiddleware(Passed(), limits, Budget(10**9), {})(scope, unread, send))
    assert sent[0]["status"] == 413
