"""Clients take turns at loading the page."""

import asyncio
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from web.edge.page_loads import PageLoadMiddleware, is_of_page


class Page:
    """Answers once it is told to; notes which clients it is making the page for."""

    def __init__(self) -> None:
        self.active: list[str] = []
        self.go_on = asyncio.Semaphore(0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = scope["client"][0]
        self.active.append(client)
        await self.go_on.acquire()
        self.active.remove(client)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.Event().wait()  # the client reads on for ever


def scope_of(client: str, path: str = "/", method: str = "GET") -> dict[str, Any]:
    return {"type": "http", "method": method, "path": path, "client": (client, 0), "headers": []}


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_a_client_waits_only_for_itself_and_not_for_its_readers() -> None:
    async def run() -> None:
        page, statuses = Page(), list[int]()
        app = PageLoadMiddleware(page, max_waiting=3)

        async def receive() -> Message:
            raise AssertionError("nothing is read")

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(app(scope_of("many"), receive, send)) for _ in range(4)]
            await settle()
            assert page.active == ["many"]
            asked.append(group.create_task(app(scope_of("other"), receive, send)))
            await settle()
            assert page.active == ["many", "other"] and not statuses
            asked.append(group.create_task(app(scope_of("many"), receive, send)))
            await settle()
            assert statuses == [429]  # three wait already
            for n_answered in range(1, 6):
                page.go_on.release()
                await settle()
                assert statuses == [429] + [200] * n_answered
            assert not app.places.active and not app.places.queue
            for task in asked:
                task.cancel()

    asyncio.run(run())


def test_an_aborted_request_gives_its_turn_back() -> None:
    async def run() -> None:
        page: Any = Page()
        app = PageLoadMiddleware(page, max_waiting=3)
        tasks = [asyncio.create_task(app(scope_of("a"), page, page)) for _ in range(2)]
        await settle()
        for task in tasks:
            task.cancel()
        await settle()
        assert not app.places.active and not app.places.queue

    asyncio.run(run())


@pytest.mark.parametrize("path", ["/", "/config", "/theme.css", "/js/look/main.mjs", "/gradio_api/info"])
def test_answers_of_the_page_take_turns(path: str) -> None:
    assert is_of_page(path)


@pytest.mark.parametrize("path", ["/v1/models", "/look/a/rows", "/gradio_api/queue/data", "/health"])
def test_answers_that_stream_or_compute_in_turn_do_not(path: str) -> None:
    assert not is_of_page(path)
