"""The product that nearly all the time goes into: a few rows times a panel of weights, kept in registers.

A matrix ``(d_out, d_in)`` is stored as panels of `WIDTH` outputs: for each input in turn, the `WIDTH` weights that
multiply it lie side by side, ``(d_out / WIDTH, d_in, WIDTH)``. Each input is then one multiplication and addition of
whole vectors, and a panel is read from memory once for all rows. Every sum runs over the inputs in their order, so that
the result for a row does not depend on the rows beside it.

Weights may be stored as float32, float16, bfloat16 or int8 with a scale per output. They are widened to float32 in the
registers, which is exact. Numba knows no 16-bit floats: an int16 array holds float16, a uint16 array bfloat16.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

WIDTH = 32  # outputs in a panel
LANES = 16  # numbers in a vector: one AVX-512 register, two of AVX2, four of NEON
AHEAD = 2048  # bytes of weights that are asked for before they are needed
VECTORS = WIDTH // LANES  # in a panel, for each input

INT64, INT32, INT16, INT8 = (ir.IntType(bits) for bits in (64, 32, 16, 8))
FLOAT, HALF = ir.FloatType(), ir.HalfType()
FLOATS, INTS = ir.VectorType(FLOAT, LANES), ir.VectorType(INT32, LANES)


@intrinsic(prefer_literal=True)
def multiply(  # type: ignore[no-untyped-def]
    typing, weights, weights_at, panel_size, depth, scale, bias, out_at, x, x_at, x_stride, out, out_row, out_stride, add,
    rows, panels,
):  # fmt: skip
    """``rows`` rows of ``x`` times ``panels`` panels of weights, ``depth`` inputs deep and ``panel_size`` numbers apart.

    Both counts are literals, since each combination keeps its sums in its own registers. Row ``r`` is read from
    ``x[x_at + r * x_stride:]`` and its results go to ``out[out_row + r * out_stride + out_at:]``; they are added to what
    is there if ``add`` is set. ``bias[out_at:]`` is added to the sums, after those of int8 weights were multiplied by
    ``scale[out_at:]``. All arrays are flat.
    """
    n_rows, n_panels = rows.literal_value, panels.literal_value
    signature = types.void(
        weights, types.intp, types.intp, types.intp, scale, bias, types.intp, x, types.intp, types.intp, out, types.intp,
        types.intp, types.boolean, rows, panels,
    )  # fmt: skip

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (weights, weights_at, panel_size, depth, scale, bias, out_at, x, x_at, x_stride, out, out_row, out_stride, add, *_) = arguments
        kind = signature.args[0].dtype

        def pointer(argument: int, array: Any, *offsets: Any) -> Any:
            data = context.make_array(signature.args[argument])(context, builder, array).data
            for offset in offsets:
                data = builder.gep(data, [offset])
            return data

        def times(value: Any, factor: int) -> Any:
            return builder.mul(value, ir.Constant(INT64, factor))

        fused = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(FLOATS, [FLOATS] * 3), f"llvm.fma.v{LANES}f32"
        )
        n_vectors = n_panels * VECTORS
        panel_starts = [pointer(0, weights, weights_at, times(panel_size, panel)) for panel in range(n_panels)]
        row_starts = [pointer(7, x, x_at, times(x_stride, row)) for row in range(n_rows)]
        zero = ir.Constant(FLOATS, [0.0] * LANES)
        sums = [[cgutils.alloca_once_value(builder, zero) for _ in range(n_vectors)] for _ in range(n_rows)]

        with cgutils.for_range(builder, depth) as loop:
            start = times(loop.index, WIDTH)
            places = [
                builder.gep(panel, [builder.add(start, ir.Constant(INT64, LANES * vector))])
                for panel in panel_starts
                for vector in range(VECTORS)
            ]
            for place in places[::VECTORS]:
                prefetch(builder, place)
            widened = [widen(builder, place, kind) for place in places]
            for row, row_sums in zip(row_starts, sums, strict=True):
                factor = splat(builder, builder.load(builder.gep(row, [loop.index])))
                for weight, total in zip(widened, row_sums, strict=True):
                    builder.store(builder.call(fused, [weight, factor, builder.load(total)]), total)

        for row, row_sums in enumerate(sums):
            for vector, total in enumerate(row_sums):
                place = builder.add(out_at, ir.Constant(INT64, LANES * vector))
                value = builder.load(total)
                if kind == types.int8:
                    value = builder.fmul(value, load(builder, pointer(4, scale, place), FLOAT))
                value = builder.fadd(value, load(builder, pointer(5, bias, place), FLOAT))
                target = pointer(10, out, out_row, times(out_stride, row), place)
                sum_with_old = builder.fadd(load(builder, target, FLOAT), value)
                store(builder, builder.select(add, sum_with_old, value), target)
        return context.get_dummy_value()

    return signature, generate


def widen(builder: Any, pointer: Any, kind: types.Type) -> Any:
    """`LANES` stored weights as float32."""
    if kind == types.float32:
        return load(builder, pointer, FLOAT)
    if kind == types.int16:
        return builder.fpext(load(builder, pointer, HALF), FLOATS)
    if kind == types.uint16:  # the upper half of a float32
        upper = builder.shl(builder.zext(load(builder, pointer, INT16), INTS), ir.Constant(INTS, [16] * LANES))
        return builder.bitcast(upper, FLOATS)
    if kind == types.int8:
        return builder.sitofp(builder.sext(load(builder, pointer, INT8), INTS), FLOATS)
    raise TypeError(f"weights of type {kind}")


def prefetch(builder: Any, pointer: Any) -> None:
    """Ask for the memory `AHEAD` bytes after ``pointer``: by itself, a processor looks ahead only within a page."""
    bytes_at = ir.IntType(8).as_pointer()
    function = ir.FunctionType(ir.VoidType(), [bytes_at, INT32, INT32, INT32])
    call = cgutils.get_or_insert_function(builder.module, function, "llvm.prefetch.p0")
    ahead = builder.gep(builder.bitcast(pointer, bytes_at), [ir.Constant(INT64, AHEAD)])
    builder.call(call, [ahead, *(ir.Constant(INT32, number) for number in (0, 2, 1))])  # to read, into L2, data


def splat(builder: Any, number: Any) -> Any:
    """A vector that holds ``number`` in every lane."""
    undefined = ir.Constant(FLOATS, ir.Undefined)
    first = builder.insert_element(undefined, number, ir.Constant(INT32, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(INTS, [0] * LANES))


def load(builder: Any, pointer: Any, element: Any) -> Any:
    vector = builder.load(builder.bitcast(pointer, ir.VectorType(element, LANES).as_pointer()))
    vector.align = 1
    return vector


def store(builder: Any, vector: Any, pointer: Any) -> None:
    builder.store(vector, builder.bitcast(pointer, vector.type.as_pointer())).align = 1


@intrinsic
def largest(typing, array, start, count):  # type: ignore[no-untyped-def]
    """The largest of ``array[start : start + count]``, float32; NaN is passed over, and -inf is the largest of none."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, start, count = arguments
        data = builder.gep(context.make_array(signature.args[0])(context, builder, array).data, [start])
        lowest = ir.Constant(FLOAT, float("-inf"))
        best = cgutils.alloca_once_value(builder, ir.Constant(FLOATS, [float("-inf")] * LANES))
        n_vectors = builder.udiv(count, ir.Constant(INT64, LANES))
        with cgutils.for_range(builder, n_vectors) as loop:
            found = load(builder, builder.gep(data, [builder.mul(loop.index, ir.Constant(INT64, LANES))]), FLOAT)
            known = builder.load(best)
            builder.store(builder.select(builder.fcmp_ordered(">", found, known), found, known), best)
        most = cgutils.alloca_once_value(builder, lowest)

        def compare(found: Any) -> None:
            known = builder.load(most)
            builder.store(builder.select(builder.fcmp_ordered(">", found, known), found, known), most)

        vector = builder.load(best)
        for lane in range(LANES):
            compare(builder.extract_element(vector, ir.Constant(INT32, lane)))
        with cgutils.for_range_slice(
            builder, builder.mul(n_vectors, ir.Constant(INT64, LANES)), count, ir.Constant(INT64, 1)
        ) as (index, _):
            compare(builder.load(builder.gep(data, [index])))
        return builder.load(most)

    return types.float32(array, types.intp, types.intp), generate


@intrinsic
def widen_one(typing, array, index):  # type: ignore[no-untyped-def]
    """One stored weight as float32."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, index = arguments
        place = builder.gep(context.make_array(signature.args[0])(context, builder, array).data, [index])
        kind = signature.args[0].dtype
        if kind == types.float32:
            return builder.load(place)
        if kind == types.int16:
            return builder.fpext(builder.load(builder.bitcast(place, HALF.as_pointer())), FLOAT)
        upper = builder.shl(builder.zext(builder.load(place), INT32), ir.Constant(INT32, 16))
        return builder.bitcast(upper, FLOAT)

    return types.float32(array, types.intp), generate


@intrinsic
def address_of(typing, address):  # type: ignore[no-untyped-def]
    """An address, int64, as a pointer to float32."""
    pointer = types.CPointer(types.float32)
    return pointer(types.int64), lambda _context, builder, _, given: builder.inttoptr(given[0], FLOAT.as_pointer())
