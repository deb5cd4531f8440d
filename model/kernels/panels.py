"""The matrix product that takes nearly all the time: a few rows times panels of weights, with the sums in registers.

A matrix ``(d_out, d_in)`` is stored as panels of ``WIDTH`` outputs: for each input in turn, the ``WIDTH`` weights that
multiply it lie side by side, ``(d_out / WIDTH, d_in, WIDTH)``. Each input then takes one multiplication and addition of
whole vectors, and a panel is fetched from memory once for all rows. Every sum runs over the inputs in their order, so
that the result for a row does not depend on the other rows.

Weights are stored as float32, float16 or bfloat16, and widened to float32 in the registers, which is exact. Numba has
no 16-bit floats, so an int16 array holds float16. A uint32 array holds bfloat16: each number is a pair of weights, for
two adjacent inputs of the same output, with the first in the lower half. Where the inputs are pairs of bfloat16, too, a
single instruction adds both products to a float32 sum.

Alternatively, weights are stored as 8-bit integers with a scale per output, for inputs that are 8-bit integers, too.
Each number of an int32 array then holds the weights for four adjacent inputs, because one instruction adds up that many
products. It multiplies unsigned by signed integers, so ``UNSIGNED`` is added to the stored weights, and ``UNSIGNED``
times the sum of the inputs is subtracted from the result.
"""

import functools
import platform
from typing import Any, NamedTuple

from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from .intrinsics import (
    BYTES,
    FLOATS,
    HALF,
    INT8,
    INT32,
    INT64,
    INTS,
    LANES,
    BFloat,
    load,
    splat,
    store,
)
from .jit import EXACT, compiled

WIDTH = 32  # outputs in a panel
PAIR = 2  # bfloat16 weights stored as one number
GROUP = 4  # int8 weights stored as one number
UNSIGNED = 128  # added to an int8 weight to make it unsigned
VECTORS = WIDTH // LANES  # vectors per input of a panel
PREFETCH_BYTES = 4096  # bytes by which weights are prefetched before they are needed
CACHE_LINE = 64  # bytes
SMALL = ir.VectorType(INT8, LANES * GROUP)
BFLOATS = ir.VectorType(BFloat(), LANES * PAIR)


class Matrix(NamedTuple):
    """Where a matrix ``(width, depth)`` lies in flat ``weights``: its first panel, and the stride from one to the next.

    ``depth`` counts numbers per output, each for one input or a group. ``bias`` ``(width,)`` and, for integers,
    ``scale`` ``(width,)`` begin with the entry of its first output. While a panel is read, so is the memory ``ahead``
    bytes further, which is needed next.
    """

    weights: NDArray[Any]
    start: int
    panel_size: int
    depth: int
    width: int
    scale: NDArray[Any]
    bias: NDArray[Any]
    ahead: int


class Rows(NamedTuple):
    """Rows in a flat float32 array: the start of the first, and the distance from one to the next, in numbers."""

    numbers: NDArray[Any]
    start: int
    stride: int


class IntegerRows(NamedTuple):
    """Rows in a flat int8 array, with the scale of each row and ``UNSIGNED`` times the sum of its integers."""

    numbers: NDArray[Any]
    start: int
    stride: int
    scales: NDArray[Any]
    offsets: NDArray[Any]


class PairRows(NamedTuple):
    """Rows of bfloat16 in a flat uint16 array, multiplied in pairs."""

    numbers: NDArray[Any]
    start: int
    stride: int


class Share(NamedTuple):
    """Which rows a thread writes: every ``step``-th from ``first`` on, into the scratch memory of thread ``place``."""

    place: int
    first: int
    step: int


class PairScratch(NamedTuple):
    """Scratch memory for rows rounded to bfloat16: ``numbers`` uint16 has a row for each thread."""

    numbers: NDArray[Any]


class IntegerScratch(NamedTuple):
    """Scratch memory for quantized rows; each array has a row for each thread.

    ``numbers`` int8, ``scales`` ``(max_rows,)`` float32, ``offsets`` ``(max_rows,)`` int32.
    """

    numbers: NDArray[Any]
    scales: NDArray[Any]
    offsets: NDArray[Any]


