"""Turns at parsing: a client that uses much time waits, others do not, and its connections take shares."""

from collections.abc import Callable
from typing import Any

import pytest

from web.edge import parse_shares as module
from web.edge.parse_shares import BURST_SECONDS, SHARE, ParseShares


class Clock:
    """A clock and an event loop in one."""

    def __init__(self) -> None:
        self.now = 100.0
        self.later: list[tuple[float, Callable[..., None], Any]] = []

    def monotonic(self) -> float:
        return self.now

    def call_later(self, seconds: float, call: Callable[..., None], *given: Any) -> None:
        self.later.append((self.now + seconds, call, given))

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        while self.later and min(at for at, *_ in self.later) <= until:
            at, call, given = min(self.later, key=lambda each: each[0])
            self.later.remove((at, call, given))
            self.now = max(self.now, at)
            call(*given)
        self.now = max(self.now, until)


class Connection:
    """Has pieces to parse, each of which takes some seconds."""

    def __init__(self, shares: ParseShares, clock: Any, payer: str, n_pieces: int, seconds: float = 0.005) -> None:
        self.shares, self.clock, self.payer, self.n_left, self.seconds = shares, clock, payer, n_pieces, seconds
        self.parsed_at: list[float] = []

    def parse_on(self) -> None:
        while self.n_left and self.shares.may_parse(self, self.clock):
            self.n_left -= 1
            self.parsed_at.append(self.clock.now)
            self.clock.now += self.seconds
            self.shares.charge(self.payer, self.seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def test_a_client_gets_its_share_and_others_do_not_wait(clock: Clock) -> None:
    shares, began = ParseShares(), clock.now
    many = [Connection(shares, clock, "many", 1_000) for _ in range(50)]
    for connection in many:
        connection.parse_on()
    assert clock.now - began < 2 * BURST_SECONDS  # all of them together
    other = Connection(shares, clock, "other", 2)
    other.parse_on()
    assert not other.n_left
    began = clock.now
    clock.run(10.0)
    used = sum(each.seconds * sum(at >= began for at in each.parsed_at) for each in many)
    assert used == pytest.approx(SHARE * 10.0, rel=0.1)
    counts = [len(each.parsed_at) for each in many]
    assert max(counts) < 3 * min(counts)  # it is the client's connections that take shares


def test_little_work_is_never_delayed(clock: Clock) -> None:
    shares = ParseShares()
    for _ in range(1_000):
        connection = Connection(shares, clock, "a", 1, seconds=0.0001)
        connection.parse_on()
        assert not connection.n_left
        clock.now += 0.001


def test_everything_is_parsed_and_forgotten(clock: Clock) -> None:
    shares = ParseShares()
    connections = [Connection(shares, clock, "a", 20) for _ in range(5)]
    for connection in connections:
        connection.parse_on()
    clock.run(10.0)
    assert not any(each.n_left for each in connections) and not shares.waiting
    shares.forget()
    assert not shares.used
