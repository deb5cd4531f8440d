"""What threads need that work on one forward pass: counting, waiting, and nothing that Python would have to run."""

import platform
import sys
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

INT64 = ir.IntType(64)
PAUSES = {"x86_64": "llvm.x86.sse2.pause", "amd64": "llvm.x86.sse2.pause"}


def element(context: Any, builder: Any, signature: Any, array: Any, index: Any) -> Any:
    return builder.gep(context.make_array(signature.args[0])(context, builder, array).data, [index])


@intrinsic
def add(typing, array, index, number):  # type: ignore[no-untyped-def]
    """Add ``number`` to ``array[index]``, int64, as one action that all threads see in the same order."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, index, number = arguments
        return builder.atomic_rmw("add", element(context, builder, signature, array, index), number, "seq_cst")

    return types.int64(array, types.intp, types.int64), generate


@intrinsic
def read(typing, array, index):  # type: ignore[no-untyped-def]
    """``array[index]``, int64, as another thread left it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(element(context, builder, signature, *arguments), "acquire", 8)

    return types.int64(array, types.intp), generate


@intrinsic
def pause(typing):  # type: ignore[no-untyped-def]
    """Tell the processor that this thread only waits."""

    def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        name = PAUSES.get(platform.machine().lower())
        if name:
            builder.call(cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), []), name), [])
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def give_way(typing):  # type: ignore[no-untyped-def]
    """Let another thread have the core, where the system has a call for it."""

    def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        if sys.platform != "win32":
            function = ir.FunctionType(ir.IntType(32), [])
            builder.call(cgutils.get_or_insert_function(builder.module, function, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), generate
