"""The app on a free port with tiny models, and a browser to look at it."""

import asyncio
import os
import shutil
import string
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gradio as gr
import pytest
from helpers import tiny_model
from playwright.sync_api import expect, sync_playwright
from serve_once import free_port

import app
from model import LoadedModel
from model.serving.engine import Engine
from model.serving.sequence import TextSequence
from model.tokenizer import CharTokenizer
from web.assets import URL
from web.services import Services
from web.settings import Settings

CHARACTERS = string.printable[:95] + "\n"
CONTEXT = 64
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# As root, without a GPU, and without the browser's own errands.
BROWSER_FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()


@dataclass
class Server:
    """A running app."""

    url: str
    services: Services
    demo: gr.Blocks

    def close(self) -> None:
        self.services.engines.close()
        self.demo.close(verbose=False)


class GatedEngine(Engine):
    """Takes a step each time the test opens its gate, so that a test can look in between."""

    def __init__(self, loaded: LoadedModel, **settings: Any) -> None:
        super().__init__(loaded, **settings)
        self.gate = threading.Semaphore(0)

    def forward(self, planned: Sequence[TextSequence]) -> None:
        while not self.gate.acquire(timeout=0.2):  # what was cancelled meanwhile needs no step
            if all(sequence.cancelled for sequence in planned):
                return
        super().forward(planned)


def save_tiny(folder: Path, seed: int = 0, **changes: Any) -> Path:
    tiny_model(seed, CharTokenizer.train(CHARACTERS), n_embd=32, context_length=CONTEXT, **changes).save(folder)
    return folder


def start(*checkpoints: Path | str, loaded: bool = True, **changes: Any) -> Server:
    """The app in this process."""
    port = free_port()
    names = tuple(str(checkpoint) for checkpoint in checkpoints)
    demo, services = app.start(Settings(checkpoints=names, port=port, **changes))
    if loaded:
        services.load()
    return Server(f"http://127.0.0.1:{port}", services, demo)


def run_async(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Its result, from a loop in a thread of its own: the browser's tests keep one running in this."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result(60)


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the checkpoints tiny (3 layers x 4 heads), other (2 x 2) and broken (no weights)."""
    root = tmp_path_factory.mktemp("checkpoints")
    save_tiny(root / "tiny", n_layer=3, n_head=4)
    save_tiny(root / "other", seed=1)
    (save_tiny(root / "broken") / "model.safetensors").unlink()
    return root


@pytest.fixture(scope="session")
def server(checkpoints: Path) -> Iterator[Server]:
    """One app for all tests that change nothing in it; the model "slow" is "tiny" behind a gate."""
    server = start(checkpoints / "tiny", checkpoints / "other", checkpoints / "broken")
    models = server.services.served.models
    models["slow"] = replace(models["tiny"], name="slow")
    server.services.engines.add(models["slow"], GatedEngine(models["slow"]))
    made = server.services.openings.made
    made["slow"] = made["tiny"]
    yield server
    server.close()


@pytest.fixture
def slow(server: Server) -> Iterator[Any]:
    """The model behind a gate; what still writes is ended after the test, and the gate shut for the next."""
    loaded: Any = server.services.served.models["slow"]
    engine: Any = server.services.engines.engine_for(loaded)
    loaded.gate = engine.gate
    yield loaded
    for generation in list(server.services.engines.running):
        generation.cancel()
        assert generation.ended.wait(10)
    while engine.gate.acquire(blocking=False):
        pass


@pytest.fixture
def launch() -> Iterator[Callable[..., Server]]:
    """``start``, with everything closed after the test."""
    servers: list[Server] = []

    def start_one(*checkpoints: Path | str, **changes: Any) -> Server:
        servers.append(start(*checkpoints, **changes))
        return servers[-1]

    yield start_one
    for server in servers:
        server.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        reason = f"no browser: none of {', '.join(BROWSERS)} is installed"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    expect.set_options(timeout=15_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=BROWSER_FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Any, server: Server) -> Iterator[Any]:
    """The opened page; the test fails if it threw an error or asked another host for anything."""
    errors: list[str] = []
    strangers: list[str] = []
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.set_default_timeout(15_000)
    page.on("pageerror", lambda error: errors.append(str(error)))
    # Gradio catches what a watcher throws and only logs it.
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" and URL in said.text else None)
    page.on("request", lambda request: None if is_own(request.url, server.url) else strangers.append(request.url))
    page.goto(server.url)
    expect(page.locator(".hs-number")).not_to_be_empty()  # the opening is there and drawn
    yield page
    context.close()
    assert not errors
    assert not strangers


def is_own(address: str, url: str) -> bool:
    return address.startswith((f"{url}/", "data:", "blob:"))
