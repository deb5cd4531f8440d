"""A queue that is fair to clients, not to requests."""

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Generic, Protocol, TypeVar

from ..errors import Busy


class Waiting(Protocol):
    @property
    def client(self) -> Hashable:
        """The owner: texts of one client share its turns."""


T = TypeVar("T", bound=Waiting)


class FairQueue(Generic[T]):
    """First come, first served within each client.

    The next client is the one with the fewest active texts, so that a hundred requests from one client do not delay
    others; among equals, one whose next item is not ``can_wait``, and the client that has waited longest since its last
    turn.
    """

    def __init__(self, can_wait: Callable[[T], bool] = lambda _: False) -> None:
        self.can_wait = can_wait
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

    def next_client(self, active: Mapping[Hashable, int]) -> Hashable:
        """The client whose turn it is; ``active`` counts active texts by client. The queue must not be empty."""
        return min(self.clients, key=lambda client: (active.get(client, 0), self.can_wait(self.clients[client][0])))

    def next_item(self, active: Mapping[Hashable, int]) -> T:
        """The item whose turn it is. The queue must not be empty."""
        return self.clients[self.next_client(active)][0]

    def take(self, active: Mapping[Hashable, int]) -> T:
        """Remove and return the next item."""
        client = self.next_client(active)
        item = self.clients[client].popleft()
        self.length -= 1
        self.clients.move_to_end(client)
        if not self.clients[client]:
            del self.clients[client]
        return item

    def in_order(self, active: Mapping[Hashable, int]) -> list[T]:
        """All items in the order in which they are taken if no active one ends before."""
        rest, counts, taken = FairQueue[T](self.can_wait), Counter(active), list[T]()
        rest.clients = OrderedDict((client, deque(waiting)) for client, waiting in self.clients.items())
        while rest.clients:
            taken.append(rest.take(counts))
            counts[taken[-1].client] += 1
        return taken

    def to_refuse(
        self,
        newcomer: Hashable,
        n_over: int,
        counts: Mapping[Hashable, int],
        may_be_refused: Callable[[T], bool] = lambda _: True,
        n_new: int = 1,
    ) -> list[T]:
        """The ``n_over`` items that must leave to make room for ``n_new`` of a ``newcomer``.

        Each is the newest of the client that then has the most of those with an item that ``may_be_refused``, where
        ``counts`` are the clients' items, waiting and active. Raises ``Busy`` if none has more than the newcomer.
        """
        left = [item for item in self if may_be_refused(item)]
        counts = Counter(counts) + Counter({newcomer: n_new})
        refused: list[T] = []
        while len(refused) < n_over:
            newest = max(reversed(left), key=lambda item: counts[item.client], default=None)
            if newest is None or counts[newest.client] <= counts[newcomer]:
                raise Busy
            left.remove(newest)
            refused.append(newest)
            counts[newest.client] -= 1
        return refused

    def remove(self, item: T) -> None:
        waiting = self.clients[item.client]
        waiting.remove(item)
        self.length -= 1
        if not waiting:
            del self.clients[item.client]
