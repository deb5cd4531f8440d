"""Who comes next: a waiting line that is fair to clients, not to requests."""

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator, Mapping
from typing import Generic, Protocol, TypeVar


class Waiting(Protocol):
    @property
    def client(self) -> Hashable:
        """Whose it is."""


T = TypeVar("T", bound=Waiting)


class Line(Generic[T]):
    """What waits, first come first served within each client.

    Next is the client with the fewest at work, so that a hundred requests of one keep nobody else waiting; among equal
    ones the client that was not served for longest.
    """

    def __init__(self) -> None:
        self.clients: OrderedDict[Hashable, deque[T]] = OrderedDict()
        self.length = 0  # kept, as other threads ask for it

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[T]:
        for waiting in self.clients.values():
            yield from waiting

    def append(self, item: T) -> None:
        self.clients.setdefault(item.client, deque()).append(item)
        self.length += 1

    def put_back(self, item: T) -> None:
        """Return what was at work; it is the next of its client."""
        self.clients.setdefault(item.client, deque()).appendleft(item)
        self.length += 1

    def next_client(self, at_work: Mapping[Hashable, int]) -> Hashable:
        """Whose turn it is; ``at_work`` counts by client. Raises ``ValueError`` where nobody waits."""
        return min(self.clients, key=lambda client: at_work.get(client, 0))

    def take(self, at_work: Mapping[Hashable, int]) -> T:
        """Remove what comes next."""
        client = self.next_client(at_work)
        item = self.clients[client].popleft()
        self.length -= 1
        self.clients.move_to_end(client)
        if not self.clients[client]:
            del self.clients[client]
        return item

    def remove(self, item: T) -> None:
        waiting = self.clients[item.client]
        waiting.remove(item)
        self.length -= 1
        if not waiting:
            del self.clients[item.client]
