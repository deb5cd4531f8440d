"""Drawing the next token without torch, where only the temperature is set."""

import numpy as np

from .functions import exp
from .jit import EXACT, REORDER, compiled

BLOCK = 256  # probabilities that are summed before the draw looks among them


@compiled(REORDER)
def weigh(logits, most, inverse, weights, sums):
    """``weights``: e^((logit - most) * inverse), in float32; ``sums``: those of each `BLOCK` of them, in float64."""
    for block in range(len(sums)):
        part, out = logits[block * BLOCK :][:BLOCK], weights[block * BLOCK :]
        total = 0.0
        for i in range(len(part)):
            out[i] = exp((part[i] - most) * inverse)
            total += np.float64(out[i])
        sums[block] = total


@compiled(EXACT)
def draw(logits, most, temperature, uniform, weights, sums):
    """The token id where the cumulative probabilities first exceed ``uniform``, as `model.sampling.sample` draws it.

    ``most`` is the largest of ``logits`` ``(vocab_size,)``, which are finite; ``weights`` and ``sums`` are memory to
    work in, at least ``(vocab_size,)`` and as many as there are blocks.
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
