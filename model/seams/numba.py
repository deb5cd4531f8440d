"""Parts of Numba that it does not publish: a compiler and a cache of this package's own.

With them Numba's settings stay as they are, which belong to whoever else compiles in this process, such as a notebook.
"""

import functools
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
from llvmlite import binding, ir
from numba.core.caching import CompileResultCacheImpl, FunctionCache, InTreeCacheLocator, NullCache
from numba.core.codegen import JITCPUCodegen
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.np.arrayobj import populate_array

PARTS = {
    "llvmlite.ir.types.Type._to_string": "writes a type into LLVM's code",
    "numba.core.registry.CPUDispatcher.compile": "compiles a function for arguments of new types",
    "numba.core.registry.CPUDispatcher._cache": "is where the code of a function is kept",
    "numba.core.caching.NullCache": "stands for the cache of a function whose code is not kept",
    "numba.core.caching.FunctionCache.save_overload": "keeps compiled code; a full disk must not stop the function",
    "numba.core.caching.FunctionCache._impl_class": "knows where the code of a function is kept",
    "numba.core.caching.CompileResultCacheImpl._locator_classes": "are asked for the place of a function's code",
    "numba.core.caching.InTreeCacheLocator._cache_path": "is the folder of a function's code",
    "numba.core.caching.InTreeCacheLocator.get_suitable_cache_subpath": "names the folder of a source file's code",
    "numba.core.cgutils._StructProxy._getvalue": "is the LLVM value of an array",
    "numba.core.codegen.JITCPUCodegen._customize_tm_features": "tells LLVM the features of the processor",
    "numba.core.registry.cpu_target.target_context._internal_codegen": "generates the code of all functions",
    "numba.core.compiler_lock.global_compiler_lock": "lets one thread at a time compile",
    "numba.np.arrayobj.populate_array": "makes an array of numbers at an address",
}
log = logging.getLogger(__name__)


class Loop(CPUDispatcher):
    """A function that Numba compiles for the processor it runs on, when it is called with arguments of new types."""

    folder: Path | None = None  # where the code of all loops is kept
    _cache: Any

    def compile(self, sig: Any) -> Any:
        with global_compiler_lock, whole_vectors(self.targetctx):
            if self.folder is not None and isinstance(self._cache, NullCache):
                self._cache = KeptCode(self.py_func)
            return super().compile(sig)


def loop(function: Callable[..., Any], fastmath: set[str], nogil: bool) -> Loop:
    """``function``, compiled with these fast-math flags. It counts no references to arrays: the caller keeps them."""
    options = {"nopython": True, "boundscheck": None, "error_model": "numpy", "fastmath": fastmath, "nogil": nogil}
    return Loop(function, targetoptions={**options, "_nrt": False})


class BFloat(ir.types.Type):
    """LLVM's 16-bit float with the exponent of a float32, which llvmlite lacks."""

    def _to_string(self) -> str:
        return "bfloat"

    __str__ = _to_string

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BFloat)

    def __hash__(self) -> int:
        return hash(BFloat)


class PlaceInFolder(InTreeCacheLocator):
    """The place of a function's code in the folder of all loops."""

    def __init__(self, function: Any, file: str) -> None:
        super().__init__(function, file)
        assert Loop.folder is not None
        self._cache_path = str(Loop.folder / self.get_suitable_cache_subpath(file))

    @classmethod
    def from_function(cls, function: Any, file: str) -> "PlaceInFolder":
        return cls(function, file)


class PlacedCode(CompileResultCacheImpl):
    _locator_classes = (PlaceInFolder,)


class KeptCode(FunctionCache):
    """The code of a function on disk, which is kept if there is room for it."""

    _impl_class = PlacedCode

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            log.warning("The compiled loops cannot be kept for the next start: %s", error.strerror or error)


class WholeVectors(JITCPUCodegen):
    """Lets LLVM use vectors of 512 bits; on Intel's processors it prefers 256, since the first with 512 slowed down."""

    def _customize_tm_features(self) -> str:
        return f"{super()._customize_tm_features()},-prefer-256-bit"


@contextmanager
def whole_vectors(context: Any) -> Iterator[None]:
    """What is compiled meanwhile, with its own calls, may use whole vectors. For one thread at a time."""
    usual = context._internal_codegen
    if has_fast_whole_vectors():
        context._internal_codegen = generator_for_whole_vectors()
    try:
        yield
    finally:
        context._internal_codegen = usual


def has_fast_whole_vectors() -> bool:
    """Whether vectors of 512 bits are no slower here than shorter ones, and whoever started Python left them on."""
    chosen = numba.config.CPU_FEATURES is not None or not numba.config.ENABLE_AVX
    return not chosen and bool(binding.get_host_cpu_features().get("avx512bf16"))


@functools.cache
def generator_for_whole_vectors() -> WholeVectors:
    return WholeVectors("headscope")


def array_at(context: Any, builder: Any, kind: Any, address: Any, count: Any, size: Any) -> Any:
    """The LLVM value of an array of the type ``kind``: ``count`` numbers of ``size`` bytes at ``address``."""
    array = context.make_array(kind)(context, builder)
    populate_array(array, address, shape=[count], strides=[size], itemsize=size, meminfo=None)
    return array._getvalue()
