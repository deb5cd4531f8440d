"""Inputs of a product in 8-bit integers: each row rounded with a scale of its own, as `Int8Linear` does."""

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray

from .functions import ROUNDING, ROUNDING_BITS
from .jit import EXACT, compiled
from .panels import GROUP, UNSIGNED, IntegerRows
from .primitives import bits_of, float_of

LARGEST = np.float32(127)
LEAST = np.float32(1e-30)  # a row of smaller numbers counts as zeros
SIZE = np.int32(0x7FFFFFFF)  # the bits of a float32 but for its sign


class Integers(NamedTuple):
    """Room for rows in integers; each array has a row for each thread.

    ``numbers`` int8, ``scales`` ``(max_rows,)`` float32, ``offsets`` ``(max_rows,)`` int32.
    """

    numbers: NDArray[Any]
    scales: NDArray[Any]
    offsets: NDArray[Any]


@compiled(EXACT)
def quantize(x, out):
    """``out``: the numbers ``x`` as integers up to 127 times the scale that is returned, with the integers' sum.

    Where one is infinite or NaN, the scale is too.
    """
    most = np.int32(0)
    for i in range(len(x)):
        most = max(
            most, bits_of(x[i]) & SIZE
        )  # as integers, sizes compare as they do as numbers, and NaN is the largest
    size = float_of(most)
    if size < LEAST:
        size = LEAST
    factor = LARGEST / size
    total = np.int32(0)
    for i in range(len(x)):
        number = bits_of(x[i] * factor + ROUNDING) - ROUNDING_BITS
        out[i] = number
        total += number
    return size / LARGEST, total


def inputs_for(panels, x, n_rows, depth, room, thread):
    """The rows of ``x`` as a product with ``panels`` reads them: as they are, or integers in this thread's ``room``."""


@overload(inputs_for)
def choose_inputs(panels, x, n_rows, depth, room, thread):
    if panels.dtype != types.uint8:
        return lambda panels, x, n_rows, depth, room, thread: x
    return integer_inputs


def integer_inputs(panels, x, n_rows, depth, room, thread):
    numbers, scales, offsets = room.numbers[thread], room.scales[thread], room.offsets[thread]
    stride = (depth + GROUP - 1) // GROUP * GROUP
    for row in range(n_rows):
        out = numbers[row * stride :][:stride]
        out[depth:] = 0
        scale, total = quantize(x.numbers[x.start + row * x.stride :][:depth], out)
        scales[row], offsets[row] = scale, np.int32(UNSIGNED) * total
    return IntegerRows(numbers, 0, stride, scales, offsets)
