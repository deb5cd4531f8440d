"""The choice, by timing once per machine, between kinds of matrix products: rounded or not, in tiles or in vectors."""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from llvmlite.binding import get_host_cpu_name
from numpy.typing import NDArray
from torch import Tensor

from .intrinsics import FLOAT_BYTES
from .linear import project_alone
from .pack import aligned, fill_panels, scratch_for, stored
from .panels import PREFETCH_BYTES, WIDTH, Matrix, Rows, padded, stride_for
from .sums import GROUP, PAIR, has_feature, has_pair_products
from .tiles import is_permitted

FILE = "products.json"  # in the cache: the name of the processor -> seconds of each kind
# The options of ``CompiledGPT`` for each kind.
KINDS: dict[str, dict[str, bool]] = {
    "float32": {},
    "bfloat16": {"in_pairs": True},
    "bfloat16 in tiles": {"in_pairs": True, "in_tiles": True},
    "int8": {},
    "int8 in tiles": {"in_tiles": True},
}
N_ROWS, SIDE = 16, 512  # of the product that is timed
ROUNDS = 7
CHECKED = ((1, 512, 96), (16, 38, 150), (17, 70, 32), (40, 512, 64))  # rows, depths and widths of products
CHECK = f"from {__name__} import check; check(%r)"  # what a process runs to check a kind
CHECK_SECONDS = 120
ROOT = Path(__file__).parents[2]
Floats = NDArray[np.float32]


def choose_products(dtype: torch.dtype, cache: Path | None) -> str:
    """The fastest of ``KINDS`` here for weights of this type; the timings are kept in ``cache`` if possible."""
    kinds = ["int8"] if dtype == torch.int8 else ["float32"]
    feature = "amx-int8"
    if dtype == torch.bfloat16 and has_pair_products():
        kinds, feature = [*kinds, "bfloat16"], "amx-bf16"
    if kinds[-1] != "float32" and has_feature(feature) and is_permitted():
        kinds.append(f"{kinds[-1]} in tiles")
    return fastest(kinds, cache)


def fastest(kinds: Sequence[str], cache: Path | None) -> str:
    if len(kinds) == 1:
        return kinds[0]
    processor, known = get_host_cpu_name(), read(cache)
    found = known.setdefault(processor, {})
    if not found.keys() >= set(kinds):
        found |= {kind: seconds(kind) if are_right(kind) else float("inf") for kind in kinds}
        write(cache, known)
    return min(kinds, key=lambda kind: found[kind])


def read(cache: Path | None) -> dict[str, dict[str, float]]:
    """The timings so far; none if the file is missing or damaged."""
    try:
        found = json.loads((cache / FILE).read_text()) if cache else {}
        return {str(name): {str(kind): float(value) for kind, value in row.items()} for name, row in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def write(cache: Path | None, known: dict[str, dict[str, float]]) -> None:
    try:
        if cache:
            cache.mkdir(parents=True, exist_ok=True)
            (cache / FILE).write_text(json.dumps(known))
    except OSError:
        pass  # timed again at the next start


def seconds(kind: str) -> float:
    """Processor time of the fastest of a few products on one thread; other programs hardly affect it."""
    dtype = torch.int8 if kind.startswith("int8") else torch.bfloat16
    arguments, _ = prepared(kind, torch.zeros(SIDE, SIDE, dtype=dtype), np.ones((N_ROWS, SIDE), np.float32))
    best = float("inf")
    project_alone(*arguments)  # compiles it
    for _ in range(ROUNDS):
        started = time.thread_time()
        for _ in range(10):
            project_alone(*arguments)
        best = min(best, (time.thread_time() - started) / 10)
    return best


def prepared(kind: str, weights: Tensor, x: Floats) -> tuple[tuple[Any, ...], Floats]:
    """The arguments of ``project_alone``, and the array ``(n, d_out)`` that it writes.

    It multiplies ``x`` ``(n, d_in)`` by ``weights`` ``(d_out, d_in)``: bfloat16, or int8 with scales of 1.
    """
    group, dtype = (GROUP, np.int32) if weights.dtype == torch.int8 else (PAIR, np.uint32)
    (n, d_in), d_out, matrix = x.shape, len(weights), stored(weights, np.dtype(dtype))
    width, depth = padded(d_out), matrix.shape[1]
    panels, scale, bias = aligned(width * depth, matrix.dtype), np.ones(width, np.float32), np.zeros(width, np.float32)
    fill_panels(panels, matrix)
    stride = stride_for(d_out, FLOAT_BYTES)
    out = aligned(n * stride, np.dtype(np.float32))
    operands = Matrix(panels, 0, depth * WIDTH, depth, d_out, scale, bias, PREFETCH_BYTES), Rows(x.reshape(-1), 0, d_in)
    scratch = scratch_for(group, n, d_in, 1, **KINDS[kind])
    return (*operands, n, d_in, Rows(out, 0, stride), False, scratch, 0, 1), out.reshape(n, stride)[:, :d_out]


def are_right(kind: str) -> bool:
    """Whether products of this kind may be used: in tiles, if ``check`` accepts them in a process that may crash."""
    if "in_tiles" not in KINDS[kind]:
        return True
    command = [sys.executable, "-c", CHECK % kind]
    try:
        subprocess.run(command, cwd=ROOT, capture_output=True, timeout=CHECK_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return False
    return True


def check(kind: str) -> None:
    """Raise ``ValueError`` if tiles are not permitted here, or if products of this kind are wrong.

    They are products of integers, so small that all kinds must be exact.
    """
    if not is_permitted():
        raise ValueError("the system does not permit tiles")
    generator = torch.Generator().manual_seed(0)
    for n, d_in, d_out in CHECKED:
        weights, x = (torch.randint(-127, 128, (rows, d_in), generator=generator) for rows in (d_out, n))
        x[:, 0] = 127  # so that the scale of every row is 1
        stored_as = torch.int8 if kind.startswith("int8") else torch.bfloat16
        arguments, found = prepared(kind, weights.to(stored_as), x.float().numpy())
        project_alone(*arguments)
        if not (found == (x @ weights.T).numpy()).all():
            raise ValueError(f"wrong {kind}: {n} rows of {d_in} numbers")
