"""Settings of glibc's heap and of garbage collection that keep this process small and free of pauses."""

import ctypes
import gc
import sys
from collections.abc import Callable

M_ARENA_MAX = -8  # in glibc's malloc.h


def freeze_objects() -> None:
    """Exempt all existing objects from garbage collection: scanning them would pause the whole process."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)  # a body of many lists must not trigger a hundred collections
    trim_heap()


def share_heaps() -> None:
    """Let all threads share two heaps. Call this before any thread starts.

    By default, glibc gives each thread its own heap, and the others cannot use memory freed in it.
    """
    if set_option := of_glibc("mallopt"):
        set_option(M_ARENA_MAX, 2)


def trim_heap() -> None:
    """Return freed memory to the system: by itself, glibc keeps any that lies below memory still in use."""
    if trim := of_glibc("malloc_trim"):
        trim(0)


def of_glibc(name: str) -> Callable[..., int] | None:
    """A function of glibc, or None if the C library is a different one, which does not need it."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
