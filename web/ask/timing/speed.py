"""How fast this machine computes what questions consist of, measured once for each shape of model."""

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import cast

import torch
from torch.nn import functional as F

from model import LoadedModel
from model.checkpoint.weights import gpt_on_meta
from model.config import GPTConfig
from model.gpt import Block

from ...bounded_cache import BoundedCache
from .turns import lower_priority
from .work import Work

MAX_SHAPES = 100  # whose speed is remembered
FEW, MANY = 4, 256  # tokens that a layer reads; the difference tells the cost of a token from that of a call
MAX_VOCABULARY = 8_192  # logits computed; the rest of a larger vocabulary is taken to be as fast
LOGIT_ROWS = 64
MANY_WEIGHTS = 4_000_000  # more than a processor's cache holds, as in most questions that need them
ROUNDS, MAX_SECONDS = 5, 0.1  # the fastest round counts; no further one begins after so many seconds


class Speeds:
    """The speed of float32 computation for each shape of model and device: the seconds of each part of ``Work``."""

    def __init__(self) -> None:
        self.known: BoundedCache[object, Work] = BoundedCache(max_entries=MAX_SHAPES)

    def of(self, loaded: LoadedModel) -> Work:
        """The speed of a model, measured on the first call in well under a second; not for the event loop."""
        key = loaded.config, str(loaded.device)
        return self.known.get_or_compute(key, lambda: self.measure(loaded.config, loaded.device))

    def measure(self, config: GPTConfig, device: torch.device) -> Work:
        with ThreadPoolExecutor(1, initializer=lower_priority) as thread:  # as slow as the thread of a question
            return thread.submit(measure, config, device).result()


@torch.inference_mode()
def measure(config: GPTConfig, device: torch.device) -> Work:
    """Time one layer of this shape, and part of its output head, with arbitrary weights."""
    shape = replace(
        config,
        n_layer=1,
        vocab_size=min(config.vocab_size, MAX_VOCABULARY),
        context_length=min(config.context_length, MANY),
    )
    gpt = gpt_on_meta(shape).to_empty(device=device).eval()
    for weight in gpt.parameters():
        weight.fill_(0.01)
    block = cast(Block, gpt.h[0])
    few, many = (torch.randn(1, min(n, shape.context_length), config.n_embd, device=device) for n in (FEW, MANY))
    query, key, value = block.attn.queries_keys_values(many)
    rows, n = many[0, :LOGIT_ROWS], many.shape[1]
    targets = torch.zeros(len(rows), dtype=torch.long, device=device)

    # Where this thread has a low priority, its waits for a busy processor do not count: the speed is kept for good.
    clock = time.thread_time if device.type == "cpu" and sys.platform == "linux" else time.perf_counter

    def layer(x: torch.Tensor) -> torch.Tensor:
        return gpt.run_blocks(x, lambda block, x: block.attn(x)[0])

    one_call, one_layer = seconds_of(lambda: layer(few), clock), seconds_of(lambda: layer(many), clock)
    attention = seconds_of(lambda: block.attn.fused(query, key, value), clock)
    copies = max(1, MANY_WEIGHTS // (config.n_head * n**2))
    queries, keys = (each.expand(copies, -1, -1, -1) for each in (query, key))
    weights = seconds_of(lambda: block.attn.attention_weights(queries, keys) @ value, clock)
    losses = seconds_of(lambda: F.cross_entropy(gpt.logits(rows), targets, reduction="none"), clock)
    token = max(one_layer - attention - one_call, one_layer / 10) / n
    return Work(
        calls=max(one_call - few.shape[1] * token, 0),
        tokens=token,
        pairs=attention / n**2,
        weights=weights / (copies * config.n_head * n**2),
        logits=losses / len(rows) * config.vocab_size / shape.vocab_size,
    )


def seconds_of(compute: Callable[[], torch.Tensor], clock: Callable[[], float]) -> float:
    """The seconds of the fastest of a few rounds, after one that warms up."""
    compute().sum().item()  # which waits for a GPU
    until, fastest = time.perf_counter() + MAX_SECONDS, float("inf")
    for _ in range(ROUNDS):
        started = clock()
        compute()[..., -1].sum().item()
        fastest = min(fastest, clock() - started)
        if time.perf_counter() > until:
            break
    return fastest
