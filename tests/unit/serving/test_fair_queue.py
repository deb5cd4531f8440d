"""The queue serves clients in turn, and each client in the order of its requests."""

from dataclasses import dataclass

import pytest

from model.errors import Busy
from model.serving.fair_queue import FairQueue


@dataclass(eq=False)
class Item:
    client: str
    number: int = 0


def names(queue: FairQueue[Item], active: dict[str, int] | None = None) -> list[str]:
    """The order in which clients are served if none leaves."""
    counts = dict(active or {})
    taken = []
    while len(queue):
        item = queue.take(counts)
        counts[item.client] = counts.get(item.client, 0) + 1
        taken.append(f"{item.client}{item.number}")
    return taken


def filled(text: str) -> FairQueue[Item]:
    queue: FairQueue[Item] = FairQueue()
    for word in text.split():
        queue.append(Item(word[0], int(word[1:])))
    return queue


def test_first_come_first_served_within_a_client() -> None:
    assert names(filled("a1 a2 a3")) == ["a1", "a2", "a3"]


def test_clients_take_turns() -> None:
    assert names(filled("a1 a2 a3 a4 b1 c1 c2")) == ["a1", "b1", "c1", "a2", "c2", "a3", "a4"]


def test_client_with_the_fewest_running_texts_is_next() -> None:
    assert names(filled("a1 b1 b2"), {"a": 2, "b": 0}) == ["b1", "b2", "a1"]


def test_preempted_text_returns_to_the_front() -> None:
    queue = filled("a1 b1")
    queue.put_back(Item("a", 0))
    assert [f"{item.client}{item.number}" for item in queue] == ["a0", "a1", "b1"]
    assert len(queue) == 3


def test_removing_a_waiting_text() -> None:
    queue = filled("a1 a2 b1")
    for item in list(queue):
        if item.number == 1:
            queue.remove(item)
    assert names(queue) == ["a2"]
    with pytest.raises(ValueError, match="empty"):
        queue.next_client({})


def test_the_newest_of_the_client_with_most_makes_room() -> None:
    queue, counts = filled("a1 a2 a3 b1"), {"a": 3, "b": 1}
    assert [item.number for item in queue.to_refuse("c", 2, counts)] == [3, 2]
    with pytest.raises(Busy):
        queue.to_refuse("c", 3, counts)  # then nobody has more than the newcomer
    with pytest.raises(Busy):
        queue.to_refuse("a", 1, counts)


def test_a_client_whose_items_may_not_be_refused_protects_no_other() -> None:
    queue = filled("a1 b1 b2")
    (refused,) = queue.to_refuse("c", 1, {"a": 9, "b": 2}, lambda item: item.client != "a")
    assert (refused.client, refused.number) == ("b", 2)
