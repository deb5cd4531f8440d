"""Intrinsics that Numba lacks: bit casts, 16-bit floats, addresses, atomic memory access, and waiting."""

import functools
import platform
import sys
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ..seams.numba import array_at

AT_ONCE = 4  # vectors that are compared independently of each other
LANES = 16  # numbers in a vector: one register of AVX-512, two of AVX2, four of NEON
PAUSES = {"x86_64": "llvm.x86.sse2.pause", "amd64": "llvm.x86.sse2.pause"}
BYTES = ir.IntType(8).as_pointer()
INT64, INT32, INT16, INT8 = (ir.IntType(bits) for bits in (64, 32, 16, 8))
FLOAT, HALF = ir.FloatType(), ir.HalfType()
FLOAT_BYTES, BFLOAT_BYTES = 4, 2
FLOATS, INTS = ir.VectorType(FLOAT, LANES), ir.VectorType(INT32, LANES)


def splat(builder: Any, number: Any) -> Any:
    """A vector with ``number`` in every lane."""
    undefined = ir.Constant(ir.VectorType(number.type, LANES), ir.Undefined)
    first = builder.insert_element(undefined, number, ir.Constant(INT32, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(INTS, [0] * LANES))


def load(builder: Any, address: Any, vector: Any) -> Any:
    """Load a ``vector`` without assuming alignment."""
    loaded = builder.load(builder.bitcast(address, vector.as_pointer()))
    loaded.align = 1
    return loaded


def store(builder: Any, vector: Any, address: Any) -> None:
    builder.store(vector, builder.bitcast(address, vector.type.as_pointer())).align = 1


def element(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """A pointer to ``array[index]``, the first two arguments."""
    array, index = arguments[:2]
    return builder.gep(context.make_array(signature.args[0])(context, builder, array).data, [index])


@intrinsic
def bits_of(typing, number):
    """The bits of a float32 as an int32."""
    return types.int32(types.float32), lambda _context, builder, _, given: builder.bitcast(given[0], INT32)


@intrinsic
def float_of(typing, bits):
    """The float32 with the bits of an int32."""
    return types.float32(types.int32), lambda _context, builder, _, given: builder.bitcast(given[0], FLOAT)


@intrinsic
def floats_at(typing, address, count):
    """An array of ``count`` float32 numbers that begins at ``address``, int64."""
    kind = types.Array(types.float32, 1, "C")

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        address, count = arguments
        data = builder.inttoptr(address, FLOAT.as_pointer())
        return array_at(context, builder, kind, data, count, INT64(FLOAT_BYTES))

    return kind(types.int64, types.int64), generate


@intrinsic
def widen_one(typing, array, index):
    """``array[index]`` as float32, from float32, float16 (as int16) or bfloat16 (as uint16)."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, kind = element(context, builder, signature, arguments), signature.args[0].dtype
        if kind == types.float32:
            return builder.load(address)
        if kind == types.int16:
            return builder.fpext(builder.load(builder.bitcast(address, HALF.as_pointer())), FLOAT)
        upper = builder.shl(builder.zext(builder.load(address), INT32), ir.Constant(INT32, 16))
        return builder.bitcast(upper, FLOAT)

    return types.float32(array, types.intp), generate


@intrinsic
def largest(typing, array):
    """The largest number of a float32 array; NaN is ignored, and the result for no numbers is -inf.

    LLVM does not vectorise a plain loop for this, because its result would depend on the order if there were NaN.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        (count,) = cgutils.unpack_tuple(builder, array.shape)
        bests = [
            cgutils.alloca_once_value(builder, ir.Constant(FLOATS, [float("-inf")] * LANES)) for _ in range(AT_ONCE)
        ]

        def larger(found: Any, known: Any) -> Any:
            return builder.select(builder.fcmp_ordered(">", found, known), found, known)

        def compare(start: Any, best: Any) -> None:
            builder.store(larger(load(builder, builder.gep(array.data, [start]), FLOATS), builder.load(best)), best)

        def whole(size: int) -> Any:
            return builder.sub(count, builder.urem(count, ir.Constant(INT64, size)))

        def every(size: int, start: Any, end: Any) -> Any:
            return cgutils.for_range_slice(builder, start, end, ir.Constant(INT64, size))

        several, vectors = whole(AT_ONCE * LANES), whole(LANES)
        with every(AT_ONCE * LANES, ir.Constant(INT64, 0), several) as (index, _):
            for i, best in enumerate(bests):
                compare(builder.add(index, ir.Constant(INT64, i * LANES)), best)
        with every(LANES, several, vectors) as (index, _):
            compare(index, bests[0])
        found = functools.reduce(larger, [builder.load(best) for best in bests])
        for lanes in (8, 4, 2, 1):  # each lane with the one that many lanes further
            shifted = ir.Constant(INTS, [(lane + lanes) % LANES for lane in range(LANES)])
            found = larger(builder.shuffle_vector(found, found, shifted), found)
        single = cgutils.alloca_once_value(builder, builder.extract_element(found, ir.Constant(INT32, 0)))
        with every(1, vectors, count) as (index, _):
            number = builder.load(builder.gep(array.data, [index]))
            builder.store(larger(number, builder.load(single)), single)
        return builder.load(single)

    return types.float32(array), generate


@intrinsic
def atomic_add(typing, array, index, number):
    """Atomically add ``number`` to ``array[index]``, int64, with sequentially consistent order."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.atomic_rmw("add", element(context, builder, signature, arguments), arguments[2], "seq_cst")

    return types.int64(array, types.intp, types.int64), generate


@intrinsic
def atomic_store(typing, array, index, number):
    """Set ``array[index]``, int64: a thread that reads it with ``atomic_read`` sees all earlier writes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[2], element(context, builder, signature, arguments), "release", 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.int64), generate


@intrinsic
def atomic_read(typing, array, index):
    """``array[index]``, int64, and with it everything that was written before the ``atomic_store`` that set it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(element(context, builder, signature, arguments), "acquire", 8)

    return types.int64(array, types.intp), generate


@intrinsic
def pause(typing):
    """Tell the processor that this thread is spinning."""

    def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        name = PAUSES.get(platform.machine().lower())
        if name:
            builder.call(cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), []), name), [])
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def yield_core(typing):
    """Yield the core to another thread, if the system has a call for it."""

    def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        if sys.platform != "win32":
            function = ir.FunctionType(ir.IntType(32), [])
            builder.call(cgutils.get_or_insert_function(builder.module, function, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), generate
