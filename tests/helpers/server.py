"""The app on a free port with tiny models, in the process of the test."""

import functools
import gc
import logging
import string
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import gradio as gr
from gradio import blocks

import app
from model.config import RotaryConfig
from model.tokenizer import CharTokenizer
from web.edge.connections import Connections
from web.edge.server import RepeatFilter
from web.services import Services
from web.serving.served_models import ServedModels
from web.settings import Settings

from .gate import WatchedSet, follow_generations
from .models import tiny_model
from .serve_once import free_port

create_app = blocks.App.create_app
CHARACTERS = string.printable[:95] + "\n"
CONTEXT = 64


# Choices of other families, as ``save_tiny`` takes them: heads that share keys and values, and rotary positions.
LLAMA: dict[str, Any] = {
    "n_layer": 3,
    "n_head": 4,
    "n_kv_head": 2,
    "rotary": RotaryConfig(n_dim=8),
    "norm": "RMSNorm",
    "activation_function": "silu",
    "gated_mlp": True,
    **dict.fromkeys(("qkv_bias", "attn_proj_bias", "mlp_bias"), False),
}
QWEN3 = LLAMA | {"qk_norm": True}


@dataclass
class Server:
    """A running app."""

    url: str
    services: Services
    demo: gr.Blocks
    running: WatchedSet  # the generations whose texts are followed

    @property
    def served(self) -> ServedModels:
        return self.services.served

    @property
    def connections(self) -> Connections:
        """The connections of Gradio's server."""
        made: Any = self.demo.server.config.http
        assert isinstance(made.__self__, Connections)
        return made.__self__

    def wait_until_idle(self) -> None:
        """Return once no client follows a text any more."""
        self.running.news.wait_until(lambda: not self.running)

    def close(self) -> None:
        self.services.close()
        self.demo.close(verbose=False)


def save_tiny(folder: Path, seed: int = 0, **changes: Any) -> Path:
    """Save a checkpoint that reads and writes printable characters."""
    tiny_model(seed, CharTokenizer.train(CHARACTERS), n_embd=32, context_length=CONTEXT, **changes).save(folder)
    return folder


def start(*checkpoints: Path | str, loaded: bool = True, **changes: Any) -> Server:
    """The app in this process."""
    port = free_port()
    names = tuple(str(checkpoint) for checkpoint in checkpoints)
    settings = Settings(**{"kernels": False} | {"checkpoints": names, "port": port} | changes)
    with patch.object(blocks.App, "create_app", create_app_at_launch):
        demo, services = app.start(settings)
    running = follow_generations(services.engines)
    for handler in logging.getLogger().handlers:  # pytest's handlers, which must still capture the log
        handler.filters = [each for each in handler.filters if not isinstance(each, RepeatFilter)]
    keep_what_was_imported()
    if loaded:
        services.load()
    return Server(f"http://127.0.0.1:{port}", services, demo, running)


def create_app_at_launch(demo: gr.Blocks, **given: Any) -> gr.routes.App | None:
    """Gradio makes four applications and serves the last. Without the others a server starts in half of the time."""
    return create_app(demo, **given) if "app_kwargs" in given else None


@functools.cache
def keep_what_was_imported() -> None:
    """As a server in a separate process does: a garbage collection would stop everything for half a second."""
    gc.collect()
    gc.freeze()
