"""Computations in turn: how many run at once, whose turn is next, and which are refused."""

import asyncio
import threading
from collections.abc import Callable
from contextvars import ContextVar

import pytest

from helpers import run_async
from helpers.gate import PATIENCE
from model.errors import Busy
from web.serving.fair_pool import FairPool, FairThreads

Job = Callable[[], None]


class Watched:
    """Jobs that are held until the test releases them, and the order in which they began."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.at_once = self.most = 0
        self.lock, self.going_on = threading.Lock(), threading.Event()

    def job(self, name: str) -> Job:
        def run() -> None:
            with self.lock:
                self.began.append(name)
                self.at_once += 1
                self.most = max(self.most, self.at_once)
            assert self.going_on.wait(PATIENCE)
            with self.lock:
                self.at_once -= 1

        return run


async def asked(pool: FairThreads, watched: Watched, names: str) -> list["asyncio.Task[None]"]:
    """A computation for each letter, which is also its client, once all have begun or wait."""
    tasks = [asyncio.create_task(pool.run(name, watched.job(name))) for name in names]
    await settled()
    return tasks


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_concurrency_is_limited_and_clients_take_turns() -> None:
    async def check() -> None:
        pool, watched = FairThreads(2, 100), Watched()
        tasks = await asked(pool, watched, "aaaaaabc")
        watched.going_on.set()
        await asyncio.gather(*tasks)
        assert watched.most == 2 and sorted(watched.began) == list("aaaaaabc")
        assert set(watched.began[2:5]) >= {"b", "c"}  # before most of those that came first
        assert not pool.active and not pool.queue

    run_async(check())


def test_places_per_client_are_limited() -> None:
    pool = FairPool(4, 100, max_per_client=2)
    places = [pool.join("a") for _ in range(5)]
    assert pool.active == {"a": 2}
    places += [pool.join("b") for _ in range(2)]
    assert pool.active == {"a": 2, "b": 2}  # at once, though others came before
    for place in places:
        assert place.is_held
        pool.leave(place)
    assert not pool.active and not pool.queue


def test_a_client_with_all_its_places_keeps_nobody_from_a_free_one() -> None:
    pool = FairPool(2, 100, max_per_client=1)
    first, _ = pool.join("a"), pool.join("b")
    waiting_b, waiting_a = pool.join("b"), pool.join("a")
    pool.leave(first)
    assert waiting_a.is_held and not waiting_b.is_held


def test_full_queue_refuses_the_busiest_client() -> None:
    async def check() -> None:
        pool, watched = FairThreads(1, 3), Watched()
        tasks = await asked(pool, watched, "aaaa")
        with pytest.raises(Busy):
            await pool.run("a", watched.job("a"))
        with pytest.raises(Busy):
            pool.check_room("a")
        pool.check_room("b")
        tasks += await asked(pool, watched, "b")
        watched.going_on.set()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(each) for each in ended] == [*[type(None)] * 3, Busy, type(None)]

    run_async(check())


def test_running_work_is_not_refused() -> None:
    async def check() -> None:
        pool, watched = FairThreads(1, 1), Watched()
        tasks = await asked(pool, watched, "a")
        tasks += [asyncio.create_task(pool.resume("a", watched.job("a"))) for _ in range(3)]
        await settled()
        tasks += await asked(pool, watched, "bc")  # one place in the line
        watched.going_on.set()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(each) for each in ended] == [*[type(None)] * 5, Busy]

    run_async(check())


def test_a_place_is_taken_until_its_thread_ends() -> None:
    """However often a client comes and leaves."""

    async def check() -> None:
        pool, watched = FairThreads(1, 100), Watched()
        for _ in range(5):
            (task,) = await asked(pool, watched, "a")
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert watched.began == ["a"] and not pool.queue
        watched.going_on.set()
        await pool.run("b", watched.job("b"))
        assert watched.began == ["a", "b"] and watched.most == 1 and not pool.active

    run_async(check())


def test_cancelling_while_being_started() -> None:
    async def check() -> None:
        pool = FairThreads(1, 100)
        async with pool.place("a"):
            waiting = asyncio.create_task(pool.run("b", lambda: None))
            await settled()
        waiting.cancel()  # it has been given the place, but has not been told yet
        await asyncio.gather(waiting, return_exceptions=True)
        assert not pool.active
        await pool.run("c", lambda: None)

    run_async(check())


def test_an_error_is_handed_on_and_frees_the_place() -> None:
    visitor: ContextVar[str] = ContextVar("visitor", default="")

    def fail() -> None:
        raise ValueError(visitor.get())

    async def check() -> None:
        pool = FairThreads(1, 0)
        visitor.set("whose cookie it is")
        for _ in range(3):
            with pytest.raises(ValueError, match="whose cookie it is"):
                await pool.run("a", fail)
            await settled()

    run_async(check())
