"""A second Headscope that writes, and an engine that sends what a test tells it to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.models import tiny_bpe, tiny_model
from helpers.oracles.scripted_engine import ScriptedEngine
from helpers.server import Server, start


@pytest.fixture(scope="module")
def one_engine() -> Iterator[ScriptedEngine]:
    engine = ScriptedEngine()
    yield engine
    engine.close()


@pytest.fixture
def engine(one_engine: ScriptedEngine) -> ScriptedEngine:
    """An engine without any requests yet."""
    one_engine.reset()
    return one_engine


@pytest.fixture(scope="module")
def looking(server: Server, checkpoints: Path) -> Iterator[Server]:
    """An app that shows the texts that ``server`` writes."""
    looking = start(checkpoints / "tiny", checkpoints / "other", engine_urls=(f"{server.url}/v1",))
    yield looking
    looking.close()


@pytest.fixture(scope="module")
def remote_server(one_engine: ScriptedEngine, checkpoints: Path) -> Iterator[Server]:
    """An app that shows the texts that the scripted engine writes."""
    remote_server = start(checkpoints / "tiny", engine_urls=(one_engine.url,))
    yield remote_server
    remote_server.close()


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint with a byte-level vocabulary."""
    folder = tmp_path_factory.mktemp("pairs") / "pairs"
    tiny_model(3, tiny_bpe(), n_embd=32, context_length=128).save(folder)
    return folder
