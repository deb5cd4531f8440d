"""What threads need that share a forward pass: counting and waiting, with nothing that Python would have to run."""

import platform
import sys
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .primitives import element

PAUSES = {"x86_64": "llvm.x86.sse2.pause", "amd64": "llvm.x86.sse2.pause"}


@intrinsic
def add(typing, array, index, number):
    """Add ``number`` to ``array[index]``, int64, in one step that all threads see in the same order."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.atomic_rmw("add", element(context, builder, signature, arguments), arguments[2], "seq_cst")

    return types.int64(array, types.intp, types.int64), generate


@intrinsic
def read(typing, array, index):
    """``array[index]``, int64, as another thread left it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(element(context, builder, signature, arguments), "acquire", 8)

    return types.int64(array, types.intp), generate


@intrinsic
def pause(typing):
    """Tell the processor that this thread only waits."""

    def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        name = PAUSES.get(platform.machine().lower())
        if name:
            builder.call(cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), []), name), [])
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def give_way(typing):
    """Let another thread have the core, where the system has a call for it."""

    def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        if sys.platform != "win32":
            function = ir.FunctionType(ir.IntType(32), [])
            builder.call(cgutils.get_or_insert_function(builder.module, function, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), generate
