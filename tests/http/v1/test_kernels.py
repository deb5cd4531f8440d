"""The app with compiled loops: they become ready in the background, and no client sees a difference."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from helpers.api import post
from helpers.engine import KERNELS
from helpers.server import Server, save_tiny, start
from model.serving.choose_reader import choose_reader
from web.serving.engines import Engines


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    """One server that writes with compiled loops from the first text on, and one that writes with torch."""
    folder: Path = save_tiny(tmp_path_factory.mktemp("kernels") / "tiny")
    ready = threading.Event()
    with pytest.MonkeyPatch.context() as patched:
        speed_up = Engines.speed_up
        patched.setattr(Engines, "speed_up", lambda *given: (speed_up(*given), ready.set()))
        compiled = start(folder, kernels=True, cache=KERNELS)
        assert ready.wait(120)
    made = (compiled, start(folder))
    yield made
    for server in made:
        server.close()


def test_metrics_name_the_reader(servers: tuple[Server, Server]) -> None:
    for server, value in zip(servers, ("1.0", "0.0"), strict=True):
        post(server, max_tokens=2)
        metrics = httpx.get(f"{server.url}/metrics").text
        assert f'headscope_compiled{{model="tiny"}} {value}' in metrics
        assert 'headscope_products{kind="float32",model="tiny"} 1.0' in metrics


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 0, "logprobs": 3, "echo": True},
        {"seed": 5, "n": 3, "max_tokens": 20},
        {"seed": 5, "top_k": 5, "frequency_penalty": 0.5},
    ],
)
def test_compiled_answers_equal_torch(servers: tuple[Server, Server], options: dict[str, Any]) -> None:
    compiled, by_torch = (post(server, prompt="ROMEO:", **options).json()["choices"] for server in servers)
    assert [choice["text"] for choice in compiled] == [choice["text"] for choice in by_torch]
    for one, other in zip(compiled, by_torch, strict=True):
        if one["logprobs"]:
            pairs = zip(one["logprobs"]["token_logprobs"][1:], other["logprobs"]["token_logprobs"][1:], strict=True)
            assert max(abs(a - b) for a, b in pairs) < 1e-4


def test_torch_writes_if_the_reader_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ready = threading.Event()
    speed_up = Engines.speed_up
    monkeypatch.setattr(Engines, "speed_up", lambda *given: (speed_up(*given), ready.set()))

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("no compiler here")

    monkeypatch.setattr("web.services.choose_reader", fail)
    server = start(save_tiny(tmp_path / "tiny"), kernels=True)
    try:
        assert ready.wait(60)
        assert post(server, max_tokens=3).status_code == 200
        assert "tiny writes with torch alone" in caplog.text
    finally:
        server.close()


def test_without_numba_there_is_no_compiled_reader(
    servers: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    gpt = next(iter(servers[0].services.served.models.values())).gpt
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    assert choose_reader(gpt, 1) is None
