"""A model, and a text to ask about."""

from collections.abc import Callable
from typing import Any

import pytest

from helpers.server import Server
from model import LoadedModel


@pytest.fixture
def tiny(server: Server) -> LoadedModel:
    return server.served.models["tiny"]


@pytest.fixture
def written(write_once: Callable[[str, int], Any]) -> Any:
    """The page with a written text."""
    return write_once("What light through yonder window breaks?", 20)