class TileScratch(NamedTuple):
    """Scratch memory for products in tiles; see ``tiles``. Attention's products use only what it contains."""

    rounded: PairScratch | IntegerScratch


@compiled(EXACT)
def in_groups(count, group):
    """How many groups ``count`` numbers take."""
    return (count + group - 1) // group


@compiled(EXACT)
def padded(count):
    """``count`` rounded up to whole panels."""
    return (count + WIDTH - 1) // WIDTH * WIDTH


@compiled(EXACT)
def stride_for(count, size):
    """The distance between rows of ``count`` numbers of ``size`` bytes, which has room for whole panels and tiles.

    It is an odd number of cache lines: many rows that a cache can hold only in the same few places displace each other.
    """
    return (in_groups(padded(count) * size, CACHE_LINE) | 1) * CACHE_LINE // size


@intrinsic(prefer_literal=True)
def multiply(typing, matrix, panel, x, out, row, add, n_rows, n_panels):
    """Compute rows ``row``, ``row + 1``, ... of ``out``: rows of ``x`` times panels of ``matrix`` from ``panel`` on.

    ``n_rows`` and ``n_panels`` are literals, because each combination is compiled to keep its sums in registers. If
    ``add`` is set, the results are added to the contents of ``out``.
    """
    signature = types.void(matrix, types.intp, x, out, types.intp, types.boolean, n_rows, n_panels)
    row_count, panel_count = n_rows.literal_value, n_panels.literal_value
    kind = matrix.types[0].dtype
    sums = sums_for(matrix, x)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        operands = Operands(context, builder, signature, arguments)
        _, _, _, _, row, add, *_ = arguments
        panels, inputs = operands.panels(panel_count), operands.rows(2, row, row_count)
        depth, ahead = operands.field(0, 3), operands.field(0, 7)
        totals = [[cgutils.alloca_once_value(builder, sums.zero) for _ in range(panel_count * VECTORS)] for _ in inputs]
        with cgutils.for_range(builder, depth) as loop:
            weights = []
            for start in panels:
                address = builder.gep(start, [times(builder, loop.index, WIDTH)])
                prefetch(builder, builder.gep(builder.bitcast(address, BYTES), [ahead]), WIDTH * kind.bitwidth // 8)
                for vector in range(VECTORS):
                    at_vector = builder.gep(address, [ir.Constant(INT64, LANES * vector)])
                    weights.append(sums.read_weights(builder, at_vector))
            for numbers, row_totals in zip(inputs, totals, strict=True):
                read = sums.read_inputs(builder, builder.gep(numbers, [times(builder, loop.index, sums.group)]))
                for vectors, total in zip(weights, row_totals, strict=True):
                    for weight, number in zip(vectors, read, strict=True):
                        builder.store(sums.add(builder, builder.load(total), weight, number), total)

        for i, (target, row_totals) in enumerate(zip(operands.rows(3, row, row_count), totals, strict=True)):
            at_row = builder.add(row, ir.Constant(INT64, i))
            for vector, total in enumerate(row_totals):
                operands.write(operands.finished(sums, builder.load(total), at_row, vector), target, vector, add)
        return context.get_dummy_value()

    return signature, generate


class Operands:
    """The arguments of a product as LLVM values: a matrix, a panel, rows of inputs, rows of outputs, and others."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        self.context, self.builder, self.arguments, self.kinds = context, builder, arguments, signature.args

    def field(self, argument: int, index: int) -> Any:
        return self.builder.extract_value(self.arguments[argument], index)

    def pointer(self, argument: int, field: int, *offsets: Any) -> Any:
        """A pointer into the array that is a field of an argument."""
        array = self.context.make_array(self.kinds[argument].types[field])
        address = array(self.context, self.builder, self.field(argument, field)).data
        for offset in offsets:
            address = self.builder.gep(address, [offset])
        return address

    def panels(self, count: int) -> list[Any]:
        """Pointers to ``count`` panels, beginning with that of the second argument."""
        first, size = self.field(0, 1), self.field(0, 2)
        start = self.builder.add(first, self.builder.mul(self.arguments[1], size))
        return [self.pointer(0, 0, start, times(self.builder, size, i)) for i in range(count)]

    def rows(self, argument: int, row: Any, count: int, step: int = 1) -> list[Any]:
        """Pointers to ``count`` rows of an argument, ``step`` rows apart, beginning with ``row``."""
        first, stride = self.field(argument, 1), self.field(argument, 2)
        start = self.builder.add(first, self.builder.mul(row, stride))
        return [self.pointer(argument, 0, start, times(self.builder, stride, step * i)) for i in range(count)]

    def finished(self, sums: Any, total: Any, row: Any, vector: int) -> Any:
        """A vector of outputs of ``row``, from the sums of its products."""
        output = self.output(vector)
        if isinstance(sums, IntegerSums):
            addresses = self.pointer(2, 4, row), self.pointer(2, 3, row), self.pointer(0, 5, output)
            total = sums.in_floats(self.builder, total, *addresses)
        return self.builder.fadd(total, load(self.builder, self.pointer(0, 6, output), FLOATS))

    def write(self, found: Any, target: Any, vector: int, add: Any) -> None:
        """Write a vector of outputs into the row that begins at ``target``, or add it to what is there."""
        address = self.builder.gep(target, [self.output(vector)])
        more = self.builder.fadd(load(self.builder, address, FLOATS), found)
        store(self.builder, self.builder.select(add, more, found), address)

    def output(self, vector: int) -> Any:
        """The output with which a vector begins, counted from that of the second argument, a panel."""
        return self.builder.add(times(self.builder, self.arguments[1], WIDTH), ir.Constant(INT64, LANES * vector))


def times(builder: Any, number: Any, factor: int) -> Any:
    return builder.mul(number, ir.Constant(INT64, factor))


class FloatSums:
    """Code generation for float32 sums of products with weights stored as ``kind``."""

    zero = ir.Constant(FLOATS, [0.0] * LANES)

    def __init__(self, kind: types.Type) -> None:
        self.kind = kind
        self.group = PAIR if kind == types.uint32 else 1  # inputs per stored number

    def read_weights(self, builder: Any, address: Any) -> list[Any]:
        """The weights in ``LANES`` stored numbers as float32: a vector for each input of the group."""
        if self.kind == types.float32:
            return [load(builder, address, FLOATS)]
        if self.kind == types.int16:
            return [builder.fpext(load(builder, address, ir.VectorType(HALF, LANES)), FLOATS)]
        if self.kind == types.uint32:  # a bfloat16 is the upper half of a float32
            pairs = load(builder, address, INTS)
            first = builder.shl(pairs, ir.Constant(INTS, [16] * LANES))
            second = builder.and_(pairs, ir.Constant(INTS, [0xFFFF0000] * LANES))
            return [builder.bitcast(first, FLOATS), builder.bitcast(second, FLOATS)]
        raise TypeError(f"weights of type {self.kind}")

    def read_inputs(self, builder: Any, address: Any) -> list[Any]:
        """The inputs of a group, each in all lanes."""
        addresses = [builder.gep(address, [ir.Constant(INT64, i)]) for i in range(self.group)]
        return [splat(builder, builder.load(address)) for address in addresses]

    def add(self, builder: Any, total: Any, weight: Any, number: Any) -> Any:
        """``total + weight * number``, rounded once."""
        function = ir.FunctionType(FLOATS, [FLOATS] * 3)
        call = cgutils.get_or_insert_function(builder.module, function, f"llvm.fma.v{LANES}f32")
        return builder.call(call, [weight, number, total])


class PairSums:
    """Code generation for float32 sums of products of bfloat16, ``PAIR`` at a time."""

    group, zero = PAIR, ir.Constant(FLOATS, [0.0] * LANES)

    def read_weights(self, builder: Any, address: Any) -> list[Any]:
        return [load(builder, address, INTS)]

    def read_inputs(self, builder: Any, address: Any) -> list[Any]:
        return [splat(builder, builder.load(builder.bitcast(address, INT32.as_pointer())))]

    def add(self, builder: Any, total: Any, weight: Any, number: Any) -> Any:
        """``total`` plus, in each lane, the products of a pair of weights and a pair of inputs."""
        function = ir.FunctionType(FLOATS, [FLOATS, BFLOATS, BFLOATS])
        call = cgutils.get_or_insert_function(builder.module, function, "llvm.x86.avx512bf16.dpbf16ps.512")
        return builder.call(call, [total, builder.bitcast(weight, BFLOATS), builder.bitcast(number, BFLOATS)])


class IntegerSums:
    """Code generation for sums of products of 8-bit integers, ``GROUP`` at a time."""

    group, zero = GROUP, ir.Constant(INTS, [0] * LANES)

    def read_weights(self, builder: Any, address: Any) -> list[Any]:
        return [load(builder, address, SMALL)]

    def read_inputs(self, builder: Any, address: Any) -> list[Any]:
        group = builder.load(builder.bitcast(address, INT32.as_pointer()))
        return [builder.bitcast(splat(builder, group), SMALL)]

    def add(self, builder: Any, total: Any, weight: Any, number: Any) -> Any:
        """``total`` plus, in each lane, the ``GROUP`` products of unsigned weights and signed inputs."""
        if has_integer_products():
            function = ir.FunctionType(INTS, [INTS, SMALL, SMALL])
            call = cgutils.get_or_insert_function(builder.module, function, "llvm.x86.avx512.vpdpbusd.512")
            return builder.call(call, [total, weight, number])
        wide = ir.VectorType(INT32, LANES * GROUP)
        products = builder.mul(builder.zext(weight, wide), builder.sext(number, wide))
        for i in range(GROUP):
            lanes = ir.Constant(INTS, list(range(i, LANES * GROUP, GROUP)))
            total = builder.add(total, builder.shuffle_vector(products, products, lanes))
        return total

    def in_floats(self, builder: Any, total: Any, offset: Any, scale: Any, scales: Any) -> Any:
        """``total`` minus the row's offset, times the scale of the row and the scales of the outputs."""
        exact = builder.sitofp(builder.sub(total, splat(builder, builder.load(offset))), FLOATS)
        scaled = builder.fmul(exact, splat(builder, builder.load(scale)))
        return builder.fmul(scaled, load(builder, scales, FLOATS))


def sums_for(matrix: Any, x: Any) -> FloatSums | PairSums | IntegerSums:
    """Code generation for products of Numba's types of a ``Matrix`` and of rows of inputs."""
    if x.instance_class is PairRows:
        return PairSums()
    kind = matrix.types[0].dtype
    return IntegerSums() if kind == types.int32 else FloatSums(kind)


@functools.cache
def has_integer_products() -> bool:
    """Whether this processor adds the products of 8-bit integers in one instruction."""
    return has_feature("avx512vnni")


@functools.cache
def has_pair_products() -> bool:
    """Whether this processor adds the products of bfloat16 in one instruction."""
    return has_feature("avx512bf16")


def has_feature(name: str) -> bool:
    """Whether this is an x86 processor with the feature that LLVM calls ``name``."""
    return platform.machine().lower() in {"x86_64", "amd64"} and bool(get_host_cpu_features().get(name))


def prefetch(builder: Any, address: Any, n_bytes: int, *, is_output: bool = False) -> None:
    """Prefetch ``n_bytes`` of memory: on its own, a processor prefetches only within a page.

    Inputs are fetched into the second-level cache, outputs into the first, for writing.
    """
    function = ir.FunctionType(ir.VoidType(), [BYTES, INT32, INT32, INT32])
    call = cgutils.get_or_insert_function(builder.module, function, "llvm.prefetch.p0")
    for offset in range(0, n_bytes, CACHE_LINE):
        cache_line = builder.gep(address, [ir.Constant(INT64, offset)])
        options = (1, 3, 1) if is_output else (0, 2, 1)  # whether to write, how close to the core, whether it is data
        builder.call(call, [cache_line, *(ir.Constant(INT32, option) for option in options)])
