"""Trainings in which nothing is learned."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.server import Server
from helpers.training.visitors import learn_nothing, quick_server


@pytest.fixture
def nothing_is_learned(checkpoints: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings produce a copy of the model "tiny"."""
    learn_nothing(monkeypatch, checkpoints / "tiny")


@pytest.fixture(scope="module")
def quick(checkpoints: Path) -> Iterator[Server]:
    """A server whose trainings produce a copy of the model "tiny"."""
    with pytest.MonkeyPatch.context() as patched:
        learn_nothing(patched, checkpoints / "tiny")
        yield from quick_server(checkpoints)
