"""A run that was written, and what its routes send."""

import json
import struct
from typing import Any

import numpy as np
import torch

from helpers.engine import recorded_events
from model import LoadedModel
from model.lens.metrics import METRICS
from web.runs.run import Run
from web.runs.store import Runs

PROMPT = "Be not afeard."


def written(runs: Runs, loaded: LoadedModel, n_new: int, prompt: str = PROMPT, **settings: Any) -> Run:
    run = runs.new(loaded, loaded.read_prompt(prompt), n_new)
    for event in recorded_events(loaded, prompt, n_new + 1, **settings):
        run.take(event)
    run.end()
    return run


def lower(attention: torch.Tensor) -> torch.Tensor:
    n = attention.shape[-1]
    return attention[..., torch.ones(n, n, dtype=torch.bool).tril()]


def frame(content: bytes) -> tuple[dict[str, Any], bytes]:
    """The header of a frame and its thumbnails; the metrics before those belong to the header."""
    (length,) = struct.unpack("<I", content[:4])
    header = json.loads(content[4 : 4 + length])
    size = 4 * header["pictures"] * len(METRICS)
    header["metrics"] = np.frombuffer(content[4 + length :][:size], np.float32).reshape(-1, len(METRICS))
    return header, content[4 + length + size :]
