"""The measures and thumbnails of new attention weights: ``drawing.summary`` in one compiled call.

On a busy server, the dozens of small tensor operations that compute the same would each have to get the GIL back.
"""

import numpy as np

from .intrinsics import bits_of, float_of
from .jit import EXACT, REORDER, compiled

ZERO, ONE, MOST_CODE = np.float32(0), np.float32(1), np.float32(255)
SQRT_HALF_BITS = np.int32(0x3F3504F3)  # of the square root of 1/2, where mantissas begin
MANTISSA_BITS, EXPONENT_MASK = np.int32(23), np.int32(-0x800000)
# 2 / ln 2 times the coefficients of artanh.
LOG_1, LOG_3, LOG_5, LOG_7, LOG_9 = (np.float32(2 / np.log(2) / n) for n in (1, 3, 5, 7, 9))


@compiled(EXACT)
def log2(x):
    """The binary logarithm to about 1e-7, of 0 about -127: exponent plus a series in (m - 1) / (m + 1)."""
    exponent = (bits_of(x) - SQRT_HALF_BITS) & EXPONENT_MASK
    mantissa = float_of(bits_of(x) - exponent)  # from the square root of 1/2 to that of 2
    t = (mantissa - ONE) / (mantissa + ONE)
    square = t * t
    series = t * (LOG_1 + square * (LOG_3 + square * (LOG_5 + square * (LOG_7 + square * LOG_9))))
    return np.float32(exponent >> MANTISSA_BITS) + series


@compiled(REORDER)
def measures_of(row, query):
    """The entropy in bits, mean distance and variation from uniform weights of one query's ``row``."""
    entropy, distance, variation = ZERO, ZERO, ZERO
    uniform = ONE / np.float32(len(row))
    for key in range(len(row)):
        weight = row[key]
        entropy -= weight * log2(weight)
        distance += weight * np.float32(abs(query - key))
        excess = weight - uniform
        variation += ZERO if excess < ZERO else excess  # also NaN
    return entropy, distance, variation


@compiled(EXACT)
def summarise(block, first, is_square, distances, sums, factor, cells, largest):
    """Add the rows of ``block`` ``(pictures, rows, keys)``, from query ``first`` on, to ``sums`` and ``cells``.

    ``sums`` ``(pictures, 5 + len(distances))`` are those of ``FRAME_MEASURES``, ``cells`` ``(pictures, side, side)``
    the codes of ``Thumbnails``, whose tiles are of ``factor`` by ``factor``. ``largest`` ``(keys,)`` is scratch memory,
    zeros.
    """
    n_pictures, n_rows, n_keys = block.shape
    for picture in range(n_pictures):
        total, codes = sums[picture], cells[picture]
        entropies = distances_back = variations = firsts = previous = 0.0  # in float64
        for i in range(n_rows):
            query = first + i
            row = block[picture, i][: n_keys if is_square else query + 1]
            if query:
                entropy, distance, variation = measures_of(row, query)
                entropies += entropy
                distances_back += distance
                firsts += row[0]
                previous += row[query - 1]
                variations += variation
            for j in range(len(distances)):
                if query >= distances[j]:
                    total[5 + j] += row[query - distances[j]]
            raise_to(largest[: len(row)], row)
            if i == n_rows - 1 or query % factor == 0:  # the last row of its tiles
                pool(largest[: len(row)], factor, codes[(query + factor - 1) // factor])
        total[0] += entropies
        total[1] += distances_back
        total[2] += firsts
        total[3] += previous
        total[4] += variations


@compiled(EXACT)
def raise_to(largest, row):
    """Raise each of the ``largest`` to the weight in ``row`` if that is larger, which NaN is not."""
    for key in range(len(row)):
        largest[key] = row[key] if row[key] > largest[key] else largest[key]


@compiled(EXACT)
def pool(largest, factor, codes):
    """Raise ``codes`` to those of the largest of each ``factor`` weights after the first; forget these weights."""
    tile = start = 0
    end = 1
    while start < len(largest):
        most = ZERO
        for key in range(start, min(end, len(largest))):
            most = max(most, largest[key])
            largest[key] = ZERO
        code = np.uint8(np.rint(np.sqrt(min(most, ONE)) * MOST_CODE))
        codes[tile] = max(codes[tile], code)
        tile, start, end = tile + 1, end, end + factor
