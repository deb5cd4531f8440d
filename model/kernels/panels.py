"""The matrix product that takes nearly all the time: a few rows times panels of weights, with the sums in registers.

A matrix ``(d_out, d_in)`` is stored as panels of ``WIDTH`` outputs: for each input in turn, the ``WIDTH`` weights that
multiply it lie side by side, ``(d_out / WIDTH, d_in, WIDTH)``. Each input then takes one multiplication and addition of
whole vectors, and a panel is fetched from memory once for all rows. Every sum runs over the inputs in their order, so
that the result for a row does not depend on the other rows. How many sums are computed at once depends on how many
registers there are for them.

Weights are stored as float32, float16 or bfloat16, and widened to float32 in the registers, which is exact. Numba has
no 16-bit floats, so an int16 array holds float16. A uint32 array holds bfloat16: each number is a pair of weights, for
two adjacent inputs of the same output, with the first in the lower half. Where the inputs are pairs of bfloat16, too, a
single instruction adds both products to a float32 sum.

Alternatively, weights are stored as 8-bit integers with a scale per output, for inputs that are 8-bit integers, too.
Each number of an int32 array then holds the weights for four adjacent inputs, because one instruction adds up that many
products. It multiplies unsigned by signed integers, so ``UNSIGNED`` is added to the stored weights, and ``UNSIGNED``
times the sum of the inputs is subtracted from the result. Without that instruction, AVX2's adds pairs of products.
"""

from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from .intrinsics import BYTES, FLOATS, INT32, INT64, LANES, load, store
from .jit import EXACT, compiled
from .sums import FloatSums, IntegerSums, PairSums, has_feature, integer_sums

PREFETCH_BYTES = 4096  # bytes by which weights are prefetched before they are needed
CACHE_LINE = 64  # bytes
# AVX-512 has 32 registers of a whole vector each; AVX2 has 16 of half a vector, NEON 32 of a quarter.
HAS_WIDE_REGISTERS = has_feature("avx512f")
VECTORS = 2 if HAS_WIDE_REGISTERS else 1  # per input of a panel
WIDTH = VECTORS * LANES  # outputs in a panel
PANELS_AT_ONCE = 4  # panels multiplied together with a single row, so that enough independent sums are in flight


def rows_at_once(n_panels: int) -> int:
    """How many rows are multiplied together with 1, 2 or 4 panels."""
    if n_panels == 1:
        return 8 if HAS_WIDE_REGISTERS else 6
    return PANELS_AT_ONCE // n_panels


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


@compiled(EXACT)
def with_panel_ahead(matrix):
    """``matrix``, with the next panel read ahead."""
    weights, scale, bias = matrix.weights, matrix.scale, matrix.bias
    ahead = matrix.panel_size * weights.itemsize
    return Matrix(weights, matrix.start, matrix.panel_size, matrix.depth, matrix.width, scale, bias, ahead)


@intrinsic(prefer_literal=True)
def multiply(typing, matrix, panel, x, out, row, add, n_rows, share, n_shares, n_panels):
    """Compute rows ``row``, ``row + 1``, ... of ``out``: rows of ``x`` times panels of ``matrix`` from ``panel`` on.

    ``n_panels`` is a literal, and ``n_rows`` at most ``rows_at_once(n_panels)``: each combination is compiled to keep
    its sums in registers. If ``add`` is set, the results are added to the contents of ``out``. This call prefetches
    share ``share`` of ``n_shares`` of what is needed next.
    """
    options = types.intp, types.boolean, types.intp, types.intp, types.intp, n_panels
    signature = types.void(matrix, types.intp, x, out, *options)
    panel_count = n_panels.literal_value
    sums = sums_for(matrix, x)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        operands = Operands(context, builder, signature, arguments)
        done = builder.append_basic_block("done")
        choice = builder.switch(arguments[6], done)
        for row_count in range(1, rows_at_once(panel_count) + 1):
            block = builder.append_basic_block(f"rows_{row_count}")
            choice.add_case(ir.Constant(INT64, row_count), block)
            builder.position_at_end(block)
            multiply_block(operands, sums, row_count, panel_count)
            builder.branch(done)
        builder.position_at_end(done)
        return context.get_dummy_value()

    return signature, generate


def multiply_block(operands: "Operands", sums: Any, row_count: int, panel_count: int) -> None:
    """Generate ``multiply`` for one number of rows and of panels."""
    builder, (_, _, _, _, row, add, _, share, n_shares, _) = operands.builder, operands.arguments
    kind = operands.kinds[0].types[0].dtype
    panels, inputs = operands.panels(panel_count), operands.rows(2, row, row_count)
    depth, ahead = operands.field(0, 3), operands.field(0, 7)
    next_rows = Prefetched(builder, panels, ahead, kind.bitwidth // 8, depth, share, n_shares)
    totals = [[cgutils.alloca_once_value(builder, sums.zero) for _ in range(panel_count * VECTORS)] for _ in inputs]
    with cgutils.for_range(builder, depth) as loop:
        weights = []
        next_rows.prefetch_one()
        for start in panels:
            address = builder.gep(start, [times(builder, loop.index, WIDTH)])
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


class Prefetched:
    """Code generation for a share of the rows of panels, ``size`` bytes a number and ``ahead`` bytes further on."""

    def __init__(
        self, builder: Any, panels: list[Any], ahead: Any, size: int, depth: Any, share: Any, n_shares: Any
    ) -> None:
        self.builder, self.n_shares, self.row_bytes = builder, n_shares, WIDTH * size
        self.at = cgutils.alloca_once_value(builder, ahead)
        with builder.if_then(builder.icmp_signed(">", share, ir.Constant(INT64, 0))):  # division takes long
            first = builder.udiv(builder.mul(share, depth), n_shares)
            builder.store(builder.add(ahead, times(builder, first, self.row_bytes)), self.at)
        self.left = cgutils.alloca_once_value(builder, n_shares)  # calls until the next row
        self.panels = [builder.bitcast(start, BYTES) for start in panels]

    def prefetch_one(self) -> None:
        """Prefetch a row of each panel, every ``n_shares`` calls."""
        builder = self.builder
        left = builder.sub(builder.load(self.left), ir.Constant(INT64, 1))
        builder.store(left, self.left)
        with builder.if_then(builder.icmp_signed("==", left, ir.Constant(INT64, 0))):
            builder.store(self.n_shares, self.left)
            at = builder.load(self.at)
            for start in self.panels:
                prefetch(builder, builder.gep(start, [at]), self.row_bytes)
            builder.store(builder.add(at, ir.Constant(INT64, self.row_bytes)), self.at)


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


def sums_for(matrix: Any, x: Any) -> FloatSums | PairSums | IntegerSums:
    """Code generation for products of Numba's types of a ``Matrix`` and of rows of inputs."""
    if x.instance_class is PairRows:
        return PairSums()
    kind = matrix.types[0].dtype
    return integer_sums() if kind == types.int32 else FloatSums(kind)


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
