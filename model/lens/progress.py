"""How a long computation reports its progress, and learns that its result is no longer wanted."""

from collections.abc import Callable

# Called with the fraction done, from 0 to 1. It may take a while to return, and may raise ``Cancelled``.
Progress = Callable[[float], None]


class Cancelled(Exception):
    """Raised by a ``Progress`` to end a computation whose result is no longer wanted."""


def ignore(_fraction: float) -> None:
    """The ``Progress`` of a caller who simply waits."""


def part(progress: Progress, start: float, stop: float) -> Progress:
    """The ``Progress`` of a step that spans the fractions ``start`` to ``stop`` of the whole computation."""
    return lambda fraction: progress(start + (stop - start) * fraction)
