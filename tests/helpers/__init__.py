"""What several tests share: small models, a server, ways to drive the page, and the oracles' own numbers."""

from typing import Any

import pytest


def also_slow(*values: Any) -> list[Any]:
    """More values of a parameter, tried among the slow tests; a tuple has one for each name."""
    marks = pytest.mark.slow
    return [pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=marks) for value in values]
