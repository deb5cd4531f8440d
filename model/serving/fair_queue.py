"""A queue that is fair to clients, not to requests."""

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Generic, Protocol, TypeVar


class Waiting(Protocol):
    @property
    def client(self) -> Hashable:
        """The owner: texts of one client share its turns."""


T = TypeVar("T", bound=Waiting)


class FairQueue(Generic[T]):
    """First come, first served within each client.

    The next client is the one with the fewest active texts, so that a hundred requests from one client do not delay
    others; among equals, the client that has waited longest since its last turn.
    """

    def __init__(self) -> None:
        self.clients: OrderedDict[Hashable, deque[T]] = OrderedDict()
        self.length = 0  # a plain number, because other threads read it

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[T]:
        for waiting in self.clients.values():
            yield from waiting

    def append(self, item: T) -> None:
        self.clients.setdefault(item.client, deque()).append(item)
        self.length += 1

    def put_back(self, item: T) -> None:
        """Put back an item that was active; it is the next one of its client."""
        self.clients.setdefault(item.client, deque()).appendleft(item)
        self.length += 1

    def next_client(self, at_work: Mapping[Hashable, int]) -> Hashable:
        """The client whose turn it is; ``at_work`` counts active texts by client. Raises ``ValueError`` if the queue is
        empty.
        """
        return min(self.clients, key=lambda client: at_work.get(client, 0))

    def take(self, at_work: Mapping[Hashable, int]) -> T:
        """Remove and return the next item."""
        client = self.next_client(at_work)
        item = self.clients[client].popleft()
        self.length -= 1
        self.clients.move_to_end(client)
        if not self.clients[client]:
            del self.clients[client]
        return item

    def newest_of_most(self, newcomer: Hashable, counts_for: Callable[[T], bool] = lambda _: True) -> T | None:
        """The newest item of the client with the most waiting, or None if that would be the ``newcomer`` with one more.

        Only items accepted by ``counts_for`` are considered.
        """
        found = {client: [each for each in waiting if counts_for(each)] for client, waiting in self.clients.items()}
        counts = Counter({client: len(items) for client, items in found.items()})
        counts[newcomer] += 1
        most, _ = max(counts.items(), key=lambda item: (item[1], item[0] == newcomer))
        return None if most == newcomer else found[most][-1]

    def remove(self, item: T) -> None:
        waiting = self.clients[item.client]
        waiting.remove(item)
        self.length -= 1
        if not waiting:
            del self.clients[item.client]
