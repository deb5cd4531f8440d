"""Compilation of this package's loops by Numba for the current processor, and the cache for the next start."""

import hashlib
import logging
import os
import platform
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import numba
from llvmlite import binding
from numba import njit

F = TypeVar("F", bound=Callable[..., Any])
log = logging.getLogger(__name__)

# Neither "nnan" nor "ninf": NaN and infinity must be preserved, because they reveal an overflow.
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

    Nothing is kept if the folder cannot be written. To detect changes, Numba compares only the file that contains a
    function, so the folder's name depends on all files of this package.
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


def use_whole_vectors() -> None:
    """Let LLVM use vectors of 512 bits; on Intel's processors it prefers 256, since the first with 512 slowed down."""
    features = binding.get_host_cpu_features()
    if features.get("avx512bf16") and numba.config.ENABLE_AVX and numba.config.CPU_FEATURES is None:
        numba.config.CPU_FEATURES = f"{features.flatten()},-prefer-256-bit"


use_whole_vectors()  # before anything is compiled


def compiled(fastmath: set[str], *, nogil: bool = True) -> Callable[[F], F]:
    """A decorator that compiles on the first call, to run without the GIL and with these fast-math flags.

    A function that takes microseconds should keep the GIL (``nogil=False``): on a busy server, getting it back can take
    a hundred times as long.

    Compiled functions do not count references to arrays: the caller keeps them, and threads that count references to
    the same array wait for each other.
    """
    cache = bool(numba.config.CACHE_DIR)
    compile = njit(nogil=nogil, error_model="numpy", fastmath=fastmath, cache=cache, _nrt=False)
    return lambda function: ignoring_full_disks(compile(function))


def entry_of(function: Any, *arguments: Any) -> Callable[..., Any]:
    """The compiled code of ``function`` for arguments of these types; any others crash the process.

    Calling it saves Numba's look at every argument's type: with as many arrays as a pass takes, ten microseconds.
    """
    types = tuple(numba.typeof(argument) for argument in arguments)
    function.compile(types)
    entry: Callable[..., Any] = function.get_overload(types)
    return entry


def ignoring_full_disks(function: Any) -> Any:
    """The same compiled function, which also runs if the disk has no room for its code."""
    save = function._cache.save_overload

    @wraps(save)
    def save_if_possible(*arguments: Any) -> None:
        try:
            save(*arguments)
        except OSError as error:
            log.warning("The compiled loops cannot be kept for the next start: %s", error.strerror or error)

    function._cache.save_overload = save_if_possible
    return function
