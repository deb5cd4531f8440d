"""Fixtures and rules for all tests."""

import functools
import gc
import os
import ssl
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from helpers.engine import KERNELS
from helpers.texts import Texts, open_texts
from helpers.training import TRAINING_TEXT
from model import ladder
from model.kernels import jit

if TYPE_CHECKING:
    from helpers.server import Server
    from helpers.siege.fuzz import Damaged

# The models here are tiny: on a busy machine a second thread costs far more than it gains.
torch.set_num_threads(1)
# Each httpx client would load all CA certificates, which takes 16 ms and which no test needs.
ssl.create_default_context = functools.cache(ssl.create_default_context)
# Before the kernels are imported: code that one process compiles serves all tests of this run and the next.
jit.keep_compiled_code(KERNELS)
# Set before transformers or huggingface_hub is imported: no test contacts another host.
os.environ.setdefault("HF_HUB_OFFLINE", "1")

TESTS = Path(__file__).parent
MARKED = ("browser", "slow", "release")  # folders whose tests all carry the marker of that name
LONG_SECONDS = 1_200  # after which a test in tests/slow or tests/release has failed
IN_BROWSER = {"browser", "page"}  # fixtures that open Chromium
HARDWARE = ("this processor", "NVIDIA GPU")  # a reason to skip a test names one: no command can install it


def pytest_configure(config: pytest.Config) -> None:
    """Hide any GPU, before anything looks for one, unless only the tests that need it run: others are about CPUs."""
    if config.option.markexpr != "gpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """Only tests in ``tests/browser`` may open a browser; others fail at collection."""
    made = yield
    for item in made if isinstance(made, list) else []:
        if folder_of(item) != "browser" and IN_BROWSER & set(getattr(item, "fixturenames", ())):
            raise collector.CollectError(f"{item.nodeid} opens a browser: its place is tests/browser")
    return made


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector away from the modules imported for all tests, which would cost seconds."""
    threshold = gc.get_threshold()
    gc.set_threshold(0)
    collected = yield
    gc.freeze()
    gc.set_threshold(*threshold)
    return collected


@pytest.hookimpl(tryfirst=True)  # before tests are selected by marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by their folder. Slow tests of the browser take so long that they run only before a release."""
    for item in items:
        folder = folder_of(item)
        if folder in MARKED:
            item.add_marker(folder)
        if folder in ("slow", "release"):
            item.add_marker(pytest.mark.timeout(LONG_SECONDS))
        if folder == "browser" and item.get_closest_marker("slow"):
            item.add_marker("release")
        if os.environ.get("CI") and item.get_closest_marker("timing"):
            item.add_marker(pytest.mark.flaky(reruns=1))


def folder_of(item: pytest.Item) -> str:
    """The top-level folder of ``tests`` that a test is in."""
    return item.path.relative_to(TESTS).parts[0]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI everything but hardware can be installed, so a test that is skipped for lack of anything else fails."""
    report = yield
    needs_hardware = any(name in str(report.longrepr) for name in HARDWARE)
    if report.skipped and not hasattr(report, "wasxfail") and not needs_hardware and os.environ.get("CI"):
        report.outcome = "failed"
        report.longrepr = f"skipped where nothing may be missing: {report.longrepr}"
    return report


@pytest.fixture(scope="session")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Texts:
    """Published texts and GPT-2's vocabulary from the folder that HEADSCOPE_DATA names, or else generated ones."""
    return open_texts(tmp_path_factory.mktemp("texts"))


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """A text file that a small model learns very quickly."""
    path = tmp_path / "text.txt"
    path.write_text(TRAINING_TEXT)
    return path


# The server's modules are imported on first use, so that unit tests need not wait for Gradio.
@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the checkpoints tiny (3 layers x 4 heads), other (2 x 2) and broken (no weights)."""
    from helpers.server import save_tiny

    root = tmp_path_factory.mktemp("checkpoints")
    save_tiny(root / "tiny", n_layer=3, n_head=4)
    save_tiny(root / "other", seed=1)
    (save_tiny(root / "broken") / "model.safetensors").unlink()
    return root


@pytest.fixture(scope="session")
def server(checkpoints: Path) -> Iterator["Server"]:
    """One app, shared by all tests that change nothing in it; the model "slow" is "tiny" behind a gate."""
    from helpers.gate import GatedEngine
    from helpers.server import start

    server = start(checkpoints / "tiny", checkpoints / "other", checkpoints / "broken")
    models = server.served.models
    models["slow"] = replace(models["tiny"], name="slow")
    server.services.engines.add(models["slow"], GatedEngine(models["slow"]))
    made = server.services.openings.written.entries
    made["slow"] = made["tiny"]
    yield server
    server.close()


@pytest.fixture
def slow(server: "Server") -> Iterator[Any]:
    """The model behind a gate. After the test, running texts are ended and the gate is shut for the next one."""
    from helpers.gate import wait_for_end

    loaded: Any = server.served.models["slow"]
    engine: Any = server.services.engines.engine_for(loaded)
    loaded.gate = engine.gate
    yield loaded
    for generation in list(server.running):
        generation.cancel()
        wait_for_end(generation)
    engine.gate.shut()


@pytest.fixture
def launch() -> Iterator[Callable[..., "Server"]]:
    """``helpers.server.start``, with everything closed after the test."""
    from helpers.server import start

    servers: list[Server] = []

    def start_one(*checkpoints: Path | str, **changes: Any) -> "Server":
        servers.append(start(*checkpoints, **changes))
        return servers[-1]

    yield start_one
    for server in servers:
        server.close()


@pytest.fixture(scope="module", params=["characters", "bpe"])
def damaged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> "Damaged":
    """A checkpoint whose files a test replaces."""
    from helpers.siege.fuzz import Damaged

    return Damaged(tmp_path_factory.mktemp("fuzz") / "tiny", bpe=request.param == "bpe")


@pytest.fixture
def journey() -> torch.Tensor:
    """The six-word sentence, ``(6, 3)``."""
    return torch.tensor(list(ladder.JOURNEY.values()))


@pytest.fixture
def linear() -> ladder.SelfAttentionV2:
    """The linear layers of the published recipe: three to two numbers, seed 789."""
    torch.manual_seed(789)
    return ladder.SelfAttentionV2(3, 2)
