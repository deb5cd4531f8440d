"""Compilation of this package's loops by Numba for the current processor, and the cache for the next start."""

import hashlib
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from llvmlite import binding

from ..seams import numba as seam
from ..seams.numba import Loop, loop

F = TypeVar("F", bound=Callable[..., Any])

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
    """Keep the code of all loops that are compiled from here on in a folder inside ``cache``.

    Nothing is kept if the folder cannot be written. To detect changes, Numba compares only the file that contains a
    function, so the folder's name depends on all files that the loops are compiled from.
    """
    digest = hashlib.sha256(numba.__version__.encode())
    for file in [Path(seam.__file__), *sorted(Path(__file__).parent.glob("*.py"))]:
        digest.update(file.read_bytes())
    try:
        if cache is not None:
            folder = cache / "kernels" / digest.hexdigest()[:16]
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                Loop.folder = folder
    except OSError:
        pass


def compiled(fastmath: set[str], *, nogil: bool = True) -> Callable[[F], F]:
    """A decorator that compiles on the first call, to run without the GIL and with these fast-math flags.

    A function that takes microseconds should keep the GIL (``nogil=False``): on a busy server, getting it back can take
    a hundred times as long.

    Compiled functions do not count references to arrays: the caller keeps them, and threads that count references to
    the same array wait for each other.
    """

    def compile_later(function: F) -> F:
        return cast(F, loop(function, fastmath, nogil))

    return compile_later


def entry_of(function: Any, *arguments: Any) -> Callable[..., Any]:
    """The compiled code of ``function`` for arguments of these types; any others crash the process.

    Calling it saves Numba's look at every argument's type: with as many arrays as a pass takes, ten microseconds.
    """
    types = tuple(numba.typeof(argument) for argument in arguments)
    function.compile(types)
    entry: Callable[..., Any] = function.get_overload(types)
    return entry
