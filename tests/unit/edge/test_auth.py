"""Wrong keys delay the client that sends them, but no client that has used the right one."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from helpers import run
from web.api.auth import MAX_COOKIES, MAX_REMEMBERED, MAX_WAIT, MAX_WAITING, ApiKeyMiddleware, WrongKeys

KEY = "open-sesame"


class Clock:
    """Time that passes only when a test advances it."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self.waits: list[float] = []  # what was slept for
        self.held = asyncio.Event()  # set: nobody sleeps
        self.held.set()

    def __call__(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await self.held.wait()


Ask = Callable[..., Awaitable[httpx.Response]]


@asynccontextmanager
async def locked(clock: Clock) -> AsyncIterator[Ask]:
    """A function that sends requests to an app behind the key."""
    launched = threading.Event()
    launched.set()
    app = ApiKeyMiddleware(PlainTextResponse("inside"), KEY, launched, now=clock)
    app.sleep = clock.sleep  # type: ignore[method-assign]

    async def send(
        key: str | None = None, address: str = "192.0.2.1", cookie: str = "", form: str = ""
    ) -> httpx.Response:
        transport = httpx.ASGITransport(app, client=(address, 1))
        headers = ({"Authorization": f"Bearer {key}"} if key else {}) | ({"Cookie": cookie} if cookie else {})
        async with httpx.AsyncClient(transport=transport, base_url="http://x", headers=headers) as client:
            return await (client.post("/key", data={"key": form}) if form else client.get("/"))

    yield send


def test_each_wrong_key_waits_twice_as_long() -> None:
    async def requests() -> None:
        clock = Clock()
        async with locked(clock) as send:
            for i in range(7):
                answer = await (send(f"wrong {i}") if i % 2 else send(form=f"wrong {i}"))
                assert answer.status_code == 401
            assert clock.waits == [1, 2, 4, 8, 16, MAX_WAIT, MAX_WAIT]
            assert (await send("wrong", "192.0.2.2")).status_code == 401
            assert clock.waits[-1] == 1  # another client
            assert (await send(KEY)).status_code == 200 and len(clock.waits) == 8  # the right key never waits
            clock.seconds += 3_601
            await send("wrong")
            assert clock.waits[-1] == 1
            assert (await send()).status_code == 401 and len(clock.waits) == 9  # a missing key is not a guess

    run(requests())


def test_while_four_wait_unknown_keys_are_not_looked_at() -> None:
    async def requests() -> None:
        clock = Clock()
        async with locked(clock) as send:
            entered = await send(form=KEY)
            cookie = entered.headers["set-cookie"].partition(";")[0]
            assert entered.status_code == 303
            assert (await send(KEY, "192.0.2.3")).status_code == 200
            clock.held.clear()
            wrong = [asyncio.create_task(send(f"wrong {i}")) for i in range(MAX_WAITING)]
            while len(clock.waits) < MAX_WAITING:
                await asyncio.sleep(0)
            for answer in (
                await send("another"),
                await send(form="another"),
                await send(cookie="headscope_00000000=x"),
            ):
                assert answer.status_code == 429 and int(answer.headers["retry-after"]) == 16
                assert "not checked" in answer.text
            right_but_new = [await send(KEY, "192.0.2.1"), await send(KEY, "192.0.2.9")]
            assert [answer.status_code for answer in right_but_new] == [200, 200]  # the form has proven this key
            assert (await send(cookie=cookie)).status_code == 200  # a client that was in is not locked out
            assert (await send(KEY, "192.0.2.3")).status_code == 200
            wrong += [asyncio.create_task(send(f"wrong {i}", "192.0.2.3")) for i in range(MAX_WAITING)]
            while len(clock.waits) < 2 * MAX_WAITING:
                await asyncio.sleep(0)
            assert (
                await send(cookie=cookie, address="192.0.2.3")
            ).status_code == 429  # right, but not proven for that client
            clock.held.set()
            assert {answer.status_code for answer in await asyncio.gather(*wrong)} == {401}
            assert (await send(cookie=cookie, address="192.0.2.3")).status_code == 200

    run(requests())


def test_the_cookie_of_another_server_is_counted_once() -> None:
    """Browsers send it with every request; a list of made-up cookies is a list of guesses."""

    async def requests() -> None:
        clock = Clock()
        async with locked(clock) as send:
            other = "headscope_12345678=" + "0" * 64
            for _ in range(3):
                assert (await send(cookie=other)).status_code == 401
            assert clock.waits == [1]
            cookie = (await send(form=KEY)).headers["set-cookie"].partition(";")[0]
            assert (await send(cookie=f"{other}; a=b; {cookie}")).status_code == 200
            guesses = [f"headscope_{i:08x}={i}" for i in range(MAX_COOKIES)]
            assert (await send(cookie="; ".join(guesses))).status_code == 401
            assert clock.waits == [1, MAX_WAIT]
            assert (await send(cookie="; ".join([*guesses, cookie]))).status_code == 401  # not looked at

    run(requests())


def test_memory_is_bounded() -> None:
    wrong = WrongKeys(Clock())
    for i in range(MAX_REMEMBERED + 100):
        wrong.add(str(i))
    assert len(wrong.wrong) == MAX_REMEMBERED and not wrong.count("0")


def test_the_start_of_the_server_passes() -> None:
    """Gradio's MCP server begins with it; such a scope has no path."""
    seen: list[str] = []

    async def inside(scope: Scope, _receive: Receive, _send: Send) -> None:
        seen.append(scope["type"])

    async def nothing(*_: object) -> Any:
        raise AssertionError

    run(ApiKeyMiddleware(inside, KEY, threading.Event())({"type": "lifespan"}, nothing, nothing))
    assert seen == ["lifespan"]
