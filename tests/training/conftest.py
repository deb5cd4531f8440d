"""Trainings in which nothing is learned."""

from pathlib import Path

import pytest

from helpers.training.visitors import learn_nothing


@pytest.fixture
def nothing_is_learned(checkpoints: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings produce a copy of the model "tiny"."""
    learn_nothing(monkeypatch, checkpoints / "tiny")
