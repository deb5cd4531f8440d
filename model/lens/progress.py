"""How a long computation reports how far it is, and how it learns that nobody waits for it any more."""

from collections.abc import Callable

# Called with the fraction done, from 0 to 1. It may take a while to return, and may raise ``Cancelled``.
Progress = Callable[[float], None]


class Cancelled(Exception):
    """Raised by a ``Progress`` to end a computation that nobody waits for."""


def ignore(_fraction: float) -> None:
    """The ``Progress`` of a caller who simply waits."""


def part(progress: Progress, start: float, stop: float) -> Progress:
    """The ``Progress`` of a step that takes the whole computation from the fraction ``start`` to ``stop``."""
    return lambda fraction: progress(start + (stop - start) * fraction)
