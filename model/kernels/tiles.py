"""Products with panels in the matrix tiles of Intel processors (AMX), of bfloat16 or of 8-bit integers.

A tile has up to 16 rows of 64 bytes. One instruction multiplies a tile of inputs, 16 groups of each of 16 rows, by a
tile of weights, 16 outputs for each of these groups, and adds the products to a tile of 16 x 16 sums in 32 bits. Panels
and rounded inputs are read as they lie in memory. The sums of a row depend on its inputs alone, but round differently
from those of other instructions: with bfloat16, every product of a matrix is either in tiles or not.

The instructions are those of Intel's Software Developer's Manual, volume 2. The system keeps the tiles of a thread
until it releases them, so each product configures and releases its own.
"""

import ctypes
import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .intrinsics import BYTES, FLOAT_BYTES, INT8, INT64, LANES, element, load
from .jit import EXACT, compiled
from .panels import VECTORS, WIDTH, Operands, PairRows, in_groups, padded, prefetch, times, with_panel_ahead
from .sums import IntegerSums, PairSums, has_feature

INSTRUCTIONS = "llvm.x86."  # begins the names of LLVM's functions for the instructions
ROWS = 16  # in a tile
TWO_TILES = 2 * ROWS  # rows that are multiplied by a panel at once
ROW_BYTES = 64
HALVES = VECTORS  # tiles side by side in a panel
PANEL_ROW_BYTES = HALVES * ROW_BYTES
INPUTS, WEIGHTS = 4, 6  # the first tiles of each kind, two of each; those before them are for sums
CONFIGURATION_BYTES = 64
CACHED_BYTES = 1 << 20  # of inputs that are multiplied by all panels before others: half of a core's second-level cache
ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA = 158, 0x1023, 18  # Linux's system call on x86-64 and its arguments


def is_permitted() -> bool:
    """Ask the system to let all threads of this process use tiles; whether it does."""
    if sys.platform != "linux" or not has_feature("amx-tile"):
        return False
    return ctypes.CDLL(None).syscall(ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA) == 0


def configuration(n_rows: int) -> Any:
    """The bytes that give tiles of sums and inputs ``n_rows`` rows, and tiles of weights all 16."""
    found = np.zeros(CONFIGURATION_BYTES, np.uint8)
    found[0] = 1  # the palette: eight tiles of at most 1 KB
    found[16:32].view(np.uint16)[:] = ROW_BYTES
    found[48 : 48 + WEIGHTS], found[48 + WEIGHTS : 56] = n_rows, ROWS
    return found


CONFIGURATIONS = np.concatenate([configuration(n_rows) for n_rows in range(1, ROWS + 1)])


def instruct(builder: Any, name: str, *operands: Any) -> None:
    """Generate an instruction on tiles, which are operands of type int8, and memory."""
    function = ir.FunctionType(ir.VoidType(), [operand.type for operand in operands])
    builder.call(cgutils.get_or_insert_function(builder.module, function, INSTRUCTIONS + name), operands)


