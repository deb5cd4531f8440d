"""The bytes that all clients and one client may hold, and uncollected answers."""

import asyncio
import re
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest

from model.errors import Busy
from web.serving import budget as budget_module
from web.serving import process_memory
from web.serving.budget import DROP, SLOW_SECONDS, Budget, NoRoom
from web.serving.process_memory import share_heaps, trim_heap
from web.serving.uncollected_answers import UncollectedAnswers


def test_held_memory_is_given_back() -> None:
    budget = Budget(100)
    with budget.hold(30, "a"), budget.hold(20, "a"):
        assert budget.held == 50
        with budget.hold(50, "b"):
            assert budget.held == 100
    assert budget.held == 0 and not budget.clients


def test_budget_and_share_per_client() -> None:
    budget = Budget(100)
    with pytest.raises(NoRoom, match="a client may hold 0 MB"):
        budget.take(51, "a")
    budget.take(50, "a")
    budget.take(40, "b")
    with pytest.raises(Busy):  # so it is answered like a full queue
        budget.take(11, "c")
    budget.take(10, "c")
    assert budget.held == 100 and set(budget.clients) == {"a", "b", "c"}


def test_a_refusal_leaves_nothing_behind() -> None:
    budget = Budget(100)
    for client in range(1_000):
        with pytest.raises(NoRoom):
            budget.take(51, client)
    assert not budget.clients and not budget.held


def test_errors_give_memory_back() -> None:
    budget = Budget(100)
    with pytest.raises(KeyError), budget.hold(30, "a"):
        raise KeyError
    assert not budget.held


def test_memory_is_trimmed_when_much_was_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    budget, trimmed = Budget(10**9), []
    monkeypatch.setattr("web.serving.budget.trim_heap", lambda: trimmed.append(True))
    budget.trim()
    with budget.hold(10**8, "a"):
        budget.trim()
    assert not trimmed
    budget.trim()
    budget.trim()
    assert len(trimmed) == 1


def test_an_answer_is_filled_in_once_and_in_its_session() -> None:
    answers = UncollectedAnswers(Budget(1_000))
    placeholder = answers.store(b"[1,2]", "session", "a")
    sent = b'data: {"data":["%s"]}' % placeholder.encode()
    assert answers.fill_in(sent, "another") == sent
    assert answers.fill_in(sent, "session") == b'data: {"data":[[1,2]]}'
    assert answers.fill_in(sent, "session") == sent
    assert not answers.budget.held and not answers.sessions


def test_uncollected_answers_expire() -> None:
    answers = UncollectedAnswers(Budget(1_000))
    first, second = (answers.store(b"x" * 100, "session", "a") for _ in range(2))
    assert first != second and re.fullmatch("headscope-answer-[0-9a-f]{32}", first)
    assert answers.budget.held == 200
    answers.drop("session")
    answers.drop("session")
    assert not answers.budget.held
    with pytest.raises(NoRoom):
        answers.store(b"x" * 600, "session", "a")
    assert not answers.sessions


def test_answers_are_credited_to_the_client_that_was_charged() -> None:
    """A browser may change between IPv4 and IPv6 within one session."""
    answers = UncollectedAnswers(Budget(1_000))
    placeholders = [answers.store(b"x" * n, "session", client) for n, client in ((10, "a"), (20, "b"), (40, "b"))]
    assert answers.budget.clients == {"a": 10, "b": 60}
    answers.fill_in(f'"{placeholders[1]}"'.encode(), "session")
    assert answers.budget.clients == {"a": 10, "b": 40}
    answers.drop("session")
    assert not answers.budget.clients


def test_memory_is_trimmed_once_nothing_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    budget, trimmed, now = Budget(10**9), [], [100.0]
    monkeypatch.setattr("web.serving.budget.trim_heap", lambda: trimmed.append(True))
    monkeypatch.setattr("web.serving.budget.time.monotonic", lambda: now[0])
    with budget.hold(1_000, "a"):
        budget.trim()
    assert not trimmed
    budget.trim()
    assert len(trimmed) == 1
    with budget.hold(1_000, "a"):
        now[0] += 1
    budget.trim()
    assert len(trimmed) == 1  # not so often
    now[0] += 5
    budget.trim()
    assert len(trimmed) == 2


def test_two_heaps_for_all_threads_where_the_c_library_is_glibc(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, tuple[int, ...]]] = []

    def of_glibc(name: str) -> Callable[..., None]:
        return lambda *given: asked.append((name, given))

    monkeypatch.setattr(process_memory, "of_glibc", of_glibc)
    share_heaps()
    trim_heap()
    assert asked == [("mallopt", (-8, 2)), ("malloc_trim", (0,))]
    monkeypatch.setattr(process_memory, "of_glibc", lambda _: None)
    share_heaps()
    trim_heap()


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(budget_module, "time", clock)
    return clock


def sending_to(*clients: str, seconds: float, asks: Callable[[Budget], None], clock: Clock) -> list[str]:
    """The clients that lose the answer of 25 bytes which they read, when ``asks`` uses a budget of 100 bytes.

    Each has waited for its client for some ``seconds``.
    """
    budget, dropped = Budget(100), list[str]()

    async def run() -> None:
        with ExitStack() as stack:
            for client in clients:
                scope: Any = {"extensions": {DROP: partial(dropped.append, client)}}
                sending = stack.enter_context(budget.hold_while_sent(25, scope, client))
                stack.enter_context(sending.waiting())
            clock.now += seconds
            asks(budget)
            await asyncio.sleep(0)
            n_left = len(clients) - len(dropped)
            assert budget.held == 25 * n_left + budget.clients["new"]
        assert budget.held == sum(budget.clients.values()) and set(budget.clients) <= {"new"}

    asyncio.run(run())
    return dropped


def test_slow_readers_give_way_to_clients_that_hold_less(clock: Clock) -> None:
    held = ["a", "a", "b", "b"]
    assert sending_to(*held, seconds=10, asks=lambda budget: budget.take(20, "new"), clock=clock) in (["a"], ["b"])


@pytest.mark.parametrize(("seconds", "n_bytes"), [(SLOW_SECONDS / 2, 20), (10, 25)])
def test_readers_do_not_give_way_while_they_read_or_to_clients_that_would_hold_as_much(
    seconds: float, n_bytes: int, clock: Clock
) -> None:
    def asks(budget: Budget) -> None:
        with pytest.raises(NoRoom):
            budget.take(n_bytes, "new")

    assert sending_to("a", "b", "c", "d", seconds=seconds, asks=asks, clock=clock) == []
