"""How the loops of this package are compiled: by Numba, for the processor at hand, and kept for the next start."""

import hashlib
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from llvmlite import binding
from numba import njit

F = TypeVar("F", bound=Callable[..., Any])

# NaN and infinity must survive, since they are how an overflow is noticed: neither "nnan" nor "ninf".
REORDER = {"reassoc", "contract", "nsz", "arcp"}
EXACT = {"contract"}


def is_supported() -> bool:
    """Whether this processor multiplies and adds vectors in one instruction, as the loops assume."""
    machine = platform.machine().lower()
    if machine in {"x86_64", "amd64"}:
        features = binding.get_host_cpu_features()
        return all(features.get(name) for name in ("avx2", "fma", "f16c"))
    return machine in {"aarch64", "arm64"}


def keep_compiled_code(cache: Path | None) -> None:
    """Keep compiled code in a folder inside ``cache``; call it before the loops are imported.

    Nothing is kept where that cannot be written. Numba compares the file of a function alone, so the folder is named
    after all files of this package.
    """
    digest = hashlib.sha256(numba.__version__.encode())
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    try:
        if cache is not None:
            folder = cache / "kernels" / digest.hexdigest()[:16]
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                numba.config.CACHE_DIR = str(folder)
    except OSError:
        pass


def compiled(fastmath: set[str]) -> Callable[[F], F]:
    """A decorator: compile when first called, to run without the GIL, with these liberties in rounding."""
    return njit(nogil=True, error_model="numpy", fastmath=fastmath, cache=bool(numba.config.CACHE_DIR))
