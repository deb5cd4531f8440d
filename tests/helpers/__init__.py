"""Code shared by tests: small models, a server, driving the page, and the numbers of the oracles."""

from typing import Any

import pytest


def also_slow(*values: Any) -> list[Any]:
    """More values of a parameter, tested only among the slow tests; a tuple has one for each name."""
    marks = pytest.mark.slow
    return [pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=marks) for value in values]
