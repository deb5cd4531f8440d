"""Code shared by tests: small models, a server, driving the page, and the numbers of the oracles."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pytest

T = TypeVar("T")


def run_async(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine; also in a process whose main thread has an event loop, as Playwright leaves it."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


def also_slow(*values: Any) -> list[Any]:
    """More values of a parameter, tested only among the slow tests; a tuple has one for each name."""
    marks = pytest.mark.slow
    return [pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=marks) for value in values]
