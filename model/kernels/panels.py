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

import numpy as np
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from .functions import ROUNDING, ROUNDING_BITS
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
    bits_of,
    float_of,
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
FILLED = 64  # rounded inputs of a row are followed by zeros up to a multiple of this: whole cache lines and tiles
LARGEST = np.float32(127)
MIN_SIZE = np.float32(1e-30)  # a row of smaller numbers counts as zero
MAGNITUDE_BITS = np.int32(0x7FFFFFFF)  # the bits of a float32 except its sign
SMALL = ir.VectorType(INT8, LANES * GROUP)
BFLOATS = ir.VectorType(BFloat(), LANES * PAIR)
UPPER = np.int32(16)  # bits below those of a bfloat16 in a float32
HALF_UNIT, ODD = np.int32(0x7FFF), np.int32(1)
LOWER_BITS = np.int32(0xFFFF)
INFINITE, QUIET_NAN = np.int32(0x7F800000), np.int32(0x7FC0)


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
                operands.write(sums, builder.load(total), at_row, target, vector, add)
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

    def write(self, sums: Any, total: Any, row: Any, target: Any, vector: int, add: Any) -> None:
        """Write a vector of sums as outputs of ``row``, which begins at ``target``, or add it to them."""
        builder = self.builder
        output = builder.add(times(builder, self.arguments[1], WIDTH), ir.Constant(INT64, LANES * vector))
        if isinstance(sums, IntegerSums):
            addresses = self.pointer(2, 4, row), self.pointer(2, 3, row), self.pointer(0, 5, output)
            total = sums.in_floats(builder, total, *addresses)
        result = builder.fadd(total, load(builder, self.pointer(0, 6, output), FLOATS))
        address = builder.gep(target, [output])
        more = builder.fadd(load(builder, address, FLOATS), result)
        store(builder, builder.select(add, more, result), address)


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


def prefetch(builder: Any, address: Any, n_bytes: int) -> None:
    """Prefetch ``n_bytes`` of memory: on its own, a processor prefetches only within a page."""
    function = ir.FunctionType(ir.VoidType(), [BYTES, INT32, INT32, INT32])
    call = cgutils.get_or_insert_function(builder.module, function, "llvm.prefetch.p0")
    for offset in range(0, n_bytes, CACHE_LINE):
        cache_line = builder.gep(address, [ir.Constant(INT64, offset)])
        builder.call(call, [cache_line, *(ir.Constant(INT32, number) for number in (0, 2, 1))])  # read into L2, data


@compiled(EXACT)
def quantize_row(x, out):
    """Write ``x`` into ``out`` as integers from -127 to 127; return their scale and their sum.

    If any number is infinite or NaN, so is the scale.
    """
    most = np.int32(0)
    for i in range(len(x)):
        # As integers, magnitudes have the same order as floats, with NaN the largest.
        most = max(most, bits_of(x[i]) & MAGNITUDE_BITS)
    size = float_of(most)
    if size < MIN_SIZE:
        size = MIN_SIZE
    factor = LARGEST / size
    total = np.int32(0)
    for i in range(len(x)):
        number = bits_of(x[i] * factor + ROUNDING) - ROUNDING_BITS
        out[i] = number
        total += number
    return size / LARGEST, total


@compiled(EXACT)
def bfloat16_bits(x):
    """The bits of ``x``, rounded to the nearest bfloat16, ties to even, in the lower half; NaN stays NaN."""
    bits = bits_of(x)
    rounded = ((bits + HALF_UNIT + ((bits >> UPPER) & ODD)) >> UPPER) & LOWER_BITS
    return rounded if bits & MAGNITUDE_BITS <= INFINITE else QUIET_NAN


@compiled(EXACT)
def round_to_bfloat16(x, out):
    """Write the bits of ``x``, rounded to bfloat16, into ``out``."""
    for i in range(len(x)):
        out[i] = bfloat16_bits(x[i])


def inputs_for(panels, x, n_rows, depth, scratch, thread):
    """The rows of ``x`` as input of a product with ``panels``: unchanged, or rounded into this thread's ``scratch``."""


