"""The inputs of products: rounded to bfloat16 or 8-bit integers, as the weights require, or left as they are.

What a text keeps of its tokens is rounded like inputs, and written into panels like weights.
"""

import numpy as np
from numba import types
from numba.extending import overload

from .functions import ROUNDING, ROUNDING_BITS, scaled
from .intrinsics import bits_of, float_of
from .jit import EXACT, compiled
from .panels import PAIR, UNSIGNED, WIDTH, IntegerRows, PairRows, PairScratch, TileScratch, in_groups

FILLED = 64  # rounded inputs of a row are followed by zeros up to a multiple of this: whole cache lines and tiles
LARGEST = np.float32(127)
MIN_SIZE = np.float32(1e-30)  # a row of smaller numbers counts as zero
MAGNITUDE_BITS = np.int32(0x7FFFFFFF)  # the bits of a float32 except its sign
UPPER = np.int32(16)  # bits below those of a bfloat16 in a float32
HALF_UNIT, ODD = np.int32(0x7FFF), np.int32(1)
LOWER_BITS = np.int32(0xFFFF)
INFINITE, QUIET_NAN = np.int32(0x7F800000), np.int32(0x7FC0)


@compiled(EXACT)
def filled(depth):
    """The size of a row of ``depth`` rounded inputs."""
    return in_groups(depth, FILLED) * FILLED


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


def scale_into(numbers, factor, out):
    """Write ``numbers`` times ``factor`` into ``out``, as float32 or, if it is uint16, rounded to bfloat16."""


@overload(scale_into)
def choose_scale_into(numbers, factor, out):
    def round_into(numbers, factor, out):
        for i in range(len(numbers)):
            out[i] = bfloat16_bits(numbers[i] * factor)

    return round_into if out.dtype == types.uint16 else lambda numbers, factor, out: scaled(numbers, factor, out)


def rounded_or(rounded, stride, rows):
    """Rows that lie in ``rounded`` if these are the bits of bfloat16, uint16; otherwise ``rows``."""


@overload(rounded_or)
def choose_rounded(rounded, stride, rows):
    if rounded.dtype == types.uint16:
        return lambda rounded, stride, rows: PairRows(rounded, 0, stride)
    return lambda rounded, stride, rows: rows


def inputs_for(panels, x, n_rows, depth, scratch, thread):
    """The rows of ``x`` as input of a product with ``panels``: unchanged, or rounded into this thread's ``scratch``."""


@overload(inputs_for)
def choose_inputs(panels, x, n_rows, depth, scratch, thread):
    if x.instance_class is PairRows:
        return lambda panels, x, n_rows, depth, scratch, thread: x
    if issubclass(scratch.instance_class, TileScratch):
        return tile_inputs
    if panels.dtype == types.int32:
        return integer_inputs
    in_pairs = panels.dtype == types.uint32 and scratch.instance_class is PairScratch
    return pair_inputs if in_pairs else lambda panels, x, n_rows, depth, scratch, thread: x


def tile_inputs(panels, x, n_rows, depth, scratch, thread):
    return inputs_for(panels, x, n_rows, depth, scratch.rounded, thread)


def pair_inputs(panels, x, n_rows, depth, scratch, thread):
    numbers, stride = scratch.numbers[thread], filled(depth)
    for row in range(n_rows):
        out = numbers[row * stride :][:stride]
        out[depth:] = 0
        round_to_bfloat16(x.numbers[x.start + row * x.stride :][:depth], out)
    return PairRows(numbers, 0, stride)


def integer_inputs(panels, x, n_rows, depth, scratch, thread):
    numbers, scales, offsets = scratch.numbers[thread], scratch.scales[thread], scratch.offsets[thread]
    stride = filled(depth)
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
