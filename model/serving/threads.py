"""How many processor threads torch should use: measured for a decode step, since more threads can be slower."""

import os
import threading
import time

import torch

from ..gpt import GPT
from ..modules.cache import KVCache, attention_dtype

PROBE_STEPS = 4  # decode steps per timing
PROBE_ROUNDS = (
    3  # timings of each thread count, taken in turn; the fastest counts, as other load can only slow one down
)
PROBE_CONTEXT = 16  # tokens in the cache while probing


restoring = threading.Lock()


def compute_alone() -> None:
    """Have torch use no other threads for what the calling thread computes from now on.

    Several threads that share each small computation with others spend most of their time waiting for each other. torch
    has one setting for all threads, which each reads when it first computes, so another thread must restore it.
    """
    with restoring:
        for_others = torch.get_num_threads()
        torch.set_num_threads(1)
        if for_others > 1:
            restorer = threading.Thread(target=torch.set_num_threads, args=(for_others,))
            restorer.start()
            restorer.join()


@torch.inference_mode()
def choose_threads(gpt: GPT) -> int:
    """Time a few decode steps with 1, 2, 4, ... threads, set torch to the fastest count and return that count.

    Does nothing if the model is not on the CPU or torch may use only one thread. Takes a fraction of a second. Call it
    before other threads use torch: a new count applies only to threads that have not used it yet.
    """
    most = min(torch.get_num_threads(), available_cores())
    if gpt.device.type != "cpu" or most == 1:
        return torch.get_num_threads()
    counts = sorted({2**i for i in range(most.bit_length())} | {most})
    best = dict.fromkeys(counts, float("inf"))
    for _ in range(PROBE_ROUNDS):
        for count in counts:
            torch.set_num_threads(count)
            best[count] = min(best[count], decode_seconds(gpt))
    fastest = min(counts, key=lambda count: best[count])
    torch.set_num_threads(fastest)
    return fastest


def decode_seconds(gpt: GPT) -> float:
    """The time of ``PROBE_STEPS`` decode steps, in seconds, after one to warm up."""
    weight = gpt.wte.weight
    context = min(PROBE_CONTEXT, gpt.config.context_length)
    cache = KVCache(gpt.config, capacity=context, dtype=attention_dtype(weight))
    cache.keys.zero_()
    cache.values.zero_()
    token = torch.zeros(1, 1, dtype=torch.long)
    started = 0.0
    for step in range(PROBE_STEPS + 1):
        if step == 1:
            started = time.perf_counter()
        cache.length = context - 1
        gpt(token, cache=cache)
    return time.perf_counter() - started


def available_cores() -> int:
    """The number of processor cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
