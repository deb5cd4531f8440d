"""The weights of a GPT as the loops read them: matrices in panels, one after the other, in as few bytes as is exact."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..gpt import GPT
from .forward import ZEROS, Weights, padded
from .int8 import Int8Linear
from .panels import GROUP, UNSIGNED, WIDTH

ALIGNMENT = 64  # bytes: no vector that is read lies in two cache lines
HUGE = 64_000_000  # bytes; what is larger must not be backed by huge pages, which take up memory as a whole
Array = NDArray[Any]
Linear = nn.Linear | Int8Linear


def pack(gpt: GPT) -> Weights:
    """Copy the weights of a ``gpt`` on the CPU, but for the embeddings, which are shared.

    float32 is stored as float16 or bfloat16 where every weight allows it. In `Weights`, ``panels`` holds for each layer
    the matrices of queries, keys and values, attention output, MLP input and MLP output, then that of the output head,
    with the weights for ``group`` inputs side by side;
    ``panels_at`` ``(n_layer + 1, 4)`` where each begins. ``biases``, and for int8 ``scales``, hold those of each matrix
    in the same order, padded to whole panels, and then zeros. ``norms`` ``(n_layer + 1, 4, n_embd)`` are gain and shift
    of both layer norms, in the last row of the final one.
    """
    layers = [(block.attn.c_attn, block.attn.c_proj, block.mlp.c_fc, block.mlp.c_proj) for block in blocks(gpt)]
    matrices: list[Sequence[Linear]] = [*layers, (gpt.lm_head,)]
    dtype = storage([matrix for row in matrices for matrix in row])
    widths = [[padded(len(matrix.weight)) for matrix in row] for row in matrices]
    group = GROUP if dtype == np.uint8 else 1
    sizes = [
        [padded(len(matrix.weight)) * in_groups(matrix.weight.shape[1], group) for matrix in row] for row in matrices
    ]
    longest = max(max(row) for row in widths)

    panels = aligned(sum(map(sum, sizes)), dtype)
    biases = np.zeros(sum(map(sum, widths)) + longest, np.float32)
    scales = biases.copy() if dtype == np.uint8 else biases[:0]
    panels_at, biases_at = (np.zeros((len(matrices), 4), np.int64) for _ in range(2))
    at = bias_at = 0
    for layer, row in enumerate(matrices):
        for i, (matrix, width) in enumerate(zip(row, widths[layer], strict=True)):
            panels_at[layer, i], biases_at[layer, i] = at, bias_at
            size = sizes[layer][i]
            fill_panels(panels[at : at + size], stored(matrix.weight, dtype))
            if matrix.bias is not None:
                biases[bias_at : bias_at + len(matrix.bias)] = floats(matrix.bias)
            if (scale := getattr(matrix, "scale", None)) is not None:
                scales[bias_at : bias_at + len(scale)] = floats(scale)
            at, bias_at = at + size, bias_at + width
    biases_at[len(layers), ZEROS] = bias_at

    config = gpt.config
    norms = np.zeros((len(matrices), 4, config.n_embd), np.float32)
    for layer, block in enumerate(blocks(gpt)):
        norms[layer] = [floats(part) for norm in (block.ln_1, block.ln_2) for part in (norm.weight, norm.bias)]
    norms[-1, :2] = [floats(gpt.ln_f.weight), floats(gpt.ln_f.bias)]
    attention_scales = np.array([config.attention_scale(layer) for layer in range(config.n_layer)], np.float32)
    epsilon: Any = np.float32(config.layer_norm_epsilon)
    tables = flat(gpt.wte), flat(gpt.wpe)
    return Weights(*tables, panels, group, panels_at, scales, biases, biases_at, norms, epsilon, attention_scales)


def blocks(gpt: GPT) -> list[Any]:
    """The layers; torch's types do not say of what kind they are."""
    return list(gpt.h)


def storage(matrices: Sequence[Linear]) -> np.dtype[Any]:
    """The type to store the weights in; see `panels`."""
    dtypes = {matrix.weight.dtype for matrix in matrices}
    if dtypes == {torch.int8}:
        return np.dtype(np.uint8)
    if dtypes == {torch.bfloat16}:
        return np.dtype(np.uint16)
    for narrow, stored_as in ((torch.float16, np.int16), (torch.bfloat16, np.uint16)):
        if all(torch.equal(matrix.weight.to(narrow).to(matrix.weight.dtype), matrix.weight) for matrix in matrices):
            return np.dtype(stored_as)
    return np.dtype(np.float32)


def stored(weight: Tensor, dtype: np.dtype[Any]) -> Array:
    """A matrix ``(d_out, d_in)`` in the type that it is stored in."""
    weight = weight.detach()
    if dtype == np.int16:
        return weight.to(torch.float16).view(torch.int16).numpy()
    if dtype == np.uint16:
        return weight.to(torch.bfloat16).view(torch.uint16).numpy()
    if dtype == np.uint8:
        return (weight.to(torch.int16) + UNSIGNED).to(torch.uint8).numpy()
    return weight.numpy()


def in_groups(count: int, group: int) -> int:
    """``count`` rounded up to whole groups."""
    return -(-count // group) * group


def fill_panels(panels: Array, matrix: Array) -> None:
    """Write ``matrix`` ``(d_out, d_in)`` into flat ``panels``, and zeros where the last one is not full."""
    group = GROUP if matrix.dtype == np.uint8 else 1
    d_out, d_in = matrix.shape
    if d_in % group:  # inputs that are always 0, whatever their weights
        matrix = np.pad(matrix, ((0, 0), (0, -d_in % group)))
    groups = matrix.shape[1] // group
    shaped = panels.reshape(-1, groups, WIDTH, group)
    whole, rest = divmod(d_out, WIDTH)
    grouped = matrix.reshape(d_out, groups, group)
    shaped[:whole] = grouped[: whole * WIDTH].reshape(whole, WIDTH, groups, group).transpose(0, 2, 1, 3)
    if rest:
        shaped[whole] = 0
        shaped[whole, :, :rest] = grouped[whole * WIDTH :].transpose(1, 0, 2)


def floats(values: Tensor) -> NDArray[np.float32]:
    return values.detach().float().numpy()


def flat(embedding: nn.Embedding) -> Array:
    """The table of an embedding without a copy, or as float32 where Numba could not read it."""
    weight = embedding.weight.detach()
    view = weight.view(torch.uint16) if weight.dtype == torch.bfloat16 else weight.float()
    return view.numpy().reshape(-1)


def aligned(count: int, dtype: np.dtype[Any], *, is_sparse: bool = False) -> Array:
    """An uninitialised flat array that begins at a cache line; ``is_sparse`` if only parts of it will be used."""
    n_bytes = count * dtype.itemsize + ALIGNMENT
    # NumPy asks for huge pages, torch does not.
    in_small_pages = is_sparse or n_bytes >= HUGE
    raw = torch.empty(n_bytes, dtype=torch.uint8).numpy() if in_small_pages else np.empty(n_bytes, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + count * dtype.itemsize].view(dtype)
