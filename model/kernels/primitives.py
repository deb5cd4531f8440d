"""What loops need beside Numba's own language: numbers as bits, 16-bit floats, addresses, the largest of many."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .panels import FLOAT, FLOATS, HALF, INT32, INT64, LANES, load


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
def address_of(typing, address):
    """An address, int64, as a pointer to float32."""
    pointer = types.CPointer(types.float32)
    return pointer(types.int64), lambda _context, builder, _, given: builder.inttoptr(given[0], FLOAT.as_pointer())


@intrinsic
def widen_one(typing, array, index):
    """``array[index]`` as float32, from one of the types in which `panels` stores weights, but int8."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place, kind = element(context, builder, signature, arguments), signature.args[0].dtype
        if kind == types.float32:
            return builder.load(place)
        if kind == types.int16:
            return builder.fpext(builder.load(builder.bitcast(place, HALF.as_pointer())), FLOAT)
        upper = builder.shl(builder.zext(builder.load(place), INT32), ir.Constant(INT32, 16))
        return builder.bitcast(upper, FLOAT)

    return types.float32(array, types.intp), generate


@intrinsic
def largest(typing, array):
    """The largest number of a float32 array; NaN is passed over, and -inf is the largest of none.

    LLVM makes no vectors of a plain loop that does this, as the order would matter if there were NaN.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        (count,) = cgutils.unpack_tuple(builder, array.shape)
        lanes, one = ir.Constant(INT64, LANES), ir.Constant(INT64, 1)
        vectors = cgutils.alloca_once_value(builder, ir.Constant(FLOATS, [float("-inf")] * LANES))
        single = cgutils.alloca_once_value(builder, ir.Constant(FLOAT, float("-inf")))

        def compare(found: Any, best: Any) -> None:
            known = builder.load(best)
            builder.store(builder.select(builder.fcmp_ordered(">", found, known), found, known), best)

        whole = builder.udiv(count, lanes)
        with cgutils.for_range(builder, whole) as loop:
            compare(load(builder, builder.gep(array.data, [builder.mul(loop.index, lanes)]), FLOATS), vectors)
        best = builder.load(vectors)
        for lane in range(LANES):
            compare(builder.extract_element(best, ir.Constant(INT32, lane)), single)
        with cgutils.for_range_slice(builder, builder.mul(whole, lanes), count, one) as (index, _):
            compare(builder.load(builder.gep(array.data, [index])), single)
        return builder.load(single)

    return types.float32(array), generate
