"""A finished run, the responses of its routes, and a text as a stream of pointers."""

import json
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
import torch

from helpers.engine import recorded_events
from model import LoadedModel
from model.drawing.metrics import FRAME_MEASURES
from web.runs.run import Run
from web.runs.store import Runs

if TYPE_CHECKING:
    from helpers.server import Server

PROMPT = "Be not afeard."
# The page's request for a text.
FIELDS: dict[str, Any] = {
    "prompt": "But soft",
    "model": "tiny",
    "max_new_tokens": 12,
    "temperature": 0.8,
    "top_k": 0,
    "top_p": 1.0,
    "min_p": 0.0,
    "seed": 1,
    "context_shift": False,
}


def written(runs: Runs, loaded: LoadedModel, n_new: int, prompt: str = PROMPT, **settings: Any) -> Run:
    run = runs.new(loaded, loaded.parse_prompt(prompt), n_new)
    for event in recorded_events(loaded, prompt, n_new + 1, **settings):
        run.take(event)
    runs.end(run)
    return run


def lower(attention: torch.Tensor) -> torch.Tensor:
    n = attention.shape[-1]
    return attention[..., torch.ones(n, n, dtype=torch.bool).tril()]


def frame(content: bytes) -> tuple[dict[str, Any], bytes]:
    """The header of a frame and its thumbnails; the metrics before those belong to the header."""
    (length,) = struct.unpack("<I", content[:4])
    header = json.loads(content[4 : 4 + length])
    size = 4 * header["pictures"] * len(FRAME_MEASURES)
    header["metrics"] = np.frombuffer(content[4 + length :][:size], np.float32).reshape(-1, len(FRAME_MEASURES))
    return header, content[4 + length + size :]


@contextmanager
def streamed(server: "Server", **changes: Any) -> Iterator[Iterator[dict[str, Any]]]:
    """The pointers of a text as they arrive; leaving closes the stream."""
    with httpx.stream("POST", f"{server.url}/look/write", json=FIELDS | changes, timeout=60) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield (json.loads(line.removeprefix("data: ")) for line in answer.iter_lines() if line)


def write_text(server: "Server", **changes: Any) -> list[dict[str, Any]]:
    """All pointers of a text."""
    with streamed(server, **changes) as pointers:
        return list(pointers)


def new_ids(pointers: list[dict[str, Any]]) -> list[int]:
    """The tokens in the pointers of one run, in order."""
    return [token["id"] for pointer in pointers for token in pointer["new"]]


class Reader(threading.Thread):
    """Follows a text in the background."""

    def __init__(self, server: "Server", **changes: Any) -> None:
        super().__init__(daemon=True)
        self.server, self.changes = server, changes
        self.pointers: list[dict[str, Any]] = []
        self.start()

    def run(self) -> None:
        with streamed(self.server, **self.changes) as pointers:
            self.pointers.extend(pointers)

    def finish(self) -> list[dict[str, Any]]:
        self.join(20)
        assert not self.is_alive()
        return self.pointers
