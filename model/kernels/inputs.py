"""The inputs of products: rounded to bfloat16 or 8-bit integers, as the weights require, or left as they are.

What a text keeps of its tokens is rounded like inputs, and written into panels like weights.
"""

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from .functions import ONE, ROUNDING, ROUNDING_BITS, exponentials_from, scaled
from .intrinsics import bits_of, float_of
from .jit import EXACT, compiled
from .panels import WIDTH, IntegerRows, PairRows, PairScratch, Rows, TileScratch, padded, stride_for
from .sums import PAIR, UNSIGNED

LARGEST = np.float32(127)
MIN_SIZE = np.float32(1e-30)  # a row of smaller numbers counts as zero
MAGNITUDE_BITS = np.int32(0x7FFFFFFF)  # the bits of a float32 except its sign
UPPER = np.int32(16)  # bits below those of a bfloat16 in a float32
HALF_UNIT, ODD = np.int32(0x7FFF), np.int32(1)
LOWER_BITS = np.int32(0xFFFF)
INFINITE, QUIET_NAN = np.int32(0x7F800000), np.int32(0x7FC0)


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


def rows_of(numbers, count):
    """The rows of ``count`` numbers in a flat array: ``PairRows`` if they are the bits of bfloat16, uint16."""


@overload(rows_of)
def choose_rows(numbers, count):
    if numbers.dtype == types.uint16:
        return lambda numbers, count: PairRows(numbers, 0, stride_for(count, numbers.itemsize))
    return lambda numbers, count: Rows(numbers, 0, stride_for(count, numbers.itemsize))


def rounded_or(rounded, rows):
    """``rounded`` if these are ``PairRows``; otherwise ``rows``."""


@overload(rounded_or)
def choose_rounded(rounded, rows):
    return (lambda rounded, rows: rounded) if rounded.instance_class is PairRows else lambda rounded, rows: rows


def inputs_for(panels, x, n_rows, depth, scratch, share):
    """The rows of ``x`` as input of a product with ``panels``: unchanged, or rounded into ``scratch``.

    This thread rounds its ``share`` of the rows.
    """


@overload(inputs_for)
def choose_inputs(panels, x, n_rows, depth, scratch, share):
    if x.instance_class is PairRows:
        return lambda panels, x, n_rows, depth, scratch, share: x
    if issubclass(scratch.instance_class, TileScratch):
        return tile_inputs
    if panels.dtype == types.int32:
        return integer_inputs
    in_pairs = panels.dtype == types.uint32 and scratch.instance_class is PairScratch
    return pair_inputs if in_pairs else lambda panels, x, n_rows, depth, scratch, share: x


def tile_inputs(panels, x, n_rows, depth, scratch, share):
    return inputs_for(panels, x, n_rows, depth, scratch.rounded, share)


def pair_inputs(panels, x, n_rows, depth, scratch, share):
    numbers = scratch.numbers[share.place]
    stride = stride_for(depth, numbers.itemsize)  # the numbers are followed by zeros: tiles are read as a whole
    for row in range(share.first, n_rows, share.step):
        out = numbers[row * stride :][:stride]
        out[depth:] = 0
        round_to_bfloat16(x.numbers[x.start + row * x.stride :][:depth], out)
    return PairRows(numbers, 0, stride)


def integer_inputs(panels, x, n_rows, depth, scratch, share):
    numbers, scales, offsets = scratch.numbers[share.place], scratch.scales[share.place], scratch.offsets[share.place]
    stride = stride_for(depth, numbers.itemsize)
    for row in range(share.first, n_rows, share.step):
        out = numbers[row * stride :][:stride]
        out[depth:] = 0
        scale, total = quantize_row(x.numbers[x.start + row * x.stride :][:depth], out)
        scales[row], offsets[row] = scale, np.int32(UNSIGNED) * total
    return IntegerRows(numbers, 0, stride, scales, offsets)


class Queries(NamedTuple):
    """The queries of ``n_tokens`` successive tokens, of one head, or those of one token, of several heads.

    The last token has ``n_keys`` keys; each looks at no more than the last ``window`` of its own.
    """

    vectors: Rows
    n: int
    n_tokens: int
    n_keys: int
    window: int


@compiled(EXACT)
def n_keys_of(queries, i):
    """The number of keys of query ``i``."""
    return queries.n_keys - queries.n_tokens + 1 + min(i, queries.n_tokens - 1)


def weights_for(panels, scores, queries, scale, is_recorded, scratch, share):
    """The attention weights of ``Queries`` as input of a product with values in ``panels``, like ``inputs_for``.

    They are computed from ``scores`` and replace them if they are recorded or are not rounded.
    """


@overload(weights_for)
def choose_weights(panels, scores, queries, scale, is_recorded, scratch, share):
    if issubclass(scratch.instance_class, TileScratch):
        return tile_weights
    in_pairs = panels.dtype == types.uint32 and scratch.instance_class is PairScratch
    return pair_weights if in_pairs else float_weights


def tile_weights(panels, scores, queries, scale, is_recorded, scratch, share):
    return weights_for(panels, scores, queries, scale, is_recorded, scratch.rounded, share)


def pair_weights(panels, scores, queries, scale, is_recorded, scratch, share):
    rounded = rows_of(scratch.numbers[share.place], queries.n_keys)
    for i in range(queries.n):
        row = scores.numbers[scores.start + i * scores.stride :][: padded(queries.n_keys)]
        n_keys = n_keys_of(queries, i)
        factor = exponentials_from(row, n_keys - queries.window, n_keys, scale)
        if is_recorded:
            scaled(row, factor, row)
            factor = ONE
        scale_into(row, factor, rounded.numbers[i * rounded.stride :])
    return rounded


def float_weights(panels, scores, queries, scale, is_recorded, scratch, share):
    for i in range(queries.n):
        row = scores.numbers[scores.start + i * scores.stride :][: padded(queries.n_keys)]
        n_keys = n_keys_of(queries, i)
        scaled(row, exponentials_from(row, n_keys - queries.window, n_keys, scale), row)
    return scores


# The keys of a text are a matrix with an output for each position, its values one with an input for each.


def write_outputs(panels, start, output, n, weights, depth):
    """Write the first ``depth`` of ``weights`` in ``n`` rows, rounded as inputs are, as outputs from ``output`` on.

    The matrix of ``depth`` numbers per output begins at ``start`` in ``panels``.
    """


@overload(write_outputs)
def choose_write_outputs(panels, start, output, n, weights, depth):
    group = PAIR if panels.dtype == types.uint32 else 1

    def write(panels, start, output, n, weights, depth):
        numbers, stride = weights.numbers.view(panels.dtype), weights.stride // group
        done = 0
        while done < n:  # as far as a panel goes
            at = (output + done) % WIDTH
            count = min(n - done, WIDTH - at)
            panel = panels[start + (output + done - at) * depth + at :]
            rows = numbers[weights.start // group + done * stride :]
            for j in range(depth):
                part, column = panel[j * WIDTH :][:count], rows[j:]
                for i in range(len(part)):
                    part[i] = column[np.uint64(i) * np.uint64(stride)]  # an index that cannot be negative
            done += count

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
