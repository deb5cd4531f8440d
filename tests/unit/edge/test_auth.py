"""A wrong key is refused, and counted by client; the right one always works."""

import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from helpers import run_async
from web.api.auth import MAX_CLIENTS, MAX_REFUSALS, ApiKeyMiddleware, Refusals
from web.api.errors import ApiError

KEY = "a-key-of-23-characters."
Ask = Callable[..., Awaitable[httpx.Response]]


class Clock:
    """Time that passes only when a test advances it."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@asynccontextmanager
async def locked(clock: Clock) -> AsyncIterator[Ask]:
    """A function that sends requests to an app behind the key."""
    launched = threading.Event()
    launched.set()
    app = ApiKeyMiddleware(PlainTextResponse("inside"), KEY, launched, now=clock)

    async def send(
        key: str | None = None, address: str = "192.0.2.1", cookie: str = "", form: str = ""
    ) -> httpx.Response:
        transport = httpx.ASGITransport(app, client=(address, 1))
        headers = ({"Authorization": f"Bearer {key}"} if key else {}) | ({"Cookie": cookie} if cookie else {})
        async with httpx.AsyncClient(transport=transport, base_url="http://x", headers=headers) as client:
            return await (client.post("/key", data={"key": form}) if form else client.get("/"))

    yield send


def test_a_clients_wrong_keys_are_bounded_and_its_right_ones_are_not() -> None:
    async def requests() -> None:
        clock = Clock()
        async with locked(clock) as send:
            cookie = (await send(form=KEY)).headers["set-cookie"].partition(";")[0]
            for i in range(MAX_REFUSALS):
                answer = await (send(f"wrong {i}") if i % 2 else send(form=f"wrong {i}"))
                assert answer.status_code == 401
            name = cookie.partition("=")[0]
            for answer in (await send("wrong"), await send(form="wrong"), await send(cookie=f"{name}=wrong")):
                assert answer.status_code == 429 and answer.headers["retry-after"] == "20"
                assert "wrong keys have come from your address" in answer.text
            right = [await send(KEY), await send(cookie=cookie), await send("wrong", cookie=cookie)]
            assert [answer.status_code for answer in right] == [200] * 3
            assert (await send(form=KEY)).status_code == 303
            assert (await send("wrong", "192.0.2.2")).status_code == 401  # another client
            assert (await send()).status_code == 401  # a missing key is not a guess
            clock.seconds += 20
            assert (await send("wrong")).status_code == 401

    run_async(requests())


def test_the_cookies_of_another_server_on_this_host_are_ignored() -> None:
    async def requests() -> None:
        async with locked(Clock()) as send:
            cookie = (await send(form=KEY)).headers["set-cookie"].partition(";")[0]
            other = "headscope_12345678=" + "0" * 64
            for _ in range(MAX_REFUSALS + 1):
                assert (await send(cookie=other)).status_code == 401
            assert (await send("wrong")).status_code == 401
            for before in (f"{other}; a=b", 'a="b', "x" + cookie):
                assert (await send(cookie=f"{before}; {cookie}")).status_code == 200
            assert (await send(cookie="x" + cookie)).status_code == 401

    run_async(requests())


def test_memory_is_bounded() -> None:
    refusals = Refusals(Clock())
    for i in range(MAX_CLIENTS + 100):
        refusals.count(str(i), ApiError(401, "The API key is wrong."))
    assert len(refusals.counts) == MAX_CLIENTS


def test_the_start_of_the_server_passes() -> None:
    """Gradio's MCP server begins with it; such a scope has no path."""
    seen: list[str] = []

    async def inside(scope: Scope, _receive: Receive, _send: Send) -> None:
        seen.append(scope["type"])

    async def nothing(*_: object) -> Any:
        raise AssertionError

    run_async(ApiKeyMiddleware(inside, KEY, threading.Event())({"type": "lifespan"}, nothing, nothing))
    assert seen == ["lifespan"]