@overload(inputs_for)
def choose_inputs(panels, x, n_rows, depth, scratch, thread):
    if issubclass(scratch.instance_class, TileScratch):
        return tile_inputs
    if panels.dtype == types.int32:
        return integer_inputs
    in_pairs = panels.dtype == types.uint32 and scratch.instance_class is PairScratch
    return pair_inputs if in_pairs else lambda panels, x, n_rows, depth, scratch, thread: x


def tile_inputs(panels, x, n_rows, depth, scratch, thread):
    return inputs_for(panels, x, n_rows, depth, scratch.rounded, thread)


def pair_inputs(panels, x, n_rows, depth, scratch, thread):
    numbers, stride = scratch.numbers[thread], in_groups(depth, FILLED) * FILLED
    for row in range(n_rows):
        out = numbers[row * stride :][:stride]
        out[depth:] = 0
        round_to_bfloat16(x.numbers[x.start + row * x.stride :][:depth], out)
    return PairRows(numbers, 0, stride)


def integer_inputs(panels, x, n_rows, depth, scratch, thread):
    numbers, scales, offsets = scratch.numbers[thread], scratch.scales[thread], scratch.offsets[thread]
    stride = in_groups(depth, FILLED) * FILLED
    for row in range(n_rows):
        out = numbers[row * stride :][:stride]
        out[depth:] = 0
        scale, total = quantize_row(x.numbers[x.start + row * x.stride :][:depth], out)
        scales[row], offsets[row] = scale, np.int32(UNSIGNED) * total
    return IntegerRows(numbers, 0, stride, scales, offsets)


# The keys of a text are a matrix with an output for each position, its values one with an input for each.


def write_outputs(panels, start, output, n, weights, depth):
    """Write the first ``depth`` of ``weights`` in ``n`` rows, rounded as inputs are, as outputs from ``output`` on.

    The matrix of ``depth`` numbers per output begins at ``start`` in ``panels``.
    """


@overload(write_outputs)
def choose_write_outputs(panels, start, output, n, weights, depth):
    group = PAIR if panels.dtype == types.uint32 else 1

    def write(panels, start, output, n, weights, depth):
        numbers = weights.numbers.view(panels.dtype)
        for i in range(n):
            at = start + (output + i) // WIDTH * WIDTH * depth + (output + i) % WIDTH
            row = (weights.start + i * weights.stride) // group
            for j in range(depth):
                panels[at + j * WIDTH] = numbers[row + j]

    return write


def write_inputs(panels, start, panel_size, index, n, n_known, weights, width):
    """Write the first ``width`` of ``weights`` in ``n`` rows, rounded as inputs are, as inputs from ``index`` on.

    The panels of the matrix begin at ``start``, each of ``panel_size``. ``n_known`` is ``n``, or one more if another
    row follows. That row completes the last pair, so that writing the same rows again never changes those that follow,
    which another thread may have written already. The second half of a pair without a second input is 0.
    """


@overload(write_inputs)
def choose_write_inputs(panels, start, panel_size, index, n, n_known, weights, width):
    def in_floats(panels, start, panel_size, index, n, n_known, weights, width):
        for i in range(n):
            row = weights.numbers[weights.start + i * weights.stride :][:width]
            for first in range(0, width, WIDTH):
                part, numbers = panels[start + first // WIDTH * panel_size + (index + i) * WIDTH :], row[first:][:WIDTH]
                for j in range(len(numbers)):
                    part[j] = numbers[j]

    def in_pairs(panels, start, panel_size, index, n, n_known, weights, width):
        for i in range(-(index % PAIR), n, PAIR):
            lower = weights.numbers[weights.start + max(i, 0) * weights.stride :][:width]
            upper = weights.numbers[weights.start + (i + 1) * weights.stride :][:width]
            for first in range(0, width, WIDTH):
                part = panels[start + first // WIDTH * panel_size + (index + i) // PAIR * WIDTH :]
                below, above = lower[first:][:WIDTH], upper[first:][:WIDTH]
                if i < 0:
                    for j in range(len(above)):
                        part[j] = (part[j] & LOWER_BITS) | np.uint32(above[j]) << UPPER
                elif i + 1 < n_known:
                    for j in range(len(below)):
                        part[j] = np.uint32(below[j]) | np.uint32(above[j]) << UPPER
                else:
                    for j in range(len(below)):
                        part[j] = below[j]

    return in_pairs if panels.dtype == types.uint32 else in_floats
