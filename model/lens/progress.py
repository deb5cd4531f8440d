"""Progress reports of a long computation, which can also cancel it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm

BAR_AFTER = 3.0  # seconds of work, after which there is a bar
# Called with the fraction done, from 0 to 1. It may take a while to return, and may raise ``Cancelled``.
Progress = Callable[[float], None]


class Cancelled(Exception):
    """Raised by a ``Progress`` to cancel a computation whose result is no longer needed."""


def ignore(_fraction: float) -> None:
    """A ``Progress`` that does nothing."""


@contextmanager
def bar(name: str) -> Iterator[Progress]:
    """A ``Progress`` that is shown as a bar once the work has taken a few seconds, and until it ends."""
    shape = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}"
    with tqdm(total=1, desc=name, delay=BAR_AFTER, leave=False, bar_format=shape) as shown:

        def report(fraction: float) -> None:
            shown.update(min(fraction, 1) - shown.n)

        yield report


def part(progress: Progress, start: float, stop: float) -> Progress:
    """The ``Progress`` for a step that spans the fractions ``start`` to ``stop`` of the whole computation."""
    return lambda fraction: progress(start + (stop - start) * fraction)


def parts(progress: Progress, n: int, start: float = 0, stop: float = 1) -> list[Progress]:
    """``n`` equal parts of the fractions from ``start`` to ``stop``."""
    return [part(progress, start + (stop - start) * i / n, start + (stop - start) * (i + 1) / n) for i in range(n)]
