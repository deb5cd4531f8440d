"""The weights of a GPT as the loops read them: matrices in panels, one after the other, in as few bytes as is exact."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..gpt import GPT
from .int8 import Int8Linear
from .panels import WIDTH

ALIGNMENT = 64  # bytes: no vector that is read lies in two cache lines
Array = NDArray[np.generic]


class Packed(NamedTuple):
    """All weights of a model; see `panels` for the layout and the types."""

    tokens: Array  # the embeddings, flat, as torch holds them
    positions: Array
    weights: Array  # flat: per layer query/key/value, attention output, MLP input, MLP output; then the output head
    weights_at: NDArray[np.int64]  # (n_layer + 1, 4): where each matrix begins
    scales: NDArray[np.float32]  # flat, beside ``biases``; empty unless the weights are int8
    biases: NDArray[np.float32]  # flat, each padded to whole panels; at the end zeros
    biases_at: NDArray[np.int64]  # (n_layer + 1, 4)
    norms: NDArray[np.float32]  # (n_layer + 1, 4, n_embd): gain and shift of both norms; the last row is the final one


def pack(gpt: GPT) -> Packed:
    """Copy the weights of a ``gpt`` on the CPU. float32 is stored as float16 or bfloat16 where every weight allows."""
    layers = [[block.attn.c_attn, block.attn.c_proj, block.mlp.c_fc, block.mlp.c_proj] for block in gpt.h]
    modules = [*layers, [gpt.lm_head]]
    dtype = storage(gpt, [module for row in modules for module in row])
    sizes = [[n_panels(module) * WIDTH * module.weight.shape[1] for module in row] for row in modules]
    widths = [[n_panels(module) * WIDTH for module in row] for row in modules]
    longest = max(max(row) for row in widths)

    weights = aligned(sum(map(sum, sizes)), dtype)
    biases = aligned(sum(map(sum, widths)) + longest, np.dtype(np.float32))
    biases[:] = 0
    scales = biases.copy() if dtype == np.int8 else biases[:0]
    weights_at, biases_at = (np.zeros((len(modules), 4), np.int64) for _ in range(2))
    at = bias_at = 0
    for layer, row in enumerate(modules):
        for i, module in enumerate(row):
            size, width = sizes[layer][i], widths[layer][i]
            weights_at[layer, i], biases_at[layer, i] = at, bias_at
            fill_panels(weights[at : at + size], stored(module.weight, dtype))
            if module.bias is not None:
                biases[bias_at : bias_at + len(module.bias)] = floats(module.bias)
            if isinstance(module, Int8Linear):
                scales[bias_at : bias_at + len(module.scale)] = floats(module.scale)
            at, bias_at = at + size, bias_at + width
    biases_at[len(layers), 1] = bias_at  # the zeros

    norms = np.zeros((len(modules), 4, gpt.config.n_embd), np.float32)
    for layer, block in enumerate(gpt.h):
        for i, values in enumerate((block.ln_1.weight, block.ln_1.bias, block.ln_2.weight, block.ln_2.bias)):
            norms[layer, i] = floats(values)
    norms[-1, 0], norms[-1, 1] = floats(gpt.ln_f.weight), floats(gpt.ln_f.bias)
    return Packed(flat(gpt.wte), flat(gpt.wpe), weights, weights_at, scales, biases, biases_at, norms)


def n_panels(module: nn.Module) -> int:
    return -(-module.weight.shape[0] // WIDTH)


def storage(gpt: GPT, modules: list[nn.Module]) -> np.dtype[np.generic]:
    """The type to store the matrices in; see `panels`."""
    dtypes = {module.weight.dtype for module in modules}
    if dtypes == {torch.int8}:
        return np.dtype(np.int8)
    if dtypes == {torch.bfloat16}:
        return np.dtype(np.uint16)
    for narrow, stored_as in ((torch.float16, np.int16), (torch.bfloat16, np.uint16)):
        if all(torch.equal(module.weight.to(narrow).to(torch.float32), module.weight) for module in modules):
            return np.dtype(stored_as)
    return np.dtype(np.float32)


def stored(weight: Tensor, dtype: np.dtype[np.generic]) -> Array:
    """A matrix ``(d_out, d_in)`` in the type that it is stored in."""
    if dtype == np.int16:
        return weight.detach().to(torch.float16).view(torch.int16).numpy()
    if dtype == np.uint16:
        return weight.detach().to(torch.bfloat16).view(torch.uint16).numpy()
    return weight.detach().numpy()


def fill_panels(panels: Array, matrix: Array) -> None:
    """Write ``matrix`` ``(d_out, d_in)`` into flat ``panels``, and zeros where the last panel is not full."""
    d_out, d_in = matrix.shape
    shaped = panels.reshape(-1, d_in, WIDTH)
    whole = d_out // WIDTH
    shaped[:whole] = matrix[: whole * WIDTH].reshape(whole, WIDTH, d_in).transpose(0, 2, 1)
    if d_out % WIDTH:
        shaped[whole] = 0
        shaped[whole, :, : d_out % WIDTH] = matrix[whole * WIDTH :].T


def floats(values: Tensor) -> NDArray[np.float32]:
    return values.detach().float().numpy()


def flat(embedding: nn.Embedding) -> Array:
    """The table of an embedding without a copy, or as float32 where Numba could not read it."""
    weight = embedding.weight.detach()
    view = weight.view(torch.uint16) if weight.dtype == torch.bfloat16 else weight.float()
    return view.numpy().reshape(-1)


def aligned(count: int, dtype: np.dtype[np.generic]) -> Array:
    """An uninitialised flat array that begins at a cache line."""
    raw = np.empty(count * dtype.itemsize + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + count * dtype.itemsize].view(dtype)