@intrinsic
def configure(typing, configurations, start):
    """Configure this thread's tiles by the bytes of ``configurations`` from ``start`` on, and set them to zero."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        instruct(builder, "ldtilecfg", builder.bitcast(element(context, builder, signature, arguments), BYTES))
        return context.get_dummy_value()

    return types.void(configurations, types.intp), generate


@intrinsic
def release(typing):
    """Release this thread's tiles, which the system then no longer keeps for it."""

    def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        instruct(builder, "tilerelease")
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic(prefer_literal=True)
def multiply(typing, matrix, panel, x, out, row, add, n_rows, is_whole, share, n_shares, n_tiles, n_panels):
    """``panels.multiply`` for ``n_rows`` rows in ``n_tiles`` and for ``n_panels``: literals with a product up to 2.

    ``is_whole`` says that the tiles, as configured, have ``n_rows`` rows. Otherwise they have more, which are read from
    ``x``, too. This call prefetches share ``share`` of ``n_shares`` of what is needed next.
    """
    options = types.intp, types.boolean, types.intp, types.boolean, types.intp, types.intp, n_tiles, n_panels
    signature = types.void(matrix, types.intp, x, out, *options)
    tile_count, panel_count = n_tiles.literal_value, n_panels.literal_value
    half_count = HALVES * panel_count
    is_float = x.instance_class is PairRows
    sums: Any = PairSums() if is_float else IntegerSums()
    product = "tdpbf16ps" if is_float else "tdpbsud"  # signed inputs, unsigned weights

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        operands = Operands(context, builder, signature, arguments)
        _, _, _, _, row, add, n_rows, is_whole, share, n_shares, *_ = arguments
        pairs = [(i, j) for i in range(tile_count) for j in range(half_count)]
        at_weights, tile_rows = ir.Constant(INT64, PANEL_ROW_BYTES), ir.Constant(INT64, ROWS)
        inputs = [builder.bitcast(start, BYTES) for start in operands.rows(2, row, tile_count, ROWS)]
        input_bytes = times(builder, operands.field(2, 2), x.types[0].dtype.bitwidth // 8)
        panels = [builder.bitcast(start, BYTES) for start in operands.panels(panel_count)]
        depth, ahead = operands.field(0, 3), operands.field(0, 7)
        rest = builder.urem(depth, tile_rows)

        def add_products(step: Any, weights: list[Any]) -> None:
            """Add the products of the inputs of a step and ``weights``, where those of each panel begin."""
            for i, start in enumerate(inputs):
                address = builder.gep(start, [times(builder, step, ROW_BYTES)])
                instruct(builder, "tileloadd64", tile(INPUTS + i), address, input_bytes)
            for j in range(half_count):
                half = tile(WEIGHTS + j % 2)
                address = builder.gep(weights[j // HALVES], [ir.Constant(INT64, j % HALVES * ROW_BYTES)])
                instruct(builder, "tileloadd64", half, address, at_weights)
                for i in range(tile_count):
                    instruct(builder, product, tile(i * half_count + j), tile(INPUTS + i), half)

        for i, j in pairs:
            if is_float:  # every row begins as the bias
                bias = builder.bitcast(operands.pointer(0, 6, operands.output(j)), BYTES)
                instruct(builder, "tileloadd64", tile(i * half_count + j), bias, ir.Constant(INT64, 0))
            else:
                instruct(builder, "tilezero", tile(i * half_count + j))
        steps = builder.udiv(depth, tile_rows)
        with cgutils.for_range(builder, steps) as loop:
            weights = [builder.gep(start, [times(builder, loop.index, ROWS * PANEL_ROW_BYTES)]) for start in panels]
            with builder.if_then(builder.icmp_signed("==", builder.urem(loop.index, n_shares), share)):
                for start in weights:
                    prefetch(builder, builder.gep(start, [ahead]), ROWS * PANEL_ROW_BYTES)
            with builder.if_then(builder.icmp_signed("<", loop.index, ir.Constant(INT64, ROWS))):
                for start in operands.rows(3, builder.add(row, loop.index), tile_count, ROWS):
                    start = builder.bitcast(builder.gep(start, [operands.output(0)]), BYTES)
                    prefetch(builder, start, half_count * ROW_BYTES, is_output=True)
            add_products(loop.index, weights)
        with builder.if_then(builder.icmp_signed("!=", rest, ir.Constant(INT64, 0))):
            at_rest = times(builder, steps, ROWS * PANEL_ROW_BYTES)
            with cgutils.for_range(builder, rest) as loop:
                at = builder.add(at_rest, times(builder, loop.index, PANEL_ROW_BYTES))
                for start in panels:
                    prefetch(builder, builder.gep(start, [builder.add(at, ahead)]), PANEL_ROW_BYTES)
            # The tiles would reach beyond the panels, so they are read from copies followed by zeros.
            copies = []
            for start in panels:
                copy = cgutils.alloca_once(builder, ir.ArrayType(INT8, ROWS * PANEL_ROW_BYTES))
                copies.append(builder.bitcast(copy, BYTES))
                cgutils.memset(builder, copies[-1], ir.Constant(INT64, ROWS * PANEL_ROW_BYTES), 0)
                cgutils.raw_memcpy(builder, copies[-1], builder.gep(start, [at_rest]), rest, PANEL_ROW_BYTES)
            add_products(steps, copies)

        def store_tiles(starts: list[Any], stride: Any) -> None:
            """Store the sums in rows ``stride`` numbers apart; the first rows of the tiles begin at ``starts``."""
            for i, j in pairs:
                address = builder.bitcast(builder.gep(starts[i], [ir.Constant(INT64, LANES * j)]), BYTES)
                instruct(
                    builder, "tilestored64", tile(i * half_count + j), address, times(builder, stride, FLOAT_BYTES)
                )

        kind = sums.zero.type
        is_stored = builder.and_(is_whole, builder.not_(add)) if is_float else ir.Constant(is_whole.type, 0)
        with builder.if_else(is_stored) as (then, otherwise):
            with then:
                starts = operands.rows(3, row, tile_count, ROWS)
                store_tiles([builder.gep(start, [operands.output(0)]) for start in starts], operands.field(3, 2))
            with otherwise:
                size = LANES * half_count
                totals = cgutils.alloca_once(builder, ir.ArrayType(kind.element, ROWS * size * tile_count))
                totals = builder.bitcast(totals, kind.element.as_pointer())
                starts = [builder.gep(totals, [ir.Constant(INT64, i * ROWS * size)]) for i in range(tile_count)]
                store_tiles(starts, ir.Constant(INT64, size))
                with cgutils.for_range(builder, n_rows) as loop:
                    at_row = builder.add(row, loop.index)
                    (target,) = operands.rows(3, at_row, 1)
                    for j in range(half_count):
                        at = builder.add(times(builder, loop.index, size), ir.Constant(INT64, LANES * j))
                        total = load(builder, builder.gep(totals, [at]), kind)
                        if not is_float:
                            total = operands.finished(sums, total, at_row, j)
                        operands.write(total, target, j, add)
        return context.get_dummy_value()

    return signature, generate


def tile(number: int) -> ir.Constant:
    return ir.Constant(INT8, number)


@compiled(EXACT)
def linear_in_tiles(matrix, x, n_rows, out, add, thread, n_threads):
    """``forward.linear`` in tiles."""
    n_panels = padded(matrix.width) // WIDTH
    first, end = n_panels * thread // n_threads, n_panels * (thread + 1) // n_threads
    if n_rows == 0 or first == end:
        return
    configure(CONFIGURATIONS, CONFIGURATION_BYTES * (min(n_rows, ROWS) - 1))
    if n_rows <= ROWS:
        for panel in range(first, end - 1, 2):
            multiply(matrix, panel, x, out, 0, add, n_rows, True, 0, 1, 1, 2)
        if (end - first) % 2:
            multiply(matrix, end - 1, x, out, 0, add, n_rows, True, 0, 1, 1, 1)
        release()
        return
    n_groups = in_groups(n_rows * x.stride * x.numbers.itemsize, CACHED_BYTES)
    n_blocks = in_groups(in_groups(n_rows, n_groups), TWO_TILES)
    if n_blocks > 1:  # there is time to prefetch a whole panel
        matrix = with_panel_ahead(matrix)
    for start in range(0, n_rows, n_blocks * TWO_TILES):
        for panel in range(first, end):
            for block in range(n_blocks):
                row = start + block * TWO_TILES
                n = min(n_rows - row, TWO_TILES)
                if n > ROWS:
                    multiply(matrix, panel, x, out, row, add, n, n == TWO_TILES, block, n_blocks, 2, 1)
                elif n > 0:
                    multiply(matrix, panel, x, out, row, add, n, n == ROWS, block, n_blocks, 1, 1)
    release()
