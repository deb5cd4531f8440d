"""How many bytes may be held, by all and by one, and answers that wait for whoever has the ticket."""

import re

import pytest

from model.serving.engine import Busy
from web.serving.budget import Budget, NoRoom
from web.serving.tickets import Tickets


def test_what_is_held_is_given_back() -> None:
    budget = Budget(100)
    with budget.hold(30, "a"), budget.hold(20, "a"):
        assert budget.held == 50
        with budget.hold(50, "b"):
            assert budget.held == 100
    assert budget.held == 0 and not budget.clients


def test_no_more_than_there_is_and_half_for_one() -> None:
    budget = Budget(100)
    with pytest.raises(NoRoom):
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


def test_an_error_gives_back() -> None:
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


def test_a_ticket_is_redeemed_once_and_in_its_session() -> None:
    tickets = Tickets(Budget(1_000))
    ticket = tickets.leave(b"[1,2]", "session", "a")
    sent = b'data: {"data":["%s"]}' % ticket.encode()
    assert tickets.redeem(sent, "another") == sent
    assert tickets.redeem(sent, "session") == b'data: {"data":[[1,2]]}'
    assert tickets.redeem(sent, "session") == sent
    assert not tickets.budget.held and not tickets.sessions


def test_what_is_not_collected_is_forgotten() -> None:
    tickets = Tickets(Budget(1_000))
    first, second = (tickets.leave(b"x" * 100, "session", "a") for _ in range(2))
    assert first != second and re.fullmatch("headscope-answer-[0-9a-f]{32}", first)
    assert tickets.budget.held == 200
    tickets.forget("session")
    tickets.forget("session")
    assert not tickets.budget.held
    with pytest.raises(NoRoom):
        tickets.leave(b"x" * 600, "session", "a")
    assert not tickets.sessions
