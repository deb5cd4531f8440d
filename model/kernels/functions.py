"""The functions between the matrix products, in float32: exponential, layer norm, GELU, softmax, sampling."""

import numpy as np

from .intrinsics import LANES, bits_of, float_of, largest, widen_one
from .jit import EXACT, REORDER, compiled

LOG2_E = np.float32(1.4426950408889634)
LN_2_UPPER, LN_2_LOWER = np.float32(0.693359375), np.float32(-2.12194440e-4)  # their sum is ln 2 to 40 bits
# Beyond these exponents, e^x leaves the range of normal float32 numbers.
MIN_EXPONENT, MAX_EXPONENT = np.float32(-87.0), np.float32(88.0)
# 1.5 * 2^23: adding a number to it rounds the number to an integer in the lowest bits.
ROUNDING = np.float32(12_582_912.0)
ROUNDING_BITS = np.int32(0x4B400000)
EXPONENT_BIAS, MANTISSA_BITS = np.int32(127), np.int32(23)
SQRT_2_OVER_PI, GELU_CUBIC = np.float32(0.7978845608028654), np.float32(0.044715)
EXP_3, EXP_4, EXP_5, EXP_6, EXP_7 = (np.float32(1 / n) for n in (6, 24, 120, 720, 5040))
ERF_SCALE = np.float32(0.3275911)
ERF_1, ERF_2, ERF_3, ERF_4, ERF_5 = (
    np.float32(number) for number in (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
)
SQRT_HALF = np.float32(0.7071067811865476)
INFINITY = np.float32(np.inf)
ZERO, HALF, ONE, TWO = np.float32(0), np.float32(0.5), np.float32(1), np.float32(2)
BLOCK = 256  # probabilities per partial sum, so that the draw scans only one block


@compiled(EXACT)
def exp(x):
    """e^x within 2 units in the last place; NaN stays NaN."""
    above = x > MAX_EXPONENT
    power = exp_below(MAX_EXPONENT if above else x)
    return INFINITY if above else power


@compiled(EXACT)
def exp_below(x):
    """e^x for numbers up to ``MAX_EXPONENT``: 2^n times a polynomial in the rest (Cody & Waite 1980)."""
    if x < MIN_EXPONENT:
        x = MIN_EXPONENT
    shifted = x * LOG2_E + ROUNDING
    n = shifted - ROUNDING
    rest = x - n * LN_2_UPPER - n * LN_2_LOWER
    series = EXP_6 + rest * EXP_7
    series = EXP_4 + rest * (EXP_5 + rest * series)
    series = ONE + rest * (ONE + rest * (HALF + rest * (EXP_3 + rest * series)))
    return series * float_of((bits_of(shifted) - ROUNDING_BITS + EXPONENT_BIAS) << MANTISSA_BITS)


# Numba checks the sign of every index that it cannot prove to be positive, which prevents vectorisation by LLVM. So
# these functions count from 0, in a slice that the caller passes.


@compiled(REORDER)
def layer_norm(x, gain, shift, epsilon, out):
    """Write into ``out`` the numbers ``x``, normalised to mean 0 and variance 1, times ``gain``, plus ``shift``."""
    count = len(x)
    total = ZERO
    for i in range(count):
        total += x[i]
    mean = total / np.float32(count)
    squares = ZERO
    for i in range(count):
        squares += (x[i] - mean) * (x[i] - mean)
    factor = ONE / np.sqrt(squares / np.float32(count) + epsilon)
    for i in range(count):
        out[i] = (x[i] - mean) * factor * gain[i] + shift[i]


@compiled(REORDER)
def rms_norm(x, gain, epsilon, out):
    """Write into ``out``, which may be ``x``, the numbers ``x`` divided by their root mean square, times ``gain``."""
    count = len(x)
    squares = ZERO
    for i in range(count):
        squares += x[i] * x[i]
    factor = ONE / np.sqrt(squares / np.float32(count) + epsilon)
    for i in range(count):
        out[i] = x[i] * factor * gain[i]


@compiled(EXACT)
def rotate(x, cos, sin):
    """Rotate, in place, the points that the first half of ``x`` forms with the second, by angles given as ``cos``."""
    half = len(cos)
    upper = x[half:]
    for i in range(half):
        a, b = x[i], upper[i]
        x[i], upper[i] = a * cos[i] - b * sin[i], b * cos[i] + a * sin[i]


@compiled(REORDER)
def silu(x):
    """x times the logistic function of x, in place (Elfwing et al. 2018)."""
    for i in range(len(x)):
        x[i] /= ONE + exp(-x[i])


@compiled(EXACT)
def relu(x):
    """The larger of x and 0, in place."""
    for i in range(len(x)):
        x[i] = ZERO if x[i] < ZERO else x[i]  # NaN stays NaN


@compiled(EXACT)
def multiply_by(x, factors):
    """Multiply ``x`` by ``factors``, number by number, in place."""
    for i in range(len(x)):
        x[i] *= factors[i]


@compiled(REORDER)
def gelu_tanh(x):
    """GELU in its tanh form, in place (Hendrycks & Gimpel 2016); tanh is computed from the exponential."""
    for i in range(len(x)):
        v = x[i]
        x[i] = v / (ONE + exp(-TWO * SQRT_2_OVER_PI * (v + GELU_CUBIC * v * v * v)))


@compiled(REORDER)
def gelu_exact(x):
    """GELU in place, with the error function accurate to 1.5e-7 (Abramowitz & Stegun 1964, 7.1.26)."""
    for i in range(len(x)):
        v = x[i]
        size = abs(v) * SQRT_HALF
        t = ONE / (ONE + ERF_SCALE * size)
        series = t * (ERF_1 + t * (ERF_2 + t * (ERF_3 + t * (ERF_4 + t * ERF_5))))
        tail = HALF * series * exp(-size * size)  # the normal distribution's tail beyond |v|
        x[i] = v * tail if v < ZERO else v * (ONE - tail)


@compiled(REORDER)
def exponentials(scores, count, scale):
    """Turn the first ``count`` attention ``scores``, times ``scale``, into their exponentials, in place; others into 0.

    The largest is 1. Returns the factor that makes them attention weights, whose sum is 1. Scores are computed in whole
    vectors: as many as ``count`` needs, so that nothing else changes the order of the sum.
    """
    whole, rest = scores[: (count + LANES - 1) // LANES * LANES], scores[count:]
    unused = whole[count:]
    for i in range(len(unused)):
        unused[i] = -INFINITY
    most = largest(whole) * scale
    total = ZERO
    for i in range(len(whole)):
        whole[i] = exp_below(whole[i] * scale - most)  # of the rest, too small to change a sum that is at least 1
        total += whole[i]
    for i in range(len(rest)):
        rest[i] = ZERO
    return ONE / total


@compiled(EXACT)
def exponentials_from(scores, first, count, scale):
    """``exponentials`` of the scores from ``first`` on, if it is above 0; those before it turn into 0 as well."""
    start = max(first, 0) // LANES * LANES  # the whole vectors are the same whatever precedes them
    for i in range(start, first):
        scores[i] = -INFINITY
    factor = exponentials(scores[start:], count - start, scale)
    for i in range(first):
        scores[i] = ZERO
    return factor


@compiled(REORDER)
def log_sum_exp(logits, most):
    """ln sum e^logit, where ``most`` is the largest logit; NaN if any logit is NaN."""
    total = ZERO
    for i in range(len(logits)):
        total += exp(logits[i] - most)
    return most + np.log(total)


@compiled(EXACT)
def find(numbers, wanted):
    """The first index of ``wanted``; the last index of the array if it does not occur."""
    for i in range(len(numbers)):
        if numbers[i] == wanted:
            return i
    return len(numbers) - 1


@compiled(EXACT)
def scaled(numbers, factor, out):
    """Write into ``out`` the ``numbers`` times ``factor``."""
    for i in range(len(numbers)):
        out[i] = numbers[i] * factor


@compiled(EXACT, nogil=False)
def address_of(numbers):
    """The address of an array; NumPy's own way takes ten times as long."""
    return numbers.ctypes.data


@compiled(EXACT, nogil=False)
def copy_into(numbers, out):
    """Copy an array of three dimensions; NumPy would let go of the GIL."""
    for i in range(numbers.shape[0]):
        for j in range(numbers.shape[1]):
            for k in range(numbers.shape[2]):
                out[i, j, k] = numbers[i, j, k]


@compiled(EXACT)
def embed(tokens, token, positions, position, out):
    """Write into ``out`` the embedding of ``token`` plus that of ``position``, from flat tables.

    The table of ``positions`` is empty if they are rotary.
    """
    count = len(out)
    for i in range(count):
        out[i] = widen_one(tokens, token * count + i)
    if len(positions):
        for i in range(count):
            out[i] += widen_one(positions, position * count + i)


@compiled(REORDER)
def weigh(logits, most, inverse, weights, sums):
    """Write e^((logit - most) * inverse) into ``weights``, in float32, and the sum of each ``BLOCK`` into ``sums``, in
    float64.
    """
    for block in range(len(sums)):
        part, out = logits[block * BLOCK :][:BLOCK], weights[block * BLOCK :]
        total = 0.0
        for i in range(len(part)):
            out[i] = exp((part[i] - most) * inverse)
            total += np.float64(out[i])
        sums[block] = total


@compiled(EXACT, nogil=False)
def draw(logits, most, temperature, uniform, weights, sums):
    """The token id at which the cumulative probability first exceeds ``uniform``, as in ``model.sampling.sample``.

    ``most`` is the largest of ``logits`` ``(vocab_size,)``, which are finite; ``weights`` and ``sums`` are scratch
    memory of at least ``vocab_size`` numbers and one number per block.
    """
    weigh(logits, np.float32(most), np.float32(1 / temperature), weights, sums)
    left = sums.sum() * uniform
    block = 0
    while block < len(sums) - 1 and left >= sums[block]:
        left -= sums[block]
        block += 1
    start, last = block * BLOCK, 0
    for i in range(start, min(start + BLOCK, len(logits))):
        if weights[i] > 0:
            last = i
            left -= weights[i]
            if left < 0:
                break
    return last
