"""The choice, by timing both once per machine, between float32 and bfloat16 products for weights stored as bfloat16."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite.binding import get_host_cpu_name

from .forward import linear
from .jit import EXACT, compiled
from .panels import (
    PAIR,
    PREFETCH_BYTES,
    WIDTH,
    IntegerScratch,
    Matrix,
    PairScratch,
    Rows,
    has_pair_products,
    inputs_for,
)

FILE = "products.json"  # in the cache: the name of the processor -> seconds of each kind
N_ROWS, SIDE = 16, 512  # of the product that is timed
ROUNDS = 7


def are_pairs_faster(cache: Path | None) -> bool:
    """Whether products of bfloat16 exist here and are faster; remembered in ``cache`` if that can be written."""
    if not has_pair_products():
        return False
    processor = get_host_cpu_name()
    known = read(cache)
    if processor not in known:
        known[processor] = {"float32": seconds(unchanged()), "bfloat16": seconds(rounded())}
        write(cache, known)
    return known[processor]["bfloat16"] < known[processor]["float32"]


def read(cache: Path | None) -> dict[str, dict[str, float]]:
    """The timings so far; none if the file is missing or damaged."""
    try:
        found = json.loads((cache / FILE).read_text()) if cache else {}
        return {str(name): {kind: float(row[kind]) for kind in ("float32", "bfloat16")} for name, row in found.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def write(cache: Path | None, known: dict[str, dict[str, float]]) -> None:
    try:
        if cache:
            cache.mkdir(parents=True, exist_ok=True)
            (cache / FILE).write_text(json.dumps(known))
    except OSError:
        pass  # timed again at the next start


def unchanged() -> IntegerScratch:
    return IntegerScratch(np.empty((1, 0), np.int8), np.empty((1, 0), np.float32), np.empty((1, 0), np.int32))


def rounded() -> PairScratch:
    return PairScratch(np.empty((1, N_ROWS * SIDE), np.uint16))


@compiled(EXACT)
def multiply_once(weights, bias, x, out, scratch):
    matrix = Matrix(weights, 0, SIDE // PAIR * WIDTH, SIDE // PAIR, SIDE, bias, bias, PREFETCH_BYTES)
    inputs = inputs_for(weights, Rows(x, 0, SIDE), N_ROWS, SIDE, scratch, 0)
    linear(matrix, inputs, N_ROWS, Rows(out, 0, SIDE), False, 0, 1)


def seconds(scratch: Any) -> float:
    """Processor time of the fastest of a few products on one thread; other programs hardly affect it."""
    weights, bias = np.zeros(SIDE * SIDE // PAIR, np.uint32), np.zeros(SIDE, np.float32)
    x, out = np.ones(N_ROWS * SIDE, np.float32), np.empty(N_ROWS * SIDE, np.float32)
    best = float("inf")
    multiply_once(weights, bias, x, out, scratch)  # compiles it
    for _ in range(ROUNDS):
        started = time.thread_time()
        for _ in range(10):
            multiply_once(weights, bias, x, out, scratch)
        best = min(best, (time.thread_time() - started) / 10)
    return best
