"""The product that nearly all the time goes into: a few rows times panels of weights, with the sums in registers.

A matrix ``(d_out, d_in)`` is stored as panels of `WIDTH` outputs: for each input in turn, the `WIDTH` weights that
multiply it lie side by side, ``(d_out / WIDTH, d_in, WIDTH)``. Each input then takes one multiplication and addition of
whole vectors, and a panel is fetched from memory once for all rows. Every sum runs over the inputs in their order, so
that the result for a row does not depend on the rows beside it.

Weights are stored as float32, float16, bfloat16, or int8 with a scale per output. They are widened to float32 in the
registers, which is exact. Numba knows no 16-bit floats: an int16 array holds float16, a uint16 array bfloat16.
"""

from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

WIDTH = 32  # outputs in a panel
LANES = 16  # numbers in a vector: one register of AVX-512, two of AVX2, four of NEON
VECTORS = WIDTH // LANES  # for each input of a panel
AHEAD = 2048  # bytes of weights that are asked for before they are needed

BYTES = ir.IntType(8).as_pointer()
INT64, INT32, INT16, INT8 = (ir.IntType(bits) for bits in (64, 32, 16, 8))
FLOAT, HALF = ir.FloatType(), ir.HalfType()
FLOATS, INTS = ir.VectorType(FLOAT, LANES), ir.VectorType(INT32, LANES)


class Matrix(NamedTuple):
    """Where a matrix ``(width, depth)`` lies in flat ``weights``: its first panel and the numbers from one to the next.

    ``bias`` ``(width,)`` and, for int8, ``scale`` ``(width,)`` begin with those of its first output.
    """

    weights: NDArray[Any]
    start: int
    panel_size: int
    depth: int
    width: int
    scale: NDArray[Any]
    bias: NDArray[Any]


class Rows(NamedTuple):
    """Rows in a flat float32 array: where the first begins, and the numbers from one to the next."""

    numbers: NDArray[Any]
    start: int
    stride: int


@intrinsic(prefer_literal=True)
def multiply(typing, matrix, panel, x, out, row, add, n_rows, n_panels):
    """Rows ``row``, ``row + 1``, ... of ``out``: those of ``x`` times the panels of ``matrix`` from ``panel`` on.

    ``n_rows`` and ``n_panels`` are literals, since each combination keeps its sums in registers of its own. The results
    are added to what is in ``out`` if ``add`` is set.
    """
    signature = types.void(matrix, types.intp, x, out, types.intp, types.boolean, n_rows, n_panels)
    row_count, panel_count = n_rows.literal_value, n_panels.literal_value
    kind = matrix.types[0].dtype

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        matrix, panel, _, _, row, add, *_ = arguments

        def pointer(argument: int, field: int, *offsets: Any) -> Any:
            """Into the array that is a field of an argument."""
            array = builder.extract_value(arguments[argument], field)
            place = context.make_array(signature.args[argument].types[field])(context, builder, array).data
            for offset in offsets:
                place = builder.gep(place, [offset])
            return place

        def times(number: Any, factor: int) -> Any:
            return builder.mul(number, ir.Constant(INT64, factor))

        def starts(argument: int) -> list[Any]:
            first, stride = (builder.extract_value(arguments[argument], field) for field in (1, 2))
            at_row = builder.add(first, builder.mul(row, stride))
            return [pointer(argument, 0, at_row, times(stride, i)) for i in range(row_count)]

        first, panel_size, depth = (builder.extract_value(matrix, field) for field in (1, 2, 3))
        at_panel = builder.add(first, builder.mul(panel, panel_size))
        panels = [pointer(0, 0, at_panel, times(panel_size, i)) for i in range(panel_count)]
        inputs = starts(2)
        zero = ir.Constant(FLOATS, [0.0] * LANES)
        sums = [[cgutils.alloca_once_value(builder, zero) for _ in range(panel_count * VECTORS)] for _ in inputs]
        fused = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(FLOATS, [FLOATS] * 3), f"llvm.fma.v{LANES}f32"
        )
        with cgutils.for_range(builder, depth) as loop:
            weights = []
            for start in panels:
                place = builder.gep(start, [times(loop.index, WIDTH)])
                prefetch(builder, place)
                for vector in range(VECTORS):
                    weights.append(widen(builder, builder.gep(place, [ir.Constant(INT64, LANES * vector)]), kind))
            for numbers, row_sums in zip(inputs, sums, strict=True):
                number = splat(builder, builder.load(builder.gep(numbers, [loop.index])))
                for weight, total in zip(weights, row_sums, strict=True):
                    builder.store(builder.call(fused, [weight, number, builder.load(total)]), total)

        for target, row_sums in zip(starts(3), sums, strict=True):
            for vector, total in enumerate(row_sums):
                output = builder.add(times(panel, WIDTH), ir.Constant(INT64, LANES * vector))
                result = builder.load(total)
                if kind == types.int8:
                    result = builder.fmul(result, load(builder, pointer(0, 5, output), FLOAT))
                result = builder.fadd(result, load(builder, pointer(0, 6, output), FLOAT))
                place = builder.gep(target, [output])
                more = builder.fadd(load(builder, place, FLOAT), result)
                store(builder, builder.select(add, more, result), place)
        return context.get_dummy_value()

    return signature, generate


def widen(builder: Any, place: Any, kind: types.Type) -> Any:
    """`LANES` stored weights as float32."""
    if kind == types.float32:
        return load(builder, place, FLOAT)
    if kind == types.int16:
        return builder.fpext(load(builder, place, HALF), FLOATS)
    if kind == types.uint16:  # the upper half of a float32
        upper = builder.shl(builder.zext(load(builder, place, INT16), INTS), ir.Constant(INTS, [16] * LANES))
        return builder.bitcast(upper, FLOATS)
    if kind == types.int8:
        return builder.sitofp(builder.sext(load(builder, place, INT8), INTS), FLOATS)
    raise TypeError(f"weights of type {kind}")


def prefetch(builder: Any, place: Any) -> None:
    """Ask for what lies `AHEAD` bytes after a place: by itself, a processor looks ahead only within a page."""
    function = ir.FunctionType(ir.VoidType(), [BYTES, INT32, INT32, INT32])
    call = cgutils.get_or_insert_function(builder.module, function, "llvm.prefetch.p0")
    ahead = builder.gep(builder.bitcast(place, BYTES), [ir.Constant(INT64, AHEAD)])
    builder.call(call, [ahead, *(ir.Constant(INT32, number) for number in (0, 2, 1))])  # to read, into L2, data


def splat(builder: Any, number: Any) -> Any:
    """A vector with ``number`` in every lane."""
    undefined = ir.Constant(FLOATS, ir.Undefined)
    first = builder.insert_element(undefined, number, ir.Constant(INT32, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(INTS, [0] * LANES))


def load(builder: Any, place: Any, element: Any) -> Any:
    """`LANES` numbers of type ``element``, wherever they lie."""
    vector = builder.load(builder.bitcast(place, ir.VectorType(element, LANES).as_pointer()))
    vector.align = 1
    return vector


def store(builder: Any, vector: Any, place: Any) -> None:
    builder.store(vector, builder.bitcast(place, vector.type.as_pointer())).align = 1
